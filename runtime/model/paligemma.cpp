// PaliGemma (Beyer et al., 2024): patches of a SigLIP tower through one linear layer into the
// prompt of a Gemma, which sees itself both ways. Its positions begin at 1; rotary scores depend on
// differences of positions alone, so they are counted from 0 here.
#include "base/message.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/picture_language.h"
#include "model/tower_pictures.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

class PaligemmaPictures : public TowerPictures {
 public:
  using TowerPictures::TowerPictures;

  Result<Features> build(ModelBuilder& b, std::span<const int64_t> more) const override {
    VKF_ASSIGN(const std::vector<TensorId> states,
               tower().layer_states(b, more[0], {tower().stack.layers}));
    VKF_ASSIGN(const TensorId x, add_named_linear(b, "picture.projection", states[0]));
    return Features{.rows = x, .deep = {}};
  }

 private:
  const char* projector_tensor() const override { return "linear.weight"; }
  void add_projector_rows(const std::string& from, WeightTable& table) const override {
    table.rows.push_back(
        linear_row("picture.projection", {from + "linear"}, width(), tower().stack.width));
  }
};

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_paligemma(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(const JsonConfig text, nested_config(config, "text_config"));
  VKF_ASSIGN(const JsonConfig vision, nested_config(config, "vision_config"));
  // PaliGemma 2 has a Gemma 2, whose states were seen to differ from the reference's.
  VKF_ASSIGN(const std::string type, text.get_string_or("model_type", "gemma"));
  if (type != "gemma") {
    return unsupported(message({"[text_config.model_type] in ", config.where(), " is '", type,
                                "'; this family is supported with a text model of 'gemma'."}));
  }
  VKF_ASSIGN(LlamaKind kind, llama_kind_of(text, "gemma"));
  VKF_ASSIGN(PictureTower tower, read_state_tower(vision, "siglip_vision_model"));
  VKF_ASSIGN(const int64_t width, get_size_or(text, "hidden_size", kind.width, kMostWidth));
  PicturePrompt::Settings settings{.spans = PicturePrompt::Spans::kPrompts,
                                   .types = "token_type_ids",
                                   .prompts = {.kind = ImagePromptFacts::Kind::kLeading}};
  VKF_ASSIGN(settings.image_token,
             read_image_token(config, "image_token_index", "image_token_id", 256000));
  kind.family = "paligemma";
  kind.architecture = "PaliGemmaForConditionalGeneration";
  return load_picture_language(files, {.kind = kind,
                                       .pictures = std::make_shared<PaligemmaPictures>(
                                           std::move(settings), std::move(tower), width)});
}

}  // namespace vkformer
