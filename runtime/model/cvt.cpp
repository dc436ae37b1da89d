// CvT (Wu et al., 2021): stages of tokens that convolutions make, with queries, keys and values
// from depthwise convolutions over the grid.
#include <cmath>

#include "base/check.h"
#include "base/message.h"
#include "model/blocks/heads.h"
#include "model/blocks/picture_embedding.h"
#include "model/blocks/picture_layers.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"
#include "ops/concat_columns.h"
#include "ops/conv.h"
#include "ops/gather_rows.h"
#include "weights/fold_batch_norm.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr size_t kMostCvtStages = 16;
constexpr int64_t kMostCvtKernel = 1024;  // pixels a side
// No configuration sets this family's epsilons: layer_norm_eps is not read.
constexpr float kCvtEpsilon = 1e-5f;

struct CvtStage {
  PatchConv patches;     // from the picture or the stage before
  ConvWindow query;      // of the grid, which it keeps
  ConvWindow key_value;  // of the grid
  int64_t channels = 0;  // C, before the stage
  int64_t width = 0;     // D
  int64_t heads = 0;     // H
  int64_t depth = 0;     // layers
  int64_t ffn = 0;       // F
  ProjectionBias bias = ProjectionBias::kYes;
  int64_t class_tokens = 0;  // 1 where a class token goes through the layers
};

// One stage of one pass.
struct StageSite {
  ModelBuilder& b;
  const ForwardTaps& taps;
  const CvtStage& stage;
  size_t index = 0;
  int64_t batch = 0;
  GridSize grid;  // tokens, without the class token
  int64_t first_layer = 0;

  std::string rows() const { return "stage." + std::to_string(index); }
  int64_t tokens() const { return stage.class_tokens + grid.count(); }
};

class Cvt : public ModelFamily {
 public:
  Cvt(ModelFacts facts, std::vector<CvtStage> stages)
      : facts_(std::move(facts)), stages_(std::move(stages)) {
    layers_.epsilon = kCvtEpsilon;
    layers_.activation = ActivationKind::kGelu;
  }

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  Status add_stage_rows(WeightTable& table, const Checkpoint& checkpoint, size_t index) const;
  Result<TensorId> project(const StageSite& site, const std::string& to, const ConvWindow& window,
                           TensorId x) const;
  Result<TensorId> attend(const StageSite& site, int64_t layer, TensorId x) const;
  Result<TensorId> add_class_token(const StageSite& site, TensorId x) const;
  Result<TensorId> add_stage(const StageSite& site, TensorId x) const;
  Status add_outputs(ModelBuilder& b, const StageSite& last, TensorId x) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  std::vector<CvtStage> stages_;
  StackConfig layers_;                            // epsilon and activation
  std::vector<std::vector<float>> class_tokens_;  // (D) by stage; empty: none
};

std::string cvt_prefix(const Checkpoint& checkpoint) {
  return name_prefix(checkpoint, "cvt.",
                     "encoder.stages.0.embedding.convolution_embeddings.projection.weight");
}

std::string stage_source(const std::string& prefix, size_t index) {
  return prefix + "encoder.stages." + std::to_string(index) + ".";
}

// The table of a depthwise convolution and its batch norm.
Result<WeightRow> conv_row(const Checkpoint& checkpoint, std::string to, const std::string& from,
                           const CvtStage& stage, const ConvWindow& window) {
  const int64_t d = stage.width;
  const std::string norm = from + ".normalization.";
  VKF_ASSIGN(std::vector<float> weight,
             read_floats(checkpoint, from + ".convolution.weight",
                         {d, 1, window.kernel_height, window.kernel_width}));
  VKF_ASSIGN(std::vector<float> gain, read_floats(checkpoint, norm + "weight", {d}));
  VKF_ASSIGN(std::vector<float> shift, read_floats(checkpoint, norm + "bias", {d}));
  VKF_ASSIGN(std::vector<float> mean, read_floats(checkpoint, norm + "running_mean", {d}));
  VKF_ASSIGN(std::vector<float> variance, read_floats(checkpoint, norm + "running_var", {d}));
  VKF_ASSIGN(std::vector<float> table,
             fold_batch_norm({.name = from, .out = d, .weight = weight},
                             {.gain = gain, .shift = shift, .mean = mean, .variance = variance}));
  const int64_t columns = static_cast<int64_t>(table.size()) / d;
  return computed_row(std::move(to), std::move(table), d, columns);
}

Status Cvt::prepare(const Checkpoint& checkpoint) {
  const std::string prefix = cvt_prefix(checkpoint);
  class_tokens_.assign(stages_.size(), {});
  for (size_t s = 0; s < stages_.size(); ++s) {
    if (stages_[s].class_tokens == 0) continue;
    VKF_ASSIGN(class_tokens_[s], read_floats(checkpoint, stage_source(prefix, s) + "cls_token",
                                             {1, 1, stages_[s].width}));
  }
  return {};
}

Status Cvt::add_stage_rows(WeightTable& table, const Checkpoint& checkpoint, size_t index) const {
  const CvtStage& stage = stages_[index];
  const std::string from = stage_source(cvt_prefix(checkpoint), index);
  const std::string embedding = from + "embedding.convolution_embeddings.";
  const int64_t d = stage.width;
  const ConvWindow& window = stage.patches.window;
  table.rows.push_back(linear_row(stage.patches.rows, {embedding + "projection"}, d,
                                  stage.channels * window.kernel_height * window.kernel_width));
  table.rows.push_back(norm_row(stage.patches.norm, embedding + "normalization", d));
  for (int64_t i = 0; i < stage.depth; ++i) {
    const std::string number = std::to_string(i);
    const PictureLayer layer{.to = "stage." + std::to_string(index) + "." + number,
                             .from = from + "layers." + number,
                             .width = d,
                             .inner = d,
                             .ffn = stage.ffn};
    add_picture_layer_rows(table, checkpoint, layer);
    for (const char* of : {"query", "key", "value"}) {
      const std::string attention = layer.from + ".attention.attention.";
      const std::string to = layer.to + ".self." + of;
      const bool query = std::string(of) == "query";
      VKF_ASSIGN(WeightRow row,
                 conv_row(checkpoint, to + ".conv",
                          attention + "convolution_projection_" + of + ".convolution_projection",
                          stage, query ? stage.query : stage.key_value));
      table.rows.push_back(std::move(row));
      const std::string module = attention + "projection_" + of;
      table.rows.push_back(biased_row(stage.bias == ProjectionBias::kYes, to, {module}, d, d));
    }
  }
  return {};
}

Result<WeightTable> Cvt::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  for (size_t s = 0; s < stages_.size(); ++s) VKF_CHECK(add_stage_rows(table, checkpoint, s));
  if (facts_.head == HeadKind::kSequence) {
    table.rows.push_back(norm_row("norm", "layernorm", facts_.width));
    table.rows.push_back(linear_row("classifier", {"classifier"},
                                    static_cast<int64_t>(facts_.labels.size()), facts_.width));
  }
  // Convolutions, batch norms and class tokens are read on the host.
  table.ignored = {"*.convolution_projection.*", "*.cls_token", "layernorm.*", "classifier.*"};
  return table;
}

// A convolution over the grid that class tokens pass by, then a linear layer: (B, T, D) -> (B, T',
// D).
Result<TensorId> Cvt::project(const StageSite& site, const std::string& to,
                              const ConvWindow& window, TensorId x) const {
  ModelBuilder& b = site.b;
  b.graph().set_scope(to + ".conv");
  VKF_ASSIGN(TensorId table, b.table(to + ".conv"));
  ConvAttrs attrs{.window = window};
  attrs.source.height = static_cast<uint32_t>(site.grid.height);
  attrs.source.width = static_cast<uint32_t>(site.grid.width);
  attrs.groups = static_cast<uint32_t>(site.stage.width);
  attrs.leading_tokens = static_cast<uint32_t>(site.stage.class_tokens);
  VKF_ASSIGN(TensorId y, add_conv(b.graph(), x, table, attrs));
  return add_named_linear(b, to, y);
}

// Attention of one layer with its output projection, (B, T, D) -> (B, T, D), without residual.
Result<TensorId> Cvt::attend(const StageSite& site, int64_t layer, TensorId x) const {
  ModelBuilder& b = site.b;
  const CvtStage& stage = site.stage;
  const std::string rows = site.rows() + "." + std::to_string(layer) + ".self";
  VKF_ASSIGN(TensorId q, project(site, rows + ".query", stage.query, x));
  VKF_ASSIGN(TensorId k, project(site, rows + ".key", stage.key_value, x));
  VKF_ASSIGN(TensorId v, project(site, rows + ".value", stage.key_value, x));
  b.graph().set_scope(rows);
  VKF_ASSIGN(TensorId kv, add_concat_columns(b.graph(), k, v));
  const auto width = static_cast<uint32_t>(stage.width);
  AttentionAttrs attrs;
  attrs.batch = static_cast<uint32_t>(site.batch);
  attrs.heads = attrs.kv_heads = static_cast<uint32_t>(stage.heads);
  attrs.queries = static_cast<uint32_t>(site.tokens());
  attrs.keys = static_cast<uint32_t>(b.graph().tensor(kv).shape[1]);
  attrs.head_width = attrs.value_width = width / attrs.heads;
  attrs.q = merged_rows(attrs.queries, width, 0, attrs.head_width);
  attrs.k = merged_rows(attrs.keys, 2 * width, 0, attrs.head_width);
  attrs.v = merged_rows(attrs.keys, 2 * width, width, attrs.head_width);
  // Of the model's width, not of the head's.
  attrs.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(width)));
  return add_seen_attention(b, {.q = q, .kv = kv}, attrs, site.taps, site.first_layer + layer);
}

// (B, T, D) -> (B, 1 + T, D).
Result<TensorId> Cvt::add_class_token(const StageSite& site, TensorId x) const {
  std::vector<uint32_t> rows;
  for (int64_t i = 0; i < site.batch; ++i) {
    rows.push_back(~0u);
    for (int64_t t = 0; t < site.grid.count(); ++t) {
      rows.push_back(static_cast<uint32_t>(i * site.grid.count() + t));
    }
  }
  // Added to the row without a token: zeros, but for the first.
  std::vector<float> addend(static_cast<size_t>(site.tokens() * site.stage.width), 0.0f);
  const std::vector<float>& token = class_tokens_[site.index];
  std::copy(token.begin(), token.end(), addend.begin());
  ModelBuilder& b = site.b;
  const std::string name = site.rows() + ".class_token";
  const TensorId indices =
      b.host_tensor(name + ".order", DType::kU32, {site.batch, site.tokens()}, std::move(rows));
  const TensorId table = b.host_floats(name, {site.tokens(), site.stage.width}, addend);
  b.graph().set_scope(name);
  return add_gather_rows(b.graph(), {.x = x, .indices = indices, .addend = table});
}

// (B, T, D) -> (B, end - begin, D): those tokens of each item.
Result<TensorId> tokens_between(const StageSite& site, TensorId x, int64_t begin, int64_t end,
                                const std::string& name) {
  std::vector<uint32_t> rows;
  for (int64_t i = 0; i < site.batch; ++i) {
    for (int64_t t = begin; t < end; ++t) {
      rows.push_back(static_cast<uint32_t>(i * site.tokens() + t));
    }
  }
  const TensorId indices =
      site.b.host_tensor(name, DType::kU32, {site.batch, end - begin}, std::move(rows));
  site.b.graph().set_scope(site.rows());
  return add_gather_rows(site.b.graph(), {.x = x, .indices = indices});
}

// (B, T, D) -> (B, height * width, D): what follows the class token.
Result<TensorId> drop_class_token(const StageSite& site, TensorId x) {
  if (site.stage.class_tokens == 0) return x;
  return tokens_between(site, x, site.stage.class_tokens, site.tokens(), site.rows() + ".grid");
}

// The class token's state as users get it: (B, T, D) -> (B, 1, D), without a norm.
Status show_class_token(const StageSite& site, TensorId x) {
  if (site.stage.class_tokens == 0) return {};
  VKF_ASSIGN(const TensorId token,
             tokens_between(site, x, 0, site.stage.class_tokens, site.rows() + ".class_token.row"));
  site.b.mark_output(token, "cls_token_value");
  return {};
}

// The grid as users get it: (B, height * width, D) -> (B, D, height, width). A convolution of one
// pixel with weight 1 writes what it reads with other strides.
Status show_grid(const StageSite& site, TensorId x, const std::string& name) {
  Graph& g = site.b.graph();
  const int64_t d = site.stage.width;
  std::vector<float> ones(static_cast<size_t>(2 * d), 0.0f);
  for (size_t i = 0; i < ones.size(); i += 2) ones[i] = 1.0f;
  const TensorId table = site.b.host_floats("ones." + std::to_string(d), {d, 2}, ones);
  ConvAttrs attrs{.groups = static_cast<uint32_t>(d), .out_order = ChannelOrder::kFirst};
  attrs.source.height = static_cast<uint32_t>(site.grid.height);
  attrs.source.width = static_cast<uint32_t>(site.grid.width);
  g.set_scope(name);
  VKF_ASSIGN(TensorId y, add_conv(g, x, table, attrs));
  g.tensor(y).shape = {site.batch, d, site.grid.height, site.grid.width};
  site.b.mark_output(y, name);
  return {};
}

Result<TensorId> Cvt::add_stage(const StageSite& site, TensorId x) const {
  if (site.stage.class_tokens > 0) {
    VKF_ASSIGN(x, add_class_token(site, x));
  }
  for (int64_t i = 0; i < site.stage.depth; ++i) {
    const std::string rows = site.rows() + "." + std::to_string(i);
    VKF_ASSIGN(TensorId h, add_named_norm(site.b, layers_, rows + ".self.norm", x));
    VKF_ASSIGN(h, attend(site, i, h));
    VKF_ASSIGN(x, add_named_linear(site.b, rows + ".self.out", h, {.residual = x}));
    VKF_ASSIGN(x, add_picture_feed_forward(site.b, layers_, rows, x));
  }
  return x;
}

Status Cvt::add_outputs(ModelBuilder& b, const StageSite& last, TensorId x) const {
  VKF_ASSIGN(TensorId grid, drop_class_token(last, x));
  VKF_CHECK(show_grid(last, grid, "last_hidden_state"));
  if (facts_.head != HeadKind::kSequence) return show_class_token(last, x);
  VKF_ASSIGN(TensorId states, add_named_norm(b, layers_, "norm", x));
  HeadConfig head{.input = HeadConfig::Input::kMean, .output = "classifier"};
  if (last.stage.class_tokens > 0) head.input = HeadConfig::Input::kToken;
  VKF_CHECK(add_head(b, layers_, head, {.states = states}));
  return {};
}

// Positions of a window over a grid, or why there are none.
Result<GridSize> positions_of(const ConvWindow& window, const GridSize& grid, size_t stage) {
  const int64_t height = grid.height + 2 * int64_t{window.pad_top} - window.kernel_height;
  const int64_t width = grid.width + 2 * int64_t{window.pad_left} - window.kernel_width;
  if (height >= 0 && width >= 0) {
    return GridSize{height / window.stride_height + 1, width / window.stride_width + 1};
  }
  return invalid_argument(
      message({"[stage ", stage, "] of the picture reads ", grid.height, " x ", grid.width,
               " positions by a kernel of ", window.kernel_height,
               " a side, which does not fit, even with its padding; give a larger picture"}));
}

Status Cvt::build_forward(ModelBuilder& b, const ForwardShape& shape,
                          const ForwardTaps& taps) const {
  GridSize grid = {shape.height, shape.width};
  TensorId x = add_pixel_values(b, facts_.grid.channels, shape);
  ConvSource source;
  int64_t layers = 0;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const CvtStage& stage = stages_[s];
    VKF_ASSIGN(grid, positions_of(stage.patches.window, grid, s));
    VKF_CHECK(positions_of(stage.key_value, grid, s));
    const StageSite site{b, taps, stage, s, shape.batch, grid, layers};
    VKF_ASSIGN(x, add_patch_conv(b, x, source, stage.patches));
    VKF_ASSIGN(x, add_stage(site, x));
    if (s + 1 == stages_.size()) return add_outputs(b, site, x);
    VKF_ASSIGN(x, drop_class_token(site, x));
    if (taps.hidden_states == ForwardTaps::Tap::kOn) {
      VKF_CHECK(show_grid(site, x, "hidden_states." + std::to_string(s)));
    }
    source = {.order = ChannelOrder::kLast,
              .height = static_cast<uint32_t>(grid.height),
              .width = static_cast<uint32_t>(grid.width)};
    layers += stage.depth;
  }
  return {};
}

// The lists of a configuration, one value for each stage.
class StageLists {
 public:
  StageLists(const JsonConfig& config, size_t stages) : config_(config), stages_(stages) {}

  // Whole numbers within [least, most].
  Result<std::vector<int64_t>> sizes(const std::string& key, const std::vector<int64_t>& fallback,
                                     int64_t least, int64_t most) const {
    VKF_ASSIGN(std::vector<int64_t> values, config_.get_int_list_or(key, fallback));
    VKF_CHECK(check_count(key, values.size()));
    for (int64_t value : values) {
      if (value >= least && value <= most) continue;
      return invalid_file(message({"[", key, "] in ", config_.where(), " holds ", value,
                                   ", but must lie between ", least, " and ", most}));
    }
    return values;
  }
  Result<std::vector<bool>> flags(const std::string& key, const std::vector<bool>& fallback) const {
    VKF_ASSIGN(std::vector<bool> values, config_.get_bool_list_or(key, fallback));
    VKF_CHECK(check_count(key, values.size()));
    return values;
  }
  Result<std::vector<double>> ratios(const std::string& key,
                                     const std::vector<double>& fallback) const {
    VKF_ASSIGN(std::vector<double> values, config_.get_double_list_or(key, fallback));
    VKF_CHECK(check_count(key, values.size()));
    return values;
  }
  Status check_count(const std::string& key, size_t count) const {
    if (count == stages_) return {};
    return invalid_file(
        message({"[", key, "] in ", config_.where(), " has ", count, " values, but [depth] has ",
                 stages_, " stages; give one for each"}));
  }

 private:
  const JsonConfig& config_;
  size_t stages_;
};

ConvWindow square_window(int64_t kernel, int64_t stride, int64_t pad) {
  ConvWindow window;
  window.kernel_height = window.kernel_width = static_cast<uint32_t>(kernel);
  window.stride_height = window.stride_width = static_cast<uint32_t>(stride);
  window.pad_top = window.pad_left = static_cast<uint32_t>(pad);
  return window;
}

Status read_windows(const JsonConfig& config, const StageLists& lists,
                    std::vector<CvtStage>& stages) {
  VKF_ASSIGN(auto patch, lists.sizes("patch_sizes", {7, 3, 3}, 1, kMostCvtKernel));
  VKF_ASSIGN(auto stride, lists.sizes("patch_stride", {4, 2, 2}, 1, kMostCvtKernel));
  VKF_ASSIGN(auto padding, lists.sizes("patch_padding", {2, 1, 1}, 0, kMostCvtKernel));
  VKF_ASSIGN(auto kernel, lists.sizes("kernel_qkv", {3, 3, 3}, 1, kMostCvtKernel));
  VKF_ASSIGN(auto stride_q, lists.sizes("stride_q", {1, 1, 1}, 1, kMostCvtKernel));
  VKF_ASSIGN(auto padding_q, lists.sizes("padding_q", {1, 1, 1}, 0, kMostCvtKernel));
  VKF_ASSIGN(auto stride_kv, lists.sizes("stride_kv", {2, 2, 2}, 1, kMostCvtKernel));
  VKF_ASSIGN(auto padding_kv, lists.sizes("padding_kv", {1, 1, 1}, 0, kMostCvtKernel));
  for (size_t s = 0; s < stages.size(); ++s) {
    // A query for every token, because their outputs are added to the tokens.
    if (stride_q[s] != 1 || 2 * padding_q[s] + 1 != kernel[s]) {
      return unsupported(
          message({"[stride_q] in ", config.where(), " is ", stride_q[s], " and [padding_q] ",
                   padding_q[s], " for a kernel of ", kernel[s], " in stage ", s,
                   "; supported is a stride of 1 with a padding that keeps the grid's size"}));
    }
    stages[s].patches.rows = "stage." + std::to_string(s) + ".patches";
    stages[s].patches.norm = stages[s].patches.rows + ".norm";
    stages[s].patches.epsilon = kCvtEpsilon;
    stages[s].patches.window = square_window(patch[s], stride[s], padding[s]);
    stages[s].query = square_window(kernel[s], 1, padding_q[s]);
    stages[s].key_value = square_window(kernel[s], stride_kv[s], padding_kv[s]);
  }
  return {};
}

Status read_sizes(const JsonConfig& config, const StageLists& lists,
                  std::vector<CvtStage>& stages) {
  VKF_ASSIGN(int64_t channels, get_size_or(config, "num_channels", 3, 4096));
  VKF_ASSIGN(auto depth, lists.sizes("depth", {1, 2, 10}, 1, kMostLayers));
  VKF_ASSIGN(auto width, lists.sizes("embed_dim", {64, 192, 384}, 1, kMostWidth));
  VKF_ASSIGN(auto heads, lists.sizes("num_heads", {1, 3, 6}, 1, kMostWidth));
  VKF_ASSIGN(auto ratio, lists.ratios("mlp_ratio", {4.0, 4.0, 4.0}));
  VKF_ASSIGN(auto bias, lists.flags("qkv_bias", {true, true, true}));
  VKF_ASSIGN(auto class_token, lists.flags("cls_token", {false, false, true}));
  for (size_t s = 0; s < stages.size(); ++s) {
    CvtStage& stage = stages[s];
    VKF_CHECK(head_width(config, width[s], heads[s]));
    const double ffn = static_cast<double>(width[s]) * ratio[s];
    if (!(ffn >= 1 && ffn <= static_cast<double>(kMostWidth))) {
      return invalid_file(
          message({"[mlp_ratio] in ", config.where(), " makes the feed-forward layers of stage ", s,
                   " ", ffn, " wide, but the width must lie between 1 and ", kMostWidth}));
    }
    if (class_token[s] && width[s] != width.back()) {
      return unsupported(
          message({"[cls_token] in ", config.where(), " gives stage ", s, " of width ", width[s],
                   " a class token of the last stage's width, ", width.back(),
                   "; only a stage of that width can have one"}));
    }
    stage.channels = s == 0 ? channels : width[s - 1];
    stage.width = width[s];
    stage.heads = heads[s];
    stage.depth = depth[s];
    stage.ffn = static_cast<int64_t>(ffn);
    stage.bias = bias[s] ? ProjectionBias::kYes : ProjectionBias::kNo;
    stage.class_tokens = class_token[s] ? 1 : 0;
  }
  return {};
}

Result<std::vector<CvtStage>> read_stages(const JsonConfig& config) {
  VKF_ASSIGN(std::vector<int64_t> depth, config.get_int_list_or("depth", {1, 2, 10}));
  if (depth.empty() || depth.size() > kMostCvtStages) {
    return invalid_file(message({"[depth] in ", config.where(), " lists ", depth.size(),
                                 " stages, but there must be 1 to ", kMostCvtStages}));
  }
  const StageLists lists(config, depth.size());
  std::vector<CvtStage> stages(depth.size());
  VKF_CHECK(read_sizes(config, lists, stages));
  VKF_CHECK(read_windows(config, lists, stages));
  VKF_ASSIGN(std::vector<std::string> methods,
             config.get_string_list_or("qkv_projection_method",
                                       std::vector<std::string>(depth.size(), "dw_bn")));
  VKF_CHECK(lists.check_count("qkv_projection_method", methods.size()));
  for (const std::string& method : methods) {
    if (method == "dw_bn") continue;
    return unsupported(message({"[qkv_projection_method] in ", config.where(), " is '", method,
                                "'; the cvt family supports dw_bn"}));
  }
  return stages;
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_cvt(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(std::vector<CvtStage> stages, read_stages(config));
  ModelFacts facts{.family = "cvt", .kind = ModelKind::kEncoder, .source = SourceKind::kPictures};
  VKF_CHECK(read_picture_head(config, "CvtModel", facts));
  facts.width = stages.back().width;
  facts.grid.channels = stages.front().channels;
  for (const CvtStage& stage : stages) {
    facts.encoder_layers += stage.depth;
    facts.encoder_heads = std::max(facts.encoder_heads, stage.heads);
  }
  return std::unique_ptr<ModelFamily>(new Cvt(std::move(facts), std::move(stages)));
}

}  // namespace vkformer
