// Gemma 3 with images (Gemma Team, 2025). Patches of a SigLIP tower, averaged over squares of them,
// go through a norm and a projection into the prompt. There the tokens of one image attend to each
// other both ways, in layers with windows, too.
#include <cmath>

#include "base/message.h"
#include "base/narrow.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/picture_language.h"
#include "model/tower_pictures.h"
#include "model/weight_rows.h"
#include "ops/attention.h"
#include "ops/gather_rows.h"
#include "ops/rms_norm.h"
#include "ops/segment_means.h"

namespace vkformer {
namespace {

class Gemma3Pictures : public TowerPictures {
 public:
  // `side`: tokens of a picture along one of its sides.
  Gemma3Pictures(Settings settings, PictureTower tower, int64_t width, int64_t side)
      : TowerPictures(std::move(settings), std::move(tower), width), side_(side) {}

  Result<Features> build(ModelBuilder& builder, std::span<const int64_t> more) const override;

 private:
  int64_t tokens() const override { return pooled_side() * pooled_side(); }
  const char* projector_tensor() const override { return "mm_input_projection_weight"; }
  void add_projector_rows(const std::string& from, WeightTable& table) const override;
  int64_t patches() const { return tower().embedding.grid().width; }  // along a side
  int64_t square() const { return patches() / side_; }
  int64_t pooled_side() const { return patches() / square(); }

  int64_t side_;
};

void Gemma3Pictures::add_projector_rows(const std::string& from, WeightTable& table) const {
  const int64_t d = tower().stack.width;
  WeightRow norm = gain_row("picture.soft_norm", from + "mm_soft_emb_norm", d);
  norm.gain_offset = 1.0f;
  table.rows.push_back(std::move(norm));
  table.rows.push_back({.name = "picture.projection",
                        .sources = {from + "mm_input_projection_weight"},
                        .rows = width(),
                        .width = d,
                        .axes = WeightRow::Axes::kInOut});
}

Result<PicturePrompt::Features> Gemma3Pictures::build(ModelBuilder& b,
                                                      std::span<const int64_t> more) const {
  Graph& g = b.graph();
  const int64_t n = more[0];
  VKF_ASSIGN(const std::vector<TensorId> states,
             tower().layer_states(b, n, {tower().stack.layers}));
  // The patches of each square, one after the other, then their mean.
  const int64_t k = square(), side = pooled_side(), all = tower().embedding.tokens();
  std::vector<uint32_t> order;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t token = 0; token < side * side; ++token) {
      for (int64_t p = 0; p < k * k; ++p) {
        const int64_t row = token / side * k + p / k, column = token % side * k + p % k;
        order.push_back(u32(i * all + row * patches() + column));
      }
    }
  }
  const int64_t taken = side * side * k * k;
  g.set_scope("picture.pool");
  const TensorId indices =
      b.host_tensor("picture.squares", DType::kU32, {n, taken}, std::move(order));
  VKF_ASSIGN(TensorId x, add_gather_rows(g, {.x = states[0], .indices = indices}));
  const uint32_t d = u32(tower().stack.width);
  VKF_ASSIGN(x, add_segment_means(g, x,
                                  {.batch = u32(n),
                                   .tokens = u32(taken),
                                   .segments = u32(side * side),
                                   .head_width = d,
                                   .x = merged_rows(u32(taken), d, 0, d),
                                   .y = merged_rows(u32(side * side), d, 0, d),
                                   .y_shape = {n, side * side, int64_t{d}}}));
  g.set_scope("picture.soft_norm");
  VKF_ASSIGN(const TensorId gain, b.norm("picture.soft_norm"));
  VKF_ASSIGN(x, add_rms_norm(g, x, gain, {.epsilon = tower().stack.epsilon}));
  VKF_ASSIGN(x, add_named_linear(b, "picture.projection", x));
  return Features{.rows = x, .deep = {}};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_gemma3(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(const JsonConfig text, nested_config(config, "text_config"));
  VKF_ASSIGN(const JsonConfig vision, nested_config(config, "vision_config"));
  VKF_ASSIGN(LlamaKind kind, llama_kind_of(text, "gemma3_text"));
  VKF_ASSIGN(PictureTower tower, read_state_tower(vision, "siglip_vision_model"));
  VKF_ASSIGN(const int64_t width, get_size_or(text, "hidden_size", kind.width, kMostWidth));
  VKF_ASSIGN(const int64_t tokens, get_size_or(config, "mm_tokens_per_image", 256, kMostPositions));
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(tokens)));
  const GridSize grid = tower.embedding.grid();
  if (side * side != tokens || grid.height != grid.width || side > grid.width ||
      grid.width / (grid.width / side) != side || tower.embedding.class_tokens != 0) {
    return invalid_file(message({"[mm_tokens_per_image] in ", config.where(), " is ", tokens,
                                 ", but must be the square of a number of squares of the ",
                                 grid.height, " x ", grid.width, " patches of an image."}));
  }
  PicturePrompt::Settings settings{.spans = PicturePrompt::Spans::kImages,
                                   .types = "token_type_ids",
                                   .prompts = {.kind = ImagePromptFacts::Kind::kBounded}};
  VKF_ASSIGN(settings.prompts.begin,
             read_image_token(config, "boi_token_index", "boi_token_id", 255999));
  VKF_ASSIGN(settings.prompts.end,
             read_image_token(config, "eoi_token_index", "eoi_token_id", 256000));
  VKF_ASSIGN(settings.image_token,
             read_image_token(config, "image_token_index", "image_token_id", 262144));
  kind.family = "gemma3";
  kind.architecture = "Gemma3ForConditionalGeneration";
  return load_picture_language(files, {.kind = kind,
                                       .pictures = std::make_shared<Gemma3Pictures>(
                                           std::move(settings), std::move(tower), width, side)});
}

}  // namespace vkformer
