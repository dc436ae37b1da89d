// Gemma 3 with pictures (Gemma Team, 2025): patches of a SigLIP tower, averaged over squares of
// them, through a norm and a projection into the prompt, where tokens of one picture see each other
// both ways, in layers with windows, too.
#include <cmath>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/towers.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/picture_language.h"
#include "model/weight_rows.h"
#include "ops/attention.h"
#include "ops/gather_rows.h"
#include "ops/rms_norm.h"
#include "ops/segment_means.h"

namespace vkformer {
namespace {

class Gemma3Pictures : public PicturePrompt {
 public:
  // `side`: tokens of a picture along one of its sides.
  Gemma3Pictures(Settings settings, PictureTower tower, int64_t width, int64_t side)
      : PicturePrompt(std::move(settings)), tower_(std::move(tower)), width_(width), side_(side) {}

  std::vector<std::string> input_names() const override { return {"pixel_values"}; }
  Status read(const TensorMap& inputs, std::vector<int64_t>& more,
              FeedWords& words) const override {
    VKF_ASSIGN(const int64_t count, read_pictures(inputs, tower_.embedding.picture, words));
    if (count > 0) more = {count};
    return {};
  }
  int64_t features(std::span<const int64_t> more) const override {
    return more.empty() ? 0 : more[0] * pooled_side() * pooled_side();
  }
  Status add_rows(const Checkpoint& checkpoint, WeightTable& table) const override;
  Result<Features> build(ModelBuilder& builder, std::span<const int64_t> more) const override;

 private:
  int64_t patches() const { return tower_.embedding.grid().width; }  // along a side
  int64_t square() const { return patches() / side_; }
  int64_t pooled_side() const { return patches() / square(); }

  PictureTower tower_;
  int64_t width_;  // D of the decoder
  int64_t side_;
};

Status Gemma3Pictures::add_rows(const Checkpoint& checkpoint, WeightTable& table) const {
  const std::string from =
      present_prefix(checkpoint,
                     {"vision_tower.vision_model.", "model.vision_tower.vision_model.",
                      "vision_tower.", "model.vision_tower."},
                     "embeddings.patch_embedding.weight");
  VKF_CHECK(tower_.add_rows(checkpoint, from, table));
  const std::string projector =
      present_prefix(checkpoint, {"multi_modal_projector.", "model.multi_modal_projector."},
                     "mm_input_projection_weight");
  const int64_t d = tower_.stack.width;
  WeightRow norm = gain_row("picture.soft_norm", projector + "mm_soft_emb_norm", d);
  norm.gain_offset = 1.0f;
  table.rows.push_back(std::move(norm));
  table.rows.push_back({.name = "picture.projection",
                        .sources = {projector + "mm_input_projection_weight"},
                        .rows = width_,
                        .width = d,
                        .axes = WeightRow::Axes::kInOut});
  return {};
}

Result<PicturePrompt::Features> Gemma3Pictures::build(ModelBuilder& b,
                                                      std::span<const int64_t> more) const {
  Graph& g = b.graph();
  const int64_t n = more[0];
  VKF_ASSIGN(const std::vector<TensorId> states, tower_.layer_states(b, n, {tower_.stack.layers}));
  // The patches of each square behind each other, then their mean.
  const int64_t k = square(), side = pooled_side(), all = tower_.embedding.tokens();
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
  const uint32_t d = u32(tower_.stack.width);
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
  VKF_ASSIGN(x, add_rms_norm(g, x, gain, {.epsilon = tower_.stack.epsilon}));
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
                                   .types = "token_type_ids"};
  VKF_ASSIGN(settings.image_token,
             read_image_token(config, "image_token_index", "image_token_id", 262144));
  kind.family = "gemma3";
  kind.architecture = "Gemma3ForConditionalGeneration";
  return load_picture_language(files, {.kind = kind,
                                       .pictures = std::make_shared<Gemma3Pictures>(
                                           std::move(settings), std::move(tower), width, side)});
}

}  // namespace vkformer
