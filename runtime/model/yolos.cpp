// YOLOS (Fang et al., 2021): a ViT with detection tokens after the patches, each of which becomes
// an object or none. Pictures may have any size: positions are resized.
#include <numeric>

#include "base/message.h"
#include "model/blocks/detection_head.h"
#include "model/blocks/picture_tokens.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/vit.h"
#include "model/weight_rows.h"
#include "ops/gather_rows.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr int64_t kMostObjects = 1 << 16;

class Yolos : public ModelFamily {
 public:
  Yolos(ModelFacts facts, VitEncoder encoder, bool mid_positions)
      : facts_(std::move(facts)), c_(std::move(encoder)), mid_positions_(mid_positions) {}

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  DetectionHead head() const {
    return {.width = c_.stack.width,
            .classes = static_cast<int64_t>(facts_.labels.size()),
            .class_layers = 3};
  }
  Status add_outputs(ModelBuilder& b, TensorId states) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  VitEncoder c_;
  bool mid_positions_;
  std::string prefix_;
  PictureTokens first_;
  std::vector<PictureTokens> mid_;  // positions that layers but the last add to their outputs
};

Status Yolos::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, "vit.", "embeddings.cls_token");
  const PictureEmbedding& e = c_.picture;
  const int64_t d = c_.stack.width;
  const std::string from = prefix_ + "embeddings.";
  VKF_ASSIGN(first_, read_picture_tokens(checkpoint, e, d,
                                         {.first = {{from + "cls_token"}},
                                          .last = from + "detection_tokens",
                                          .positions = from + "position_embeddings"}));
  mid_.clear();
  if (!mid_positions_ || c_.stack.layers < 2) return {};
  VKF_ASSIGN(const std::vector<float> mid,
             read_floats(checkpoint, prefix_ + "encoder.mid_position_embeddings",
                         {c_.stack.layers - 1, 1, e.tokens(), d}));
  const auto count = static_cast<size_t>(e.tokens() * d);
  for (size_t at = 0; at < mid.size(); at += count) {
    mid_.push_back(split_positions(e, d, std::span(mid).subspan(at, count)));
  }
  return {};
}

Result<WeightTable> Yolos::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  add_vit_layer_rows(table, checkpoint, c_, prefix_);
  if (facts_.head == HeadKind::kObjects) {
    add_detection_rows(head(), table);
  } else if (checkpoint.find(prefix_ + "pooler.dense.weight") != nullptr) {
    const int64_t d = c_.stack.width;
    table.rows.push_back(linear_row("pooler", {prefix_ + "pooler.dense"}, d, d));
  }
  // Positions and tokens are read on the host.
  const std::string from = prefix_ + "embeddings.";
  table.ignored = {from + "*_token",
                   from + "detection_tokens",
                   from + "position_embeddings",
                   prefix_ + "encoder.mid_position_embeddings",
                   prefix_ + "pooler.dense.*",
                   "class_labels_classifier.*",
                   "bbox_predictor.*"};
  return table;
}

Status Yolos::add_outputs(ModelBuilder& b, TensorId states) const {
  if (facts_.head != HeadKind::kObjects) {
    if (!b.has("pooler")) return {};
    const HeadConfig pooler{.input = HeadConfig::Input::kToken,
                            .dense = "pooler",
                            .activation = ActivationKind::kTanh,
                            .name = "pooler_output"};
    return add_heads(b, c_.stack, {pooler}, {.states = states});
  }
  const Shape shape = b.graph().tensor(states).shape;
  const int64_t objects = c_.picture.last_tokens;
  std::vector<uint32_t> rows;
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t q = 0; q < objects; ++q) {
      rows.push_back(static_cast<uint32_t>((i + 1) * shape[1] - objects + q));
    }
  }
  const TensorId indices =
      b.host_tensor("objects.rows", DType::kU32, {shape[0], objects}, std::move(rows));
  VKF_ASSIGN(const TensorId found, add_gather_rows(b.graph(), {.x = states, .indices = indices}));
  return add_detection_head(b, head(), found);
}

Status Yolos::build_forward(ModelBuilder& b, const ForwardShape& shape,
                            const ForwardTaps& taps) const {
  const PictureEmbedding& e = c_.picture;
  const int64_t d = c_.stack.width;
  VKF_ASSIGN(const GridSize grid, grid_of(e, shape));
  const int64_t tokens = e.class_tokens + grid.count() + e.last_tokens;
  const TensorId pixels = add_pixel_values(b, e.picture.channels, shape);
  VKF_ASSIGN(const TensorId x, add_picture_tokens(b, e, first_, grid, pixels));
  StackRun run{.batch = shape.batch, .tokens = tokens, .taps = taps};
  TensorId order = kNoTensor;
  if (!mid_.empty()) {
    std::vector<uint32_t> rows(static_cast<size_t>(shape.batch * tokens));
    std::iota(rows.begin(), rows.end(), 0u);
    order = b.host_tensor("tokens.order", DType::kU32, {shape.batch, tokens}, std::move(rows));
    run.tapped = StackRun::Tapped::kOutputs;
    run.after = [&, order](int64_t layer, TensorId, TensorId output) -> Result<TensorId> {
      if (layer + 1 == c_.stack.layers) return output;
      const TensorId added = b.host_floats("positions." + std::to_string(layer), {tokens, d},
                                           mid_[static_cast<size_t>(layer)].table(grid));
      return add_gather_rows(b.graph(), {.x = output, .indices = order, .addend = added});
    };
  }
  VKF_ASSIGN(const TensorId states, add_stack(b, c_.stack, run, x));
  b.mark_output(states, "last_hidden_state");
  return add_outputs(b, states);
}

Status read_yolos_head(const JsonConfig& config, ModelFacts& facts) {
  VKF_ASSIGN(facts.architecture, get_architecture(config, "YolosModel"));
  if (facts.architecture == "YolosModel") return {};
  facts.head = head_of(facts.architecture);
  if (facts.head != HeadKind::kObjects) {
    return unsupported(
        message({"[architectures] of ", config.where(), " names '", facts.architecture,
                 "', whose head this family does not have; supported are the bare "
                 "model and object detection"}));
  }
  VKF_ASSIGN(facts.labels, get_labels(config));
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_yolos(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(VitEncoder encoder, read_vit_encoder(config, {.picture = {512, 864}}, "encoder", ""));
  ModelFacts facts{.family = "yolos", .kind = ModelKind::kEncoder, .source = SourceKind::kPictures};
  VKF_CHECK(read_yolos_head(config, facts));
  VKF_ASSIGN(encoder.picture.last_tokens,
             get_size_or(config, "num_detection_tokens", 100, kMostObjects));
  VKF_ASSIGN(const bool mid, config.get_bool_or("use_mid_position_embeddings", true));
  facts.width = encoder.stack.width;
  facts.encoder_layers = encoder.stack.layers;
  facts.encoder_heads = encoder.stack.heads;
  facts.max_source = encoder.picture.tokens();
  facts.grid.channels = encoder.picture.picture.channels;
  return std::unique_ptr<ModelFamily>(new Yolos(std::move(facts), std::move(encoder), mid));
}

}  // namespace vkformer
