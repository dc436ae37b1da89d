// SAM (Kirillov et al., 2023): masks of what points and boxes are in. A picture is encoded once for
// all of its prompts; each prompt gives several masks, and how good each is.
#include "base/message.h"
#include "base/narrow.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/sam_decoder.h"
#include "model/sam_prompts.h"
#include "model/sam_vision.h"
#include "model/weight_rows.h"
#include "ops/activation.h"
#include "ops/combine.h"
#include "ops/gather_rows.h"
#include "ops/unfold.h"

namespace vkformer {
namespace {

constexpr const char* kPromptTokens = "prompt_tokens";
constexpr const char* kMaskInput = "input_masks";
constexpr int64_t kMaskScale = 4;  // pixels of an input mask along a side of a feature

struct SamConfig {
  SamVision::Config vision;
  SamPrompts::Config prompts;
  SamDecoder decoder;
  int64_t mask_channels = 16;  // of the embedding of input masks
  StackConfig masks;           // its norms
};

class Sam : public ModelFamily {
 public:
  Sam(ModelFacts facts, SamConfig config)
      : facts_(std::move(facts)), c_(std::move(config)), vision_(c_.vision), prompts_(c_.prompts) {}

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override { return prompts_.prepare(checkpoint); }
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  std::vector<std::string> input_names() const override {
    return {"input_points", "input_labels", "input_boxes", kMaskInput};
  }
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  int64_t mask_side() const { return kMaskScale * c_.prompts.grid; }
  Result<TensorId> embed_masks(ModelBuilder& b, int64_t batch) const;
  Result<FeatureMap> spread_features(ModelBuilder& b, const FeatureMap& features, int64_t prompts,
                                     bool masked) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  SamConfig c_;
  SamVision vision_;
  SamPrompts prompts_;
};

Result<WeightTable> Sam::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  VKF_CHECK(vision_.add_rows(checkpoint, "vision_encoder.", table));
  add_sam_decoder_rows(c_.decoder, table);
  const int64_t c = c_.mask_channels;
  const std::string from = "prompt_encoder.mask_embed.";
  table.rows.push_back(linear_row("mask.1", {from + "conv1"}, c / 4, 4));
  table.rows.push_back(norm_row("mask.1.norm", from + "layer_norm1", c / 4));
  table.rows.push_back(linear_row("mask.2", {from + "conv2"}, c, c));
  table.rows.push_back(norm_row("mask.2.norm", from + "layer_norm2", c));
  table.rows.push_back(linear_row("mask.3", {from + "conv3"}, c_.prompts.width, c));
  // Positions and tokens of prompts are made on the host; the first mask is for single masks.
  table.ignored = {"vision_encoder.pos_embed",
                   "shared_image_embedding.*",
                   "prompt_encoder.shared_embedding.*",
                   "prompt_encoder.point_embed.*",
                   "prompt_encoder.not_a_point_embed.*",
                   "prompt_encoder.no_mask_embed.*",
                   "mask_decoder.iou_token.weight",
                   "mask_decoder.mask_tokens.weight",
                   "mask_decoder.output_hypernetworks_mlps.0.*"};
  return table;
}

Status Sam::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  const int64_t batch = result.shape.batch;
  VKF_ASSIGN(const SamPrompts::Tokens tokens, prompts_.read(inputs, batch));
  const auto mask = inputs.find(kMaskInput);
  const bool masked = mask != inputs.end();
  if (masked) {
    const Shape wanted = {batch, 1, mask_side(), mask_side()};
    if (mask->second.shape != wanted) {
      return invalid_argument(message({"[input_masks] has shape ", shape_text(mask->second.shape),
                                       ", but must be ", shape_text(wanted), "."}));
    }
    VKF_ASSIGN(const std::vector<float> values, mask->second.to_floats());
    result.words[kMaskInput] = float_words(values);
  }
  result.shape.more = {tokens.prompts, tokens.tokens, masked ? 1 : 0};
  result.words[kPromptTokens] = float_words(tokens.values);
  return {};
}

// Windows of 2 x 2 that do not overlap.
ConvWindow halving_window() {
  return {.kernel_height = 2, .kernel_width = 2, .stride_height = 2, .stride_width = 2};
}

// (B, grid, D) of input masks (B, 1, 4 grid, 4 grid).
Result<TensorId> Sam::embed_masks(ModelBuilder& b, int64_t batch) const {
  Graph& g = b.graph();
  const int64_t side = mask_side();
  const TensorId masks = g.add_external(kMaskInput, DType::kF32, {batch, 1, side, side});
  b.feed(kMaskInput, masks);
  g.set_scope("mask.1.windows");
  VKF_ASSIGN(TensorId x, add_unfold(g, masks, {.window = halving_window()}));
  VKF_ASSIGN(x, add_named_linear(b, "mask.1", x));
  VKF_ASSIGN(x, add_named_norm(b, c_.masks, "mask.1.norm", x));
  VKF_ASSIGN(x, add_activation(g, x, {.kind = c_.masks.activation}));
  g.set_scope("mask.2.windows");
  VKF_ASSIGN(
      x, add_unfold(g, x,
                    {.source = feature_source({side / 2, side / 2}), .window = halving_window()}));
  VKF_ASSIGN(x, add_named_linear(b, "mask.2", x));
  VKF_ASSIGN(x, add_named_norm(b, c_.masks, "mask.2.norm", x));
  VKF_ASSIGN(x, add_activation(g, x, {.kind = c_.masks.activation}));
  return add_named_linear(b, "mask.3", x);
}

// Features (B, grid, D) with what is known of the mask, for every prompt: (B * P, grid, D).
Result<FeatureMap> Sam::spread_features(ModelBuilder& b, const FeatureMap& features,
                                        int64_t prompts, bool masked) const {
  Graph& g = b.graph();
  const int64_t batch = g.tensor(features.states).shape[0];
  const int64_t count = features.grid.count();
  TensorId x = features.states, addend = kNoTensor;
  if (masked) {
    VKF_ASSIGN(const TensorId masks, embed_masks(b, batch));
    g.set_scope("features.masked");
    VKF_ASSIGN(x, add_combine(g, x, masks, {}));
  } else {
    addend = b.host_floats("features.no_mask", {1, c_.prompts.width}, prompts_.no_mask());
  }
  std::vector<uint32_t> rows;
  for (int64_t i = 0; i < batch * prompts; ++i) {
    for (int64_t p = 0; p < count; ++p) rows.push_back(u32(i / prompts * count + p));
  }
  g.set_scope("features.prompts");
  const TensorId indices =
      b.host_tensor("features.prompts", DType::kU32, {batch * prompts, count}, std::move(rows));
  VKF_ASSIGN(const TensorId y, add_gather_rows(g, {.x = x, .indices = indices, .addend = addend}));
  return FeatureMap{y, features.grid};
}

Status Sam::build_forward(ModelBuilder& b, const ForwardShape& shape,
                          const ForwardTaps& taps) const {
  // What plans without inputs see is a prompt of one point.
  const bool asked = shape.more.size() == 3;
  const int64_t prompts = asked ? shape.more[0] : 1;
  const int64_t count = asked ? shape.more[1] : c_.prompts.mask_tokens + 3;
  const bool masked = asked && shape.more[2] != 0;
  VKF_ASSIGN(const FeatureMap features, vision_.build(b, shape, taps));
  SamDecoderInputs inputs;
  VKF_ASSIGN(inputs.features, spread_features(b, features, prompts, masked));
  inputs.tokens = b.graph().add_external(kPromptTokens, DType::kF32,
                                         {shape.batch * prompts, count, c_.prompts.width});
  b.feed(kPromptTokens, inputs.tokens);
  inputs.positions = b.host_floats("features.positions", {features.grid.count(), c_.prompts.width},
                                   prompts_.positions());
  return add_sam_decoder(b, c_.decoder, inputs, shape.batch, taps);
}

Status read_sam_prompts(const JsonConfig& config, SamConfig& c) {
  SamPrompts::Config& p = c.prompts;
  VKF_ASSIGN(p.width, get_size_or(config, "hidden_size", 256, kMostWidth));
  VKF_ASSIGN(p.picture, get_size_or(config, "image_size", 1024, kMostPositions));
  VKF_ASSIGN(const int64_t patch, get_size_or(config, "patch_size", 16, kMostPositions));
  p.grid = p.picture / patch;
  p.mask_tokens = c.decoder.mask_tokens();
  VKF_ASSIGN(c.mask_channels, get_size_or(config, "mask_input_channels", 16, kMostWidth));
  VKF_ASSIGN(c.masks.activation, get_activation(config, "hidden_act", "gelu"));
  VKF_ASSIGN(c.masks.epsilon, get_epsilon(config, "layer_norm_eps", 1e-6));
  VKF_ASSIGN(const int64_t points, config.get_int_or("num_point_embeddings", 4));
  if (points != 4 || c.mask_channels % 4 != 0) {
    return invalid_file(
        message({"[num_point_embeddings] and [mask_input_channels] of ", config.where(), " are ",
                 points, " and ", c.mask_channels, ", but must be 4 and a multiple of 4."}));
  }
  return {};
}

// What the three parts have in common.
Status check_sam_parts(const JsonConfig& config, const SamConfig& c, int64_t features) {
  const GridSize grid = c.vision.embedding.grid();
  const int64_t width = c.prompts.width;
  const bool fits = grid.height == c.prompts.grid && grid.width == c.prompts.grid &&
                    c.vision.channels == width && c.decoder.stack.width == width &&
                    2 * features == width;
  if (fits) return {};
  return invalid_file(message(
      {"[vision_config], [prompt_encoder_config] and [mask_decoder_config] of ", config.where(),
       " have ", grid.height, " x ", grid.width, " features of ", c.vision.channels, " channels, ",
       c.prompts.grid, " x ", c.prompts.grid, " of ", width, ", and ", c.decoder.stack.width,
       "; sizes and channels must be the same, and twice num_pos_feats, ", features, "."}));
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_sam(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "sam", .kind = ModelKind::kEncoder, .source = SourceKind::kPictures};
  VKF_ASSIGN(facts.architecture, get_architecture(config, "SamModel"));
  if (facts.architecture != "SamModel") {
    return unsupported(
        message({"[architectures] of ", config.where(), " names '", facts.architecture,
                 "', which this family does not have; supported is SamModel."}));
  }
  const JsonConfig vision = config.object("vision_config");
  const JsonConfig prompts = config.object("prompt_encoder_config");
  const JsonConfig decoder = config.object("mask_decoder_config");
  for (const JsonConfig* part : {&vision, &prompts, &decoder}) VKF_CHECK(part->status());
  SamConfig c;
  VKF_ASSIGN(c.vision, SamVision::read(vision));
  VKF_ASSIGN(c.decoder, read_sam_decoder(decoder));
  VKF_CHECK(read_sam_prompts(prompts, c));
  VKF_ASSIGN(const int64_t features, get_size_or(vision, "num_pos_feats", 128, kMostWidth));
  VKF_CHECK(check_sam_parts(config, c, features));
  facts.width = c.vision.stack.width;
  facts.encoder_layers = c.vision.stack.layers;
  facts.encoder_heads = c.vision.stack.heads;
  facts.decoder_layers = c.decoder.stack.layers;
  facts.decoder_heads = c.decoder.stack.heads;
  facts.max_source = c.vision.embedding.tokens();
  facts.grid = c.vision.embedding.picture;
  facts.head = HeadKind::kSegmentation;
  return std::unique_ptr<ModelFamily>(new Sam(std::move(facts), std::move(c)));
}

}  // namespace vkformer
