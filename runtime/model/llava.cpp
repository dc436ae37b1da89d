// LLaVA (Liu et al., 2023): patches of images go through two linear layers into the prompt of a
// decoder. They are the states of a CLIP or SigLIP tower after one or several of its layers.
#include <algorithm>

#include "base/message.h"
#include "base/narrow.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/picture_language.h"
#include "model/tower_pictures.h"
#include "model/weight_rows.h"
#include "ops/concat_columns.h"
#include "ops/gather_rows.h"

namespace vkformer {
namespace {

struct LlavaConfig {
  PictureTower tower;
  std::vector<int64_t> layers;  // whose states are read, one beside the other
  enum class Select : uint8_t { kAll, kNotFirst } select = Select::kNotFirst;
  int64_t width = 0;  // D of the decoder
  ActivationKind activation = ActivationKind::kGelu;
  bool bias = true;
};

class LlavaPictures : public TowerPictures {
 public:
  LlavaPictures(Settings settings, LlavaConfig config)
      : TowerPictures(std::move(settings), config.tower, config.width), c_(std::move(config)) {}

  Result<Features> build(ModelBuilder& builder, std::span<const int64_t> more) const override;

 private:
  int64_t tokens() const override {
    return tower().embedding.tokens() - (c_.select == LlavaConfig::Select::kNotFirst ? 1 : 0);
  }
  const char* projector_tensor() const override { return "linear_1.weight"; }
  void add_projector_rows(const std::string& from, WeightTable& table) const override;

  LlavaConfig c_;
};

void LlavaPictures::add_projector_rows(const std::string& from, WeightTable& table) const {
  const auto linear = c_.bias ? linear_row : plain_linear_row;
  const int64_t wide = tower().stack.width * static_cast<int64_t>(c_.layers.size());
  table.rows.push_back(linear("picture.up", {from + "linear_1"}, width(), wide));
  table.rows.push_back(linear("picture.down", {from + "linear_2"}, width(), width()));
}

Result<PicturePrompt::Features> LlavaPictures::build(ModelBuilder& b,
                                                     std::span<const int64_t> more) const {
  Graph& g = b.graph();
  VKF_ASSIGN(const std::vector<TensorId> states, tower().layer_states(b, more[0], c_.layers));
  TensorId x = states[0];
  g.set_scope("picture.features");
  for (size_t i = 1; i < states.size(); ++i) {
    VKF_ASSIGN(x, add_concat_columns(g, x, states[i]));
  }
  if (c_.select == LlavaConfig::Select::kNotFirst) {
    const int64_t all = tower().embedding.tokens();
    std::vector<uint32_t> rows;
    for (int64_t i = 0; i < more[0] * all; ++i) {
      if (i % all != 0) rows.push_back(u32(i));
    }
    const TensorId indices =
        b.host_tensor("picture.selected", DType::kU32, {more[0] * tokens()}, std::move(rows));
    VKF_ASSIGN(x, add_gather_rows(g, {.x = x, .indices = indices}));
  } else {
    x = as_rows(g, x);
  }
  VKF_ASSIGN(x, add_named_linear(b, "picture.up", x, {.activation = c_.activation}));
  VKF_ASSIGN(x, add_named_linear(b, "picture.down", x));
  return Features{.rows = x, .deep = {}};
}

// Which states are read, counted from what the first layer reads.
Status read_layers(const JsonConfig& config, LlavaConfig& c) {
  VKF_ASSIGN(const std::vector<int64_t> given,
             config.get_int_list_or("vision_feature_layer", {-2}));
  const int64_t all = c.tower.file_layers;
  for (const int64_t layer : given) {
    if (layer < -all - 1 || layer > all) {
      return invalid_file(message({"[vision_feature_layer] in ", config.where(), " is ", layer,
                                   ", but the tower has ", all, " layers; it must lie between ",
                                   -all - 1, " and ", all, "."}));
    }
    c.layers.push_back(layer < 0 ? all + 1 + layer : layer);
  }
  if (c.layers.empty()) {
    return invalid_file(message({"[vision_feature_layer] in ", config.where(),
                                 " is empty; it must name one layer at least."}));
  }
  c.tower.stack.layers = *std::max_element(c.layers.begin(), c.layers.end());
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_llava(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(const JsonConfig text, nested_config(config, "text_config"));
  VKF_ASSIGN(const JsonConfig vision, nested_config(config, "vision_config"));
  VKF_ASSIGN(LlamaKind kind, llama_kind_of(text, "llama"));
  LlavaConfig c;
  VKF_ASSIGN(c.width, get_size_or(text, "hidden_size", kind.width, kMostWidth));
  VKF_ASSIGN(c.tower, read_state_tower(vision, "clip_vision_model"));
  // After the last layer, too, the states are read before the tower's norm.
  c.tower.last_norm = PictureTower::LastNorm::kNo;
  VKF_CHECK(read_layers(config, c));
  VKF_ASSIGN(const std::string select,
             config.get_string_or("vision_feature_select_strategy", "default"));
  if (select != "default" && select != "full") {
    return unsupported(message({"[vision_feature_select_strategy] in ", config.where(), " is '",
                                select, "'; supported are default and full."}));
  }
  if (select == "full") c.select = LlavaConfig::Select::kAll;
  VKF_ASSIGN(c.activation, get_activation(config, "projector_hidden_act", "gelu"));
  VKF_ASSIGN(c.bias, config.get_bool_or("multimodal_projector_bias", true));
  PicturePrompt::Settings settings;
  VKF_ASSIGN(settings.image_token,
             read_image_token(config, "image_token_index", "image_token_id", 32000));
  kind.family = "llava";
  kind.architecture = "LlavaForConditionalGeneration";
  return load_picture_language(
      files, {.kind = kind,
              .pictures = std::make_shared<LlavaPictures>(std::move(settings), std::move(c))});
}

}  // namespace vkformer
