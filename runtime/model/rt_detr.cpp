// RT-DETR (Zhao et al., 2024). Features of three sizes go through a hybrid encoder. Its best places
// become the queries of a decoder with deformable attention. Every layer refines the boxes of the
// one before. The sides of pictures are multiples of 32 pixels.
#include <cmath>
#include <limits>
#include <numeric>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/hybrid_encoder.h"
#include "model/blocks/resnet.h"
#include "model/blocks/stack_attention.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"
#include "ops/combine.h"
#include "ops/deformable_attention.h"
#include "ops/gather_rows.h"
#include "ops/move_columns.h"
#include "ops/select_rows.h"
#include "ops/softmax.h"
#include "params/deformable_attention.h"

namespace vkformer {
namespace {

constexpr int64_t kMostDetrQueries = 1 << 14;
constexpr int64_t kMostAnchorSide = 1 << 15;  // pixels
constexpr double kAnchorSide = 0.05;          // of the largest features' anchors, of the picture's
constexpr double kAnchorMargin = 0.01;        // anchors nearer to an end are not used
// Boxes are refined from logits that have a sigmoid of at least 1e-5 and at most 1 - 1e-5.
constexpr float kMostBoxLogit = 11.512925f;  // ln 1e5

struct RtDetrConfig {
  ResNet backbone;
  HybridEncoder encoder;
  StackConfig decoder;
  int64_t points = 4;  // that a head reads of each size
  int64_t queries = 300;
  float epsilon = 1e-5f;               // of batch norms
  std::vector<GridSize> anchor_grids;  // of pictures of one size; empty: of any
};

class RtDetr : public ModelFamily {
 public:
  RtDetr(ModelFacts facts, RtDetrConfig config) : facts_(std::move(facts)), c_(std::move(config)) {}

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  std::vector<std::string> input_names() const override { return {"pixel_mask"}; }
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  // What the decoder reads, and where its boxes begin.
  struct Queries {
    TensorId states = kNoTensor;  // (B, Q, D)
    TensorId boxes = kNoTensor;   // (B, Q, 4), before the sigmoid
  };

  int64_t samples() const {
    return c_.decoder.heads * static_cast<int64_t>(c_.encoder.levels()) * c_.points;
  }
  bool detects() const { return facts_.head == HeadKind::kObjects; }
  void add_decoder_rows(const Checkpoint& checkpoint, const std::string& prefix,
                        WeightTable& table) const;
  Result<TensorId> flatten(ModelBuilder& b, const std::vector<FeatureMap>& maps) const;
  Status check_anchors(const std::vector<GridSize>& grids) const;
  Result<Queries> choose(ModelBuilder& b, TensorId memory,
                         const std::vector<GridSize>& grids) const;
  Result<TensorId> read_memory(const LayerSite& site, TensorId x, TensorId boxes, TensorId memory,
                               const std::vector<GridSize>& grids) const;
  Result<TensorId> decode_layer(const LayerSite& site, TensorId x, TensorId boxes, TensorId memory,
                                const std::vector<GridSize>& grids) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  RtDetrConfig c_;
};

// ---- weights

// Rows `row`.0 to `row`.n of a run of linear layers with ReLU in between.
void add_run_rows(const std::string& row, const std::string& module,
                  const std::vector<int64_t>& widths, WeightTable& table) {
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const std::string number = std::to_string(i);
    table.rows.push_back(
        linear_row(row + "." + number, {module + ".layers." + number}, widths[i + 1], widths[i]));
  }
}

Result<TensorId> add_run(ModelBuilder& b, const std::string& row, int64_t layers, TensorId x) {
  for (int64_t i = 0; i < layers; ++i) {
    const auto kind = i + 1 < layers ? ActivationKind::kRelu : ActivationKind::kNone;
    VKF_ASSIGN(x, add_named_linear(b, row + "." + std::to_string(i), x, {.activation = kind}));
  }
  return x;
}

void RtDetr::add_decoder_rows(const Checkpoint& checkpoint, const std::string& prefix,
                              WeightTable& table) const {
  const StackConfig& s = c_.decoder;
  const int64_t d = s.width;
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string layer = prefix + "decoder.layers." + std::to_string(i) + ".";
    const std::string own = layer + "self_attn.", cross = layer + "encoder_attn.";
    const auto module = [&](const std::string& old, const std::string& now) {
      return renamed_module(checkpoint, layer + old, layer + now);
    };
    table.rows.push_back(norm_row(to + ".self.norm", layer + "self_attn_layer_norm", d));
    table.rows.push_back(linear_row(to + ".self.qk", {own + "q_proj", own + "k_proj"}, 2 * d, d));
    table.rows.push_back(linear_row(to + ".self.v", {own + "v_proj"}, d, d));
    table.rows.push_back(
        linear_row(to + ".self.out", {module("self_attn.out_proj", "self_attn.o_proj")}, d, d));
    table.rows.push_back(norm_row(to + ".cross.norm", layer + "encoder_attn_layer_norm", d));
    WeightRow sampling =
        linear_row(to + ".cross.samples", {cross + "sampling_offsets", cross + "attention_weights"},
                   3 * samples(), d);
    sampling.source_rows = {2 * samples(), samples()};
    table.rows.push_back(std::move(sampling));
    table.rows.push_back(linear_row(to + ".cross.value", {cross + "value_proj"}, d, d));
    table.rows.push_back(linear_row(to + ".cross.out", {cross + "output_proj"}, d, d));
    table.rows.push_back(norm_row(to + ".ffn.norm", layer + "final_layer_norm", d));
    table.rows.push_back(linear_row(to + ".ffn.up", {module("fc1", "mlp.fc1")}, s.ffn, d));
    table.rows.push_back(linear_row(to + ".ffn.down", {module("fc2", "mlp.fc2")}, d, s.ffn));
    if (!detects()) continue;
    add_run_rows(to + ".boxes", prefix + "decoder.bbox_embed." + std::to_string(i), {d, d, d, 4},
                 table);
  }
  add_run_rows("positions", prefix + "decoder.query_pos_head", {4, 2 * d, d}, table);
  if (!detects()) return;
  const std::string classes = "decoder.class_embed." + std::to_string(s.layers - 1);
  table.rows.push_back(
      linear_row("classes", {prefix + classes}, static_cast<int64_t>(facts_.labels.size()), d));
}

Result<WeightTable> RtDetr::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  const int64_t d = c_.decoder.width;
  const std::string prefix = name_prefix(checkpoint, "model.", "enc_output.0.weight");
  add_resnet_rows(c_.backbone, checkpoint, prefix + "backbone.model.", table);
  add_hybrid_rows(c_.encoder, checkpoint, prefix, table);
  for (size_t i = 0; i < c_.encoder.levels(); ++i) {
    const std::string number = std::to_string(i);
    const std::string from = prefix + "decoder_input_proj." + number + ".";
    WeightRow row =
        conv_norm_row("memory." + number, from + "0", from + "1", d, c_.encoder.stack.width);
    row.batch_norm_epsilon = c_.epsilon;
    table.rows.push_back(std::move(row));
  }
  table.rows.push_back(linear_row("chosen", {prefix + "enc_output.0"}, d, d));
  table.rows.push_back(norm_row("chosen.norm", prefix + "enc_output.1", d));
  table.rows.push_back(linear_row("scores", {prefix + "enc_score_head"},
                                  static_cast<int64_t>(facts_.labels.size()), d));
  add_run_rows("proposals", prefix + "enc_bbox_head", {d, d, d, 4}, table);
  add_decoder_rows(checkpoint, prefix, table);
  // Heads of layers before the last are for training, and older files have all heads twice.
  table.ignored.insert(
      table.ignored.end(),
      {prefix + "*num_batches_tracked", prefix + "denoising_class_embed.weight",
       prefix + "decoder.class_embed.*", prefix + "decoder.bbox_embed.*", "class_embed.*",
       "bbox_embed.*", prefix + "anchors", prefix + "valid_mask"});
  return table;
}

// ---- graph

Status RtDetr::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  // The reference implementation takes a mask as well, and nothing of it comes into a result.
  const auto found = inputs.find("pixel_mask");
  const ForwardShape& s = result.shape;
  if (found == inputs.end() || found->second.shape == Shape{s.batch, s.height, s.width}) return {};
  return invalid_argument(
      message({"[pixel_mask] has shape ", shape_text(found->second.shape), ", but must be ",
               shape_text({s.batch, s.height, s.width}), "."}));
}

// The features of all sizes, one after the other: (B, S, D).
Result<TensorId> RtDetr::flatten(ModelBuilder& b, const std::vector<FeatureMap>& maps) const {
  Graph& g = b.graph();
  const int64_t d = c_.decoder.width;
  const int64_t batch = g.tensor(maps[0].states).shape[0];
  int64_t tokens = 0, first = 0;
  for (const FeatureMap& map : maps) tokens += map.grid.count();
  const TensorId memory = g.add_temporary("memory", DType::kF32, {batch, tokens, d});
  for (size_t i = 0; i < maps.size(); ++i) {
    const int64_t count = maps[i].grid.count();
    VKF_ASSIGN(const FeatureMap own, add_feature_conv(b, {"memory." + std::to_string(i)}, maps[i]));
    g.tensor(own.states).shape = {batch, count * d};
    VKF_CHECK(add_place_columns(g, own.states, memory,
                                {.offset = u32(first * d), .stride = u32(tokens * d)}));
    first += count;
  }
  return memory;
}

Status RtDetr::check_anchors(const std::vector<GridSize>& grids) const {
  for (size_t i = 0; i < c_.anchor_grids.size(); ++i) {
    const GridSize& own = c_.anchor_grids[i];
    if (own.height == grids[i].height && own.width == grids[i].width) continue;
    return invalid_argument(
        message({"[pixel_values] make features of ", grids[i].height, " x ", grids[i].width,
                 ", but the anchors of this model are for ", own.height, " x ", own.width,
                 "; give pictures of its anchor_image_size."}));
  }
  return {};
}

// An anchor of every feature: logits of its box, and whether it is used.
struct Anchors {
  std::vector<float> logits;  // (S, 4)
  std::vector<uint8_t> used;  // (S)
  bool all_used = true;
};

Anchors anchors_of(const std::vector<GridSize>& grids) {
  Anchors anchors;
  for (size_t level = 0; level < grids.size(); ++level) {
    const GridSize& grid = grids[level];
    const double side = kAnchorSide * std::pow(2.0, static_cast<double>(level));
    for (int64_t p = 0; p < grid.count(); ++p) {
      const auto part = [](int64_t at, int64_t of) {
        return (static_cast<double>(at) + 0.5) / static_cast<double>(of);
      };
      const double box[] = {part(p % grid.width, grid.width), part(p / grid.width, grid.height),
                            side, side};
      bool used = true;
      for (const double value : box) {
        used = used && value > kAnchorMargin && value < 1.0 - kAnchorMargin;
      }
      for (const double value : box) {
        // What is not used is as far out as can be, so that its box is the whole picture's corner.
        anchors.logits.push_back(used ? static_cast<float>(std::log(value / (1.0 - value)))
                                      : std::numeric_limits<float>::max());
      }
      anchors.used.push_back(used);
      anchors.all_used = anchors.all_used && used;
    }
  }
  return anchors;
}

Result<RtDetr::Queries> RtDetr::choose(ModelBuilder& b, TensorId memory,
                                       const std::vector<GridSize>& grids) const {
  Graph& g = b.graph();
  const Shape shape = g.tensor(memory).shape;
  const int64_t batch = shape[0], tokens = shape[1];
  if (tokens < c_.queries) {
    return invalid_argument(message({"[pixel_values] make ", tokens,
                                     " features, but this model "
                                     "has ",
                                     c_.queries, " queries; give larger pictures."}));
  }
  const Anchors anchors = anchors_of(grids);
  TensorId x = memory;
  if (!anchors.all_used) {
    std::vector<uint32_t> rows;
    for (int64_t i = 0; i < batch * tokens; ++i) {
      rows.push_back(anchors.used[static_cast<size_t>(i % tokens)] != 0 ? u32(i) : ~0u);
    }
    g.set_scope("memory.used");
    const TensorId indices =
        b.host_tensor("memory.used", DType::kU32, {batch, tokens}, std::move(rows));
    VKF_ASSIGN(x, add_gather_rows(g, {.x = memory, .indices = indices}));
  }
  VKF_ASSIGN(x, add_named_linear(b, "chosen", x));
  VKF_ASSIGN(x, add_named_norm(b, c_.decoder, "chosen.norm", x));
  VKF_ASSIGN(const TensorId scores, add_named_linear(b, "scores", x));
  g.set_scope("queries");
  VKF_ASSIGN(const TensorId best, add_select_rows(g, scores, {.k = u32(c_.queries)}));
  Queries queries;
  VKF_ASSIGN(queries.states, add_gather_rows(g, {.x = x, .indices = best}));
  std::vector<float> logits;
  for (int64_t i = 0; i < batch; ++i) {
    logits.insert(logits.end(), anchors.logits.begin(), anchors.logits.end());
  }
  const TensorId all = b.host_floats("anchors", {batch, tokens, 4}, logits);
  VKF_ASSIGN(const TensorId anchored, add_gather_rows(g, {.x = all, .indices = best}));
  VKF_ASSIGN(const TensorId offsets, add_run(b, "proposals", 3, queries.states));
  VKF_ASSIGN(queries.boxes, add_combine(g, offsets, anchored, {}));
  return queries;
}

// The weights of a layer's samples (B, Q, H, L * P), as output cross_attentions.`layer`.
Status add_sample_map(const LayerSite& site, TensorId samples, int64_t count) {
  const AttentionTap tap = tap_of(site, "cross_");
  if (tap.name.empty()) return {};
  Graph& g = site.b.graph();
  const Shape shape = g.tensor(samples).shape;
  const int64_t heads = tap.head < 0 ? site.c.heads : 1;
  const int64_t own = count / site.c.heads;
  const int64_t first = 2 * count + (tap.head < 0 ? 0 : tap.head * own);
  VKF_ASSIGN(TensorId map, add_columns(g, samples, {.offset = u32(first), .stride = u32(3 * count)},
                                       {shape[0], shape[1], heads * own}));
  g.tensor(map).shape = {shape[0], shape[1], heads, own};
  if (tap.result == AttentionWeightsAttrs::Result::kProbabilities) {
    const TensorId no_terms = site.b.host_tensor("no_terms", DType::kU32, {1}, {0u});
    VKF_ASSIGN(map, add_softmax(g, map, no_terms, {}));
  }
  site.b.mark_output(map, tap.name);
  return {};
}

// Deformable attention of x (B, Q, D), which sees positions already.
Result<TensorId> RtDetr::read_memory(const LayerSite& site, TensorId x, TensorId boxes,
                                     TensorId memory, const std::vector<GridSize>& grids) const {
  ModelBuilder& b = site.b;
  const std::string rows = site.rows() + ".cross.";
  VKF_ASSIGN(const TensorId samples, add_named_linear(b, rows + "samples", x));
  VKF_CHECK(add_sample_map(site, samples, this->samples()));
  VKF_ASSIGN(const TensorId value, add_named_linear(b, rows + "value", memory));
  DeformableAttentionAttrs attrs{.heads = u32(c_.decoder.heads), .points = u32(c_.points)};
  for (const GridSize& grid : grids) attrs.levels.push_back({u32(grid.height), u32(grid.width)});
  b.graph().set_scope(site.rows() + ".cross");
  VKF_ASSIGN(const TensorId y,
             add_deformable_attention(b.graph(),
                                      {.value = value, .samples = samples, .boxes = boxes}, attrs));
  return add_named_linear(b, rows + "out", y);
}

Result<TensorId> RtDetr::decode_layer(const LayerSite& site, TensorId x, TensorId boxes,
                                      TensorId memory, const std::vector<GridSize>& grids) const {
  ModelBuilder& b = site.b;
  const std::string rows = site.rows();
  VKF_ASSIGN(TensorId y, add_self_attention(site, x, {}));
  VKF_ASSIGN(x, add_named_norm(b, site.c, rows + ".self.norm", y, x));
  b.graph().set_scope(rows + ".cross.placed");
  VKF_ASSIGN(y, add_combine(b.graph(), x, site.run.placed, {}));
  VKF_ASSIGN(y, read_memory(site, y, boxes, memory, grids));
  VKF_ASSIGN(x, add_named_norm(b, site.c, rows + ".cross.norm", y, x));
  VKF_ASSIGN(y, add_named_linear(b, rows + ".ffn.up", x, {.activation = site.c.activation}));
  VKF_ASSIGN(y, add_named_linear(b, rows + ".ffn.down", y));
  return add_named_norm(b, site.c, rows + ".ffn.norm", y, x);
}

Status RtDetr::build_forward(ModelBuilder& b, const ForwardShape& shape,
                             const ForwardTaps& taps) const {
  Graph& g = b.graph();
  const TensorId pixels = add_pixel_values(b, c_.backbone.channels, shape);
  VKF_ASSIGN(const std::vector<FeatureMap> features, add_resnet_stages(b, c_.backbone, pixels));
  VKF_ASSIGN(const std::vector<FeatureMap> maps, add_hybrid_encoder(b, c_.encoder, features, taps));
  std::vector<GridSize> grids;
  for (const FeatureMap& map : maps) grids.push_back(map.grid);
  VKF_CHECK(check_anchors(grids));
  VKF_ASSIGN(const TensorId memory, flatten(b, maps));
  VKF_ASSIGN(Queries queries, choose(b, memory, grids));
  TensorId x = queries.states;
  g.set_scope("boxes");
  VKF_ASSIGN(TensorId boxes, add_activation(g, queries.boxes, {.kind = ActivationKind::kSigmoid}));
  for (int64_t i = 0; i < c_.decoder.layers; ++i) {
    StackRun run{.batch = shape.batch, .tokens = c_.queries, .taps = taps};
    if (taps.hidden_states == ForwardTaps::Tap::kOn) {
      b.mark_output(x, "decoder_hidden_states." + std::to_string(i));
    }
    VKF_ASSIGN(run.placed, add_run(b, "positions", 2, boxes));
    const LayerSite site{b, c_.decoder, run, i};
    VKF_ASSIGN(x, decode_layer(site, x, boxes, memory, grids));
    if (!detects()) continue;
    const std::string row = c_.decoder.layer_rows(i) + ".boxes";
    VKF_ASSIGN(const TensorId change, add_run(b, row, 3, x));
    VKF_ASSIGN(queries.boxes, add_combine(g, change, queries.boxes, {.most = kMostBoxLogit}));
    VKF_ASSIGN(boxes, add_activation(g, queries.boxes, {.kind = ActivationKind::kSigmoid}));
  }
  b.mark_output(x, "last_hidden_state");
  if (!detects()) return {};
  VKF_ASSIGN(const TensorId logits, add_named_linear(b, "classes", x));
  b.mark_output(logits, "logits");
  b.mark_output(boxes, "pred_boxes");
  return {};
}

// ---- configuration

Status read_rt_detr_head(const JsonConfig& config, ModelFacts& facts) {
  VKF_ASSIGN(facts.architecture, get_architecture(config, "RTDetrModel"));
  VKF_ASSIGN(facts.labels, get_labels(config));
  if (facts.architecture == "RTDetrModel") return {};
  facts.head = head_of(facts.architecture);
  facts.objects = ModelFacts::Objects::kSigmoid;
  if (facts.architecture == "RTDetrForObjectDetection") return {};
  return unsupported(
      message({"[architectures] of ", config.where(), " names '", facts.architecture,
               "', whose head this family does not have; supported are RTDetrModel and "
               "RTDetrForObjectDetection."}));
}

Result<ResNet> read_rt_detr_backbone(const JsonConfig& config) {
  const JsonConfig backbone = config.object("backbone_config");
  VKF_CHECK(backbone.status());
  VKF_ASSIGN(const std::string type, backbone.get_string_or("model_type", "rt_detr_resnet"));
  VKF_ASSIGN(const bool timm, config.get_bool_or("use_timm_backbone", false));
  if (type != "rt_detr_resnet" || timm) {
    return unsupported(
        message({"[backbone_config.model_type] of ", config.where(), " is '",
                 (timm ? "timm_backbone" : type), "'; supported is rt_detr_resnet."}));
  }
  std::vector<int64_t> fallback;
  if (!config.has("backbone_config")) fallback = {2, 3, 4};
  return read_resnet(backbone, ResNet::Form::kPooled, fallback);
}

Status read_detr_layers(const JsonConfig& config, const std::string& part, const char* activation,
                        StackConfig& stack) {
  stack.rows = part;
  stack.taps = part + "_";
  const bool encodes = part == "encoder";
  VKF_ASSIGN(stack.width,
             get_size_or(config, encodes ? "encoder_hidden_dim" : "d_model", 256, kMostWidth));
  VKF_ASSIGN(stack.layers, config.get_int_or(part + "_layers", encodes ? 1 : 6));
  if (stack.layers < (encodes ? 0 : 1) || stack.layers > kMostLayers) {
    return invalid_file(message({"[", part, "_layers] of ", config.where(), " is ", stack.layers,
                                 ", but must be ", (encodes ? 0 : 1), " to ", kMostLayers, "."}));
  }
  VKF_ASSIGN(stack.heads, get_size_or(config, part + "_attention_heads", 8, kMostWidth));
  VKF_ASSIGN(stack.ffn, get_size_or(config, part + "_ffn_dim", 1024, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  VKF_ASSIGN(stack.activation, get_activation(config, part + "_activation_function", activation));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_eps", 1e-5));
  return {};
}

// Which features attend, and where in the backbone the features come from.
Status read_attending(const JsonConfig& config, RtDetrConfig& c) {
  HybridEncoder& e = c.encoder;
  for (const int64_t stage : c.backbone.read) {
    e.channels.push_back(stage == 0 ? c.backbone.stem
                                    : c.backbone.widths[static_cast<size_t>(stage - 1)]);
  }
  const auto levels = static_cast<int64_t>(e.levels());
  VKF_ASSIGN(const auto decoded, config.get_int_list_or("decoder_in_channels", {256, 256, 256}));
  VKF_ASSIGN(const int64_t read, config.get_int_or("num_feature_levels", 3));
  VKF_ASSIGN(const auto encoded, config.get_int_list_or("encoder_in_channels", {512, 1024, 2048}));
  const auto count = static_cast<int64_t>(decoded.size());
  if (read != levels || count != levels || static_cast<int64_t>(encoded.size()) != levels ||
      levels > VKF_MOST_DEFORMABLE_LEVELS) {
    return unsupported(
        message({"[num_feature_levels] of ", config.where(), " is ", read, ", and ", count, " and ",
                 encoded.size(), " sizes have channels, but the backbone gives ", levels,
                 "; supported are as many of each, up to ", VKF_MOST_DEFORMABLE_LEVELS, "."}));
  }
  for (const int64_t channels : decoded) {
    if (channels == e.stack.width) continue;
    return invalid_file(message({"[decoder_in_channels] of ", config.where(), " has ", channels,
                                 ", but must be encoder_hidden_dim, ", e.stack.width, "."}));
  }
  VKF_ASSIGN(const auto attending, config.get_int_list_or("encode_proj_layers", {2}));
  for (const int64_t level : attending) {
    if (level < 0 || level >= levels) {
      return invalid_file(message({"[encode_proj_layers] of ", config.where(), " has ", level,
                                   "; the features are 0 to ", levels - 1, "."}));
    }
    e.attending.push_back(static_cast<size_t>(level));
  }
  return {};
}

Status read_hybrid_encoder(const JsonConfig& config, RtDetrConfig& c) {
  HybridEncoder& e = c.encoder;
  VKF_CHECK(read_detr_layers(config, "encoder", "gelu", e.stack));
  VKF_ASSIGN(const bool before, config.get_bool_or("normalize_before", false));
  if (before) {
    e.stack.order = StackConfig::Order::kPre;
    e.stack.residual = StackConfig::Residual::kNormedFfn;
  }
  VKF_CHECK(read_attending(config, c));
  e.placed = !config.has("eval_size");
  VKF_ASSIGN(e.temperature, config.get_double_or("positional_encoding_temperature", 10000.0));
  VKF_ASSIGN(const double expansion, config.get_double_or("hidden_expansion", 1.0));
  const double inner = static_cast<double>(e.stack.width) * expansion;
  if (!(e.temperature > 0) || e.stack.width % 4 != 0 || !(inner >= 1 && inner <= kMostWidth)) {
    return invalid_file(
        message({"[encoder_hidden_dim], [hidden_expansion] and [positional_encoding_temperature] "
                 "of ",
                 config.where(), " are ", e.stack.width, ", ", expansion, " and ", e.temperature,
                 ", but must be a multiple of 4, a factor that leaves 1 to ", kMostWidth,
                 " channels, and above 0."}));
  }
  e.inner = static_cast<int64_t>(inner);
  VKF_ASSIGN(e.activation, get_activation(config, "activation_function", "silu"));
  VKF_ASSIGN(c.epsilon, get_epsilon(config, "batch_norm_eps", 1e-5));
  e.epsilon = c.epsilon;
  return {};
}

Status read_anchor_grids(const JsonConfig& config, RtDetrConfig& c) {
  if (!config.has("anchor_image_size")) return {};
  VKF_ASSIGN(const GridSize picture,
             read_grid_size(config, "anchor_image_size", 640, kMostAnchorSide));
  VKF_ASSIGN(const auto strides, config.get_int_list_or("feat_strides", {8, 16, 32}));
  for (const int64_t stride : strides) {
    if (stride < 1 || strides.size() != c.encoder.levels()) {
      return invalid_file(message({"[feat_strides] of ", config.where(), " has ", strides.size(),
                                   " strides, of which one is ", stride, ", but must have ",
                                   c.encoder.levels(), " of at least 1."}));
    }
    c.anchor_grids.push_back({picture.height / stride, picture.width / stride});
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_rt_detr(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{
      .family = "rt_detr", .kind = ModelKind::kEncoder, .source = SourceKind::kPictures};
  VKF_CHECK(read_rt_detr_head(config, facts));
  RtDetrConfig c;
  VKF_ASSIGN(c.backbone, read_rt_detr_backbone(config));
  VKF_CHECK(read_hybrid_encoder(config, c));
  VKF_CHECK(read_detr_layers(config, "decoder", "relu", c.decoder));
  VKF_CHECK(read_anchor_grids(config, c));
  VKF_ASSIGN(c.points, get_size_or(config, "decoder_n_points", 4, VKF_MOST_DEFORMABLE_SAMPLES));
  VKF_ASSIGN(c.queries, get_size_or(config, "num_queries", 300, kMostDetrQueries));
  VKF_ASSIGN(const bool learned, config.get_bool_or("learn_initial_query", false));
  if (learned) {
    return unsupported(message({"[learn_initial_query] of ", config.where(),
                                " is true, but learned queries are not supported; take a "
                                "checkpoint whose queries come from the encoder."}));
  }
  const int64_t samples = c.decoder.heads * static_cast<int64_t>(c.encoder.levels()) * c.points;
  if (samples > VKF_MOST_DEFORMABLE_SAMPLES) {
    return unsupported(message({"[decoder_n_points] of ", config.where(), " makes ", samples,
                                " samples of a query, but up to ", VKF_MOST_DEFORMABLE_SAMPLES,
                                " are supported."}));
  }
  facts.width = c.decoder.width;
  facts.encoder_layers = c.encoder.stack.layers * static_cast<int64_t>(c.encoder.attending.size());
  facts.decoder_layers = c.decoder.layers;
  facts.encoder_heads = c.encoder.stack.heads;
  facts.decoder_heads = c.decoder.heads;
  facts.grid.channels = c.backbone.channels;
  return std::unique_ptr<ModelFamily>(new RtDetr(std::move(facts), std::move(c)));
}

}  // namespace vkformer
