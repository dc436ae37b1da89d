// Depth Anything (Yang et al., 2024): how far or near each pixel is. States of several layers of a
// DINOv2 become features of several sizes, which are fused from the smallest to the largest (Ranftl
// et al., 2021). Pictures may have any size.
#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/feature_map.h"
#include "model/config_reading.h"
#include "model/dinov2.h"
#include "model/family_list.h"
#include "model/weight_rows.h"
#include "ops/activation.h"
#include "ops/combine.h"
#include "ops/conv.h"
#include "ops/gather_rows.h"
#include "ops/resize_grid.h"
#include "weights/fold_batch_norm.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr int64_t kMostFactor = 64;
constexpr size_t kMostLevels = 16;
constexpr int64_t kFusionKernel = 3;

// One state of the backbone and what becomes of it.
struct DepthLevel {
  int64_t layer = 0;     // whose output it is; 0: what the first layer reads
  int64_t channels = 0;  // after its projection
  // Pixels of the features along a side of a patch; and where it is 1, patches along a side of one
  // of theirs.
  int64_t larger = 1;
  int64_t smaller = 1;
};

struct DepthConfig {
  Dinov2Encoder backbone;
  std::vector<DepthLevel> levels;  // from the first layer to the last
  int64_t fused = 64;              // channels of the fused features
  int64_t head = 32;               // channels of the head
  size_t head_level = 0;           // which fused features the head reads, from the last level on
  bool norms_states = true;        // by the backbone's last norm
  bool metric = false;             // depths are parts of the largest
  float largest = 1.0f;
};

class DepthAnything : public ModelFamily {
 public:
  DepthAnything(ModelFacts facts, DepthConfig config)
      : facts_(std::move(facts)), c_(std::move(config)) {}

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override {
    return c_.backbone.prepare(checkpoint, "backbone.");
  }
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  FeatureEnlargement enlargement(size_t level) const;
  void add_level_rows(size_t level, WeightTable& table) const;
  void add_fusion_rows(size_t fusion, WeightTable& table) const;
  Result<std::vector<TensorId>> states(ModelBuilder& b, const ForwardShape& shape,
                                       const GridSize& grid, const ForwardTaps& taps) const;
  Result<FeatureMap> reassemble(ModelBuilder& b, size_t level, TensorId states,
                                const GridSize& grid) const;
  Result<FeatureMap> fuse(ModelBuilder& b, const std::vector<FeatureMap>& features) const;
  Status add_depth(ModelBuilder& b, const FeatureMap& fused, const GridSize& picture) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  DepthConfig c_;
};

std::string level_row(size_t level, const std::string& part) {
  return "level." + std::to_string(level) + "." + part;
}

std::string fusion_row(size_t fusion, const std::string& part) {
  return "fusion." + std::to_string(fusion) + "." + part;
}

FeatureEnlargement DepthAnything::enlargement(size_t level) const {
  return {level_row(level, "resize"), c_.levels[level].larger, c_.levels[level].channels};
}

void DepthAnything::add_level_rows(size_t level, WeightTable& table) const {
  const DepthLevel& l = c_.levels[level];
  const std::string number = std::to_string(level);
  const std::string from = "neck.reassemble_stage.layers." + number + ".";
  const int64_t c = l.channels;
  table.rows.push_back(linear_row(level_row(level, "projection"), {from + "projection"}, c,
                                  c_.backbone.stack.width));
  if (l.larger > 1) {
    add_enlarging_rows(enlargement(level), from + "resize", c, table);
  } else if (l.smaller > 1) {
    table.rows.push_back(linear_row(level_row(level, "resize"), {from + "resize"}, c,
                                    c * kFusionKernel * kFusionKernel));
  }
  table.rows.push_back(plain_linear_row(level_row(level, "conv"), {"neck.convs." + number},
                                        c_.fused, c * kFusionKernel * kFusionKernel));
}

void DepthAnything::add_fusion_rows(size_t fusion, WeightTable& table) const {
  const int64_t c = c_.fused;
  const std::string from = "neck.fusion_stage.layers." + std::to_string(fusion) + ".";
  for (const char* unit : {"1", "2"}) {
    // The first has no features of another level to add.
    if (fusion == 0 && *unit == '1') continue;
    for (const char* conv : {"1", "2"}) {
      table.rows.push_back(linear_row(fusion_row(fusion, std::string(unit) + "." + conv),
                                      {from + "residual_layer" + unit + ".convolution" + conv}, c,
                                      c * kFusionKernel * kFusionKernel));
    }
  }
  table.rows.push_back(linear_row(fusion_row(fusion, "projection"), {from + "projection"}, c, c));
}

// A convolution at a size whose windows would be too many rows: a table for the operator conv.
Result<WeightRow> head_row(const Checkpoint& checkpoint, const std::string& module, int64_t out,
                           int64_t in) {
  VKF_ASSIGN(const std::vector<float> weight,
             read_floats(checkpoint, module + ".weight", {out, in, kFusionKernel, kFusionKernel}));
  VKF_ASSIGN(const std::vector<float> bias, read_floats(checkpoint, module + ".bias", {out}));
  VKF_ASSIGN(std::vector<float> table,
             pack_conv({.name = module, .out = out, .weight = weight, .bias = bias}));
  return computed_row(module, std::move(table), out, in * kFusionKernel * kFusionKernel + 1);
}

Result<WeightTable> DepthAnything::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  c_.backbone.add_rows("backbone.", table);
  for (size_t i = 0; i < c_.levels.size(); ++i) add_level_rows(i, table);
  for (size_t i = 0; i <= c_.head_level; ++i) add_fusion_rows(i, table);
  VKF_ASSIGN(WeightRow first, head_row(checkpoint, "head.conv1", c_.fused / 2, c_.fused));
  VKF_ASSIGN(WeightRow second, head_row(checkpoint, "head.conv2", c_.head, c_.fused / 2));
  table.rows.push_back(std::move(first));
  table.rows.push_back(std::move(second));
  table.rows.push_back(linear_row("head.conv3", {"head.conv3"}, 1, c_.head));
  table.ignored.insert(table.ignored.end(),
                       {"head.conv1.*", "head.conv2.*", "neck.fusion_stage.layers.*"});
  return table;
}

// The states (B, T, D) that the levels read.
Result<std::vector<TensorId>> DepthAnything::states(ModelBuilder& b, const ForwardShape& shape,
                                                    const GridSize& grid,
                                                    const ForwardTaps& taps) const {
  const PictureEmbedding& e = c_.backbone.embedding;
  const StackConfig& stack = c_.backbone.stack;
  const TensorId pixels = add_pixel_values(b, e.picture.channels, shape);
  VKF_ASSIGN(const TensorId x, add_picture_tokens(b, e, c_.backbone.tokens, grid, pixels));
  std::vector<TensorId> after = {x};
  StackRun run{.batch = shape.batch, .tokens = e.class_tokens + grid.count(), .taps = taps};
  run.after = [&](int64_t, TensorId, TensorId output) -> Result<TensorId> {
    after.push_back(output);
    return output;
  };
  VKF_CHECK(add_stack(b, stack, run, x));
  std::vector<TensorId> states;
  for (const DepthLevel& level : c_.levels) {
    TensorId state = after[static_cast<size_t>(level.layer)];
    if (c_.norms_states) {
      VKF_ASSIGN(state, add_named_norm(b, stack, stack.rows + ".norm", state));
    }
    states.push_back(state);
  }
  return states;
}

// States without the class token -> features of the level's size and the fusion's channels.
Result<FeatureMap> DepthAnything::reassemble(ModelBuilder& b, size_t level, TensorId states,
                                             const GridSize& grid) const {
  const DepthLevel& l = c_.levels[level];
  Graph& g = b.graph();
  const Shape shape = g.tensor(states).shape;
  std::vector<uint32_t> rows;
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t t = 1; t < shape[1]; ++t) rows.push_back(u32(i * shape[1] + t));
  }
  const TensorId indices = b.host_tensor(level_row(level, "patches"), DType::kU32,
                                         {shape[0], grid.count()}, std::move(rows));
  g.set_scope(level_row(level, "patches"));
  VKF_ASSIGN(const TensorId patches, add_gather_rows(g, {.x = states, .indices = indices}));
  VKF_ASSIGN(FeatureMap x, add_feature_conv(b, {level_row(level, "projection")}, {patches, grid}));
  if (l.larger > 1) {
    VKF_ASSIGN(x, add_enlarged(b, enlargement(level), x));
  } else if (l.smaller > 1) {
    VKF_ASSIGN(x, add_feature_conv(b, {level_row(level, "resize"), kFusionKernel, l.smaller}, x));
  }
  return add_feature_conv(b, {level_row(level, "conv"), kFusionKernel}, x);
}

// x + conv(relu(conv(relu(x)))), plus `addend` where there is one.
Result<FeatureMap> add_residual_unit(ModelBuilder& b, const std::string& row, const FeatureMap& x,
                                     TensorId addend) {
  Graph& g = b.graph();
  g.set_scope(row);
  VKF_ASSIGN(const TensorId positive, add_activation(g, x.states, {.kind = ActivationKind::kRelu}));
  VKF_ASSIGN(FeatureMap y, add_feature_conv(b, {row + ".1", kFusionKernel}, {positive, x.grid},
                                            {.activation = ActivationKind::kRelu}));
  VKF_ASSIGN(y, add_feature_conv(b, {row + ".2", kFusionKernel}, y, {.residual = x.states}));
  if (addend == kNoTensor) return y;
  VKF_ASSIGN(y.states, add_combine(g, addend, y.states, {}));
  return y;
}

Result<FeatureMap> add_aligned_resize(ModelBuilder& b, const FeatureMap& x, const GridSize& to) {
  ResizeGridAttrs attrs{u32(x.grid.height), u32(x.grid.width), u32(to.height), u32(to.width)};
  attrs.corners = ResizeGridAttrs::Corners::kAligned;
  VKF_ASSIGN(const TensorId y, add_resize_grid(b.graph(), x.states, attrs));
  return FeatureMap{y, to};
}

// From the last level to the first; each step has the size of the level that comes next.
Result<FeatureMap> DepthAnything::fuse(ModelBuilder& b,
                                       const std::vector<FeatureMap>& features) const {
  FeatureMap fused;
  for (size_t i = 0; i <= c_.head_level; ++i) {
    const FeatureMap& own = features[features.size() - 1 - i];
    if (i == 0) {
      fused = own;
    } else {
      VKF_ASSIGN(fused, add_residual_unit(b, fusion_row(i, "1"), own, fused.states));
    }
    VKF_ASSIGN(fused, add_residual_unit(b, fusion_row(i, "2"), fused, kNoTensor));
    const bool last = i + 1 == features.size();
    const GridSize twice = {2 * fused.grid.height, 2 * fused.grid.width};
    b.graph().set_scope(fusion_row(i, "size"));
    VKF_ASSIGN(fused,
               add_aligned_resize(b, fused, last ? twice : features[features.size() - 2 - i].grid));
    VKF_ASSIGN(fused, add_feature_conv(b, {fusion_row(i, "projection")}, fused));
  }
  return fused;
}

Result<FeatureMap> add_head_conv(ModelBuilder& b, const std::string& row, const FeatureMap& x) {
  b.graph().set_scope(row);
  VKF_ASSIGN(const TensorId table, b.table(row));
  VKF_ASSIGN(const TensorId y, add_conv(b.graph(), x.states, table,
                                        {.source = feature_source(x.grid),
                                         .window = feature_window(kFusionKernel, 1)}));
  return FeatureMap{y, x.grid};
}

Status DepthAnything::add_depth(ModelBuilder& b, const FeatureMap& fused,
                                const GridSize& picture) const {
  Graph& g = b.graph();
  VKF_ASSIGN(FeatureMap x, add_head_conv(b, "head.conv1", fused));
  VKF_ASSIGN(x, add_aligned_resize(b, x, picture));
  VKF_ASSIGN(x, add_head_conv(b, "head.conv2", x));
  VKF_ASSIGN(x.states, add_activation(g, x.states, {.kind = ActivationKind::kRelu}));
  const auto last = c_.metric ? ActivationKind::kSigmoid : ActivationKind::kRelu;
  VKF_ASSIGN(TensorId depth, add_named_linear(b, "head.conv3", x.states, {.activation = last}));
  if (c_.largest != 1.0f) {
    const float half = 0.5f * c_.largest;
    VKF_ASSIGN(depth, add_combine(g, depth, depth, {.alpha = half, .beta = half}));
  }
  g.tensor(depth).shape = {g.tensor(depth).shape[0], picture.height, picture.width};
  b.mark_output(depth, "predicted_depth");
  return {};
}

Status DepthAnything::build_forward(ModelBuilder& b, const ForwardShape& shape,
                                    const ForwardTaps& taps) const {
  const PictureEmbedding& e = c_.backbone.embedding;
  VKF_ASSIGN(const GridSize grid, grid_of(e, shape));
  VKF_ASSIGN(const std::vector<TensorId> read, states(b, shape, grid, taps));
  std::vector<FeatureMap> features;
  for (size_t i = 0; i < read.size(); ++i) {
    VKF_ASSIGN(const FeatureMap own, reassemble(b, i, read[i], grid));
    features.push_back(own);
  }
  VKF_ASSIGN(const FeatureMap fused, fuse(b, features));
  return add_depth(b, fused, {grid.height * e.patch.height, grid.width * e.patch.width});
}

// The layers whose states are read, by name or by number.
Result<std::vector<int64_t>> read_state_layers(const JsonConfig& config, int64_t layers) {
  VKF_ASSIGN(const auto names, config.get_string_list_or("out_features", {}));
  std::vector<int64_t> read;
  for (const std::string& name : names) {
    int64_t layer = name == "stem" ? 0 : -1;
    for (int64_t i = 1; i <= layers; ++i) {
      if (name == "stage" + std::to_string(i)) layer = i;
    }
    if (layer < 0) {
      return invalid_file(message({"[out_features] of ", config.where(), " has '", name,
                                   "'; the stages are stem and stage1 to stage", layers, "."}));
    }
    read.push_back(layer);
  }
  if (!read.empty()) return read;
  VKF_ASSIGN(const auto numbers, config.get_int_list_or("out_indices", {layers}));
  for (const int64_t number : numbers) {
    const int64_t layer = number < 0 ? number + layers + 1 : number;
    if (layer < 0 || layer > layers) {
      return invalid_file(message({"[out_indices] of ", config.where(), " has ", number,
                                   "; the stages are 0 to ", layers, "."}));
    }
    read.push_back(layer);
  }
  return read;
}

// A whole number, or one over a whole number.
Status read_factor(const JsonConfig& config, double factor, DepthLevel& level) {
  const double inverse = 1.0 / factor;
  if (factor >= 1 && factor <= kMostFactor && factor == std::floor(factor)) {
    level.larger = static_cast<int64_t>(factor);
    return {};
  }
  if (factor > 0 && factor < 1 && inverse <= kMostFactor) {
    level.smaller = static_cast<int64_t>(inverse);
    return {};
  }
  return invalid_file(message({"[reassemble_factors] of ", config.where(), " has ", factor,
                               "; a factor is a whole number from 1 to ", kMostFactor,
                               ", or one over such a number."}));
}

Status read_levels(const JsonConfig& config, const JsonConfig& backbone, DepthConfig& c) {
  VKF_ASSIGN(const auto layers, read_state_layers(backbone, c.backbone.stack.layers));
  VKF_ASSIGN(const auto channels, config.get_int_list_or("neck_hidden_sizes", {48, 96, 192, 384}));
  VKF_ASSIGN(const auto factors,
             config.get_double_list_or("reassemble_factors", {4.0, 2.0, 1.0, 0.5}));
  const size_t count = layers.size();
  if (count < 1 || count > kMostLevels || channels.size() != count || factors.size() != count) {
    return invalid_file(
        message({"[neck_hidden_sizes] and [reassemble_factors] of ", config.where(), " have ",
                 channels.size(), " and ", factors.size(), " elements, but the backbone gives ",
                 count, " states; there must be as many, 1 to ", kMostLevels, "."}));
  }
  for (size_t i = 0; i < count; ++i) {
    DepthLevel level{.layer = layers[i], .channels = channels[i]};
    if (level.channels < 1 || level.channels > kMostWidth) {
      return invalid_file(
          message({"[neck_hidden_sizes] of ", config.where(), " has ", level.channels,
                   "; there must be 1 to ", kMostWidth, " channels."}));
    }
    VKF_CHECK(read_factor(config, factors[i], level));
    c.levels.push_back(level);
  }
  return {};
}

Status read_depth_head(const JsonConfig& config, DepthConfig& c) {
  VKF_ASSIGN(c.fused, get_size_or(config, "fusion_hidden_size", 64, kMostWidth));
  VKF_ASSIGN(c.head, get_size_or(config, "head_hidden_size", 32, kMostWidth));
  const auto levels = static_cast<int64_t>(c.levels.size());
  VKF_ASSIGN(const int64_t index, config.get_int_or("head_in_index", -1));
  if (c.fused < 2 || index < -levels || index >= levels) {
    return invalid_file(
        message({"[fusion_hidden_size] and [head_in_index] of ", config.where(), " are ", c.fused,
                 " and ", index, "; there must be 2 channels or more, and an index from ", -levels,
                 " to ", levels - 1, "."}));
  }
  c.head_level = static_cast<size_t>(index < 0 ? index + levels : index);
  VKF_ASSIGN(const std::string kind, config.get_string_or("depth_estimation_type", "relative"));
  if (kind != "relative" && kind != "metric") {
    return invalid_file(message({"[depth_estimation_type] of ", config.where(), " is '", kind,
                                 "', but must be relative or metric."}));
  }
  c.metric = kind == "metric";
  VKF_ASSIGN(const double largest, config.get_double_or("max_depth", 1.0));
  c.largest = largest == 0 ? 1.0f : static_cast<float>(largest);
  if (std::isfinite(c.largest)) return {};
  return invalid_file(message(
      {"[max_depth] of ", config.where(), " is ", largest, ", but must be a finite number."}));
}

Result<Dinov2Encoder> read_depth_backbone(const JsonConfig& config, const JsonConfig& backbone) {
  VKF_ASSIGN(const std::string type, backbone.get_string_or("model_type", "dinov2"));
  if (type != "dinov2" || !config.has("backbone_config")) {
    return unsupported(message({"[backbone_config.model_type] of ", config.where(), " is '", type,
                                "'; supported is a backbone_config of dinov2."}));
  }
  VKF_ASSIGN(Dinov2Encoder encoder, read_dinov2_encoder(backbone, 14, 0));
  encoder.stack.final_norm = StackConfig::FinalNorm::kNo;
  VKF_ASSIGN(const int64_t patch, get_size_or(config, "patch_size", 14, kMostWidth));
  if (encoder.embedding.patch.height == patch && encoder.embedding.patch.width == patch) {
    return encoder;
  }
  return invalid_file(
      message({"[patch_size] of ", config.where(), " is ", patch, ", but must be the backbone's, ",
               encoder.embedding.patch.height, "."}));
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_depth_anything(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{
      .family = "depth_anything", .kind = ModelKind::kEncoder, .source = SourceKind::kPictures};
  const std::string only = "DepthAnythingForDepthEstimation";
  VKF_ASSIGN(facts.architecture, get_architecture(config, only));
  if (facts.architecture != only) {
    return unsupported(
        message({"[architectures] of ", config.where(), " names '", facts.architecture,
                 "', whose head this family does not have; supported is ", only, "."}));
  }
  const JsonConfig backbone = config.object("backbone_config");
  VKF_CHECK(backbone.status());
  DepthConfig c;
  VKF_ASSIGN(c.backbone, read_depth_backbone(config, backbone));
  VKF_ASSIGN(c.norms_states, backbone.get_bool_or("apply_layernorm", true));
  VKF_CHECK(read_levels(config, backbone, c));
  VKF_CHECK(read_depth_head(config, c));
  facts.head = HeadKind::kDepth;
  facts.width = c.backbone.stack.width;
  facts.encoder_layers = c.backbone.stack.layers;
  facts.encoder_heads = c.backbone.stack.heads;
  facts.grid.channels = c.backbone.embedding.picture.channels;
  return std::unique_ptr<ModelFamily>(new DepthAnything(std::move(facts), std::move(c)));
}

}  // namespace vkformer
