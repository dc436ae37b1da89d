// DETR (Carion et al., 2020): features of a convolutional backbone through an encoder, and learned
// queries that a decoder makes objects of. Queries and keys see positions, values do not. Pictures
// may have any size.
#include <cmath>
#include <numbers>

#include "base/message.h"
#include "model/blocks/detection_head.h"
#include "model/blocks/resnet.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/mask_input.h"
#include "model/weight_rows.h"
#include "ops/combine.h"
#include "ops/gather_rows.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr int64_t kMostQueries = 1 << 16;
constexpr int64_t kLearnedPlaces = 50;  // rows, and columns, that learned positions know
constexpr const char* kFeatureMask = "feature_mask";
constexpr const char* kFeaturePositions = "feature_positions";

struct DetrConfig {
  ResNet backbone;
  StackConfig encoder;
  StackConfig decoder;
  int64_t queries = 100;
  bool learned_positions = false;
  bool norms_layers = false;  // the decoder's last norm after each of its layers as well
};

class Detr : public ModelFamily {
 public:
  Detr(ModelFacts facts, DetrConfig config) : facts_(std::move(facts)), c_(std::move(config)) {}

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  std::vector<std::string> input_names() const override { return {"pixel_mask"}; }
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  DetectionHead head() const {
    return {.width = c_.encoder.width, .classes = static_cast<int64_t>(facts_.labels.size())};
  }
  void add_layer_rows(const StackConfig& stack, const Checkpoint& checkpoint,
                      const std::string& from, WeightTable& table) const;
  std::vector<float> positions_of(std::span<const uint8_t> kept, const GridSize& grid) const;
  Result<TensorId> decode(ModelBuilder& b, const StackRun& run) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  DetrConfig c_;
  std::string prefix_;
  std::vector<float> rows_;     // (50, D / 2), of learned positions
  std::vector<float> columns_;  // the same
};

Status Detr::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, "model.", "query_position_embeddings.weight");
  if (!c_.learned_positions) return {};
  const Shape shape = {kLearnedPlaces, c_.encoder.width / 2};
  const std::string from = prefix_ + "position_embedding.";
  const std::string old = prefix_ + "backbone.position_embedding.";
  const auto name = [&](const std::string& table) {
    return first_present(checkpoint, {old + table, from + table});
  };
  VKF_ASSIGN(rows_, read_floats(checkpoint, name("row_embeddings.weight"), shape));
  VKF_ASSIGN(columns_, read_floats(checkpoint, name("column_embeddings.weight"), shape));
  return {};
}

void Detr::add_layer_rows(const StackConfig& s, const Checkpoint& checkpoint,
                          const std::string& from, WeightTable& table) const {
  const int64_t d = s.width;
  // Version 5 of the library may write its own names.
  const auto module = [&](const std::string& old, const std::string& now) {
    return checkpoint.find(now + ".weight") != nullptr ? now : old;
  };
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string layer = from + std::to_string(i) + ".";
    const std::string own = layer + "self_attn.";
    table.rows.push_back(norm_row(to + ".self.norm", layer + "self_attn_layer_norm", d));
    table.rows.push_back(linear_row(to + ".self.qk", {own + "q_proj", own + "k_proj"}, 2 * d, d));
    table.rows.push_back(linear_row(to + ".self.v", {own + "v_proj"}, d, d));
    table.rows.push_back(
        linear_row(to + ".self.out", {module(own + "out_proj", own + "o_proj")}, d, d));
    if (s.cross == StackConfig::Cross::kYes) {
      const std::string cross = layer + "encoder_attn.";
      table.rows.push_back(norm_row(to + ".cross.norm", layer + "encoder_attn_layer_norm", d));
      for (const char* part : {"q", "k", "v"}) {
        table.rows.push_back(linear_row(to + ".cross." + part, {cross + part + "_proj"}, d, d));
      }
      table.rows.push_back(
          linear_row(to + ".cross.out", {module(cross + "out_proj", cross + "o_proj")}, d, d));
    }
    table.rows.push_back(norm_row(to + ".ffn.norm", layer + "final_layer_norm", d));
    table.rows.push_back(
        linear_row(to + ".ffn.up", {module(layer + "fc1", layer + "mlp.fc1")}, s.ffn, d));
    table.rows.push_back(
        linear_row(to + ".ffn.down", {module(layer + "fc2", layer + "mlp.fc2")}, d, s.ffn));
  }
}

Result<WeightTable> Detr::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  const int64_t d = c_.encoder.width;
  const std::string backbone = prefix_ + "backbone.";
  const bool now = checkpoint.find(backbone + "model.embedder.embedder.convolution.weight") ||
                   checkpoint.find(backbone + "model.conv1.weight");
  add_resnet_rows(c_.backbone, checkpoint, backbone + (now ? "model." : "conv_encoder.model."),
                  table);
  table.rows.push_back(
      linear_row("features", {prefix_ + "input_projection"}, d, c_.backbone.width()));
  table.rows.push_back(
      table_row("queries", {prefix_ + "query_position_embeddings.weight"}, {c_.queries}, d));
  add_layer_rows(c_.encoder, checkpoint, prefix_ + "encoder.layers.", table);
  add_layer_rows(c_.decoder, checkpoint, prefix_ + "decoder.layers.", table);
  table.rows.push_back(norm_row("decoder.norm", prefix_ + "decoder.layernorm", d));
  if (facts_.head == HeadKind::kObjects) add_detection_rows(head(), table);
  table.ignored.insert(table.ignored.end(),
                       {prefix_ + "*position_embedding.row_embeddings.weight",
                        prefix_ + "*position_embedding.column_embeddings.weight",
                        "class_labels_classifier.*", "bbox_predictor.*"});
  return table;
}

// What interpolate's nearest source is, with its arithmetic.
int64_t nearest_source(int64_t at, int64_t from, int64_t to) {
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  return std::min(static_cast<int64_t>(std::floor(static_cast<float>(at) * scale)), from - 1);
}

// Sines and cosines of `place`, a row's or a column's, in turn.
void add_sines(double place, int64_t count, std::vector<float>& values) {
  constexpr double kTemperature = 10000.0;
  for (int64_t i = 0; i < count; ++i) {
    const double power = static_cast<double>(i / 2 * 2) / static_cast<double>(count);
    const double angle = place / std::pow(kTemperature, power);
    values.push_back(static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle)));
  }
}

// (S, D) of one picture, of which `kept` (S) says what is no padding.
std::vector<float> Detr::positions_of(std::span<const uint8_t> kept, const GridSize& grid) const {
  const int64_t half = c_.encoder.width / 2;
  std::vector<float> values;
  values.reserve(static_cast<size_t>(grid.count() * c_.encoder.width));
  if (c_.learned_positions) {
    const auto width = static_cast<ptrdiff_t>(half);
    for (int64_t p = 0; p < grid.count(); ++p) {
      const auto column = columns_.begin() + p % grid.width * width;
      const auto row = rows_.begin() + p / grid.width * width;
      values.insert(values.end(), column, column + width);
      values.insert(values.end(), row, row + width);
    }
    return values;
  }
  // How many pixels are kept up to each one, down its column and along its row.
  std::vector<double> down(kept.size()), along(kept.size());
  for (int64_t p = 0; p < grid.count(); ++p) {
    const auto at = static_cast<size_t>(p);
    const auto above = at - static_cast<size_t>(grid.width);
    down[at] = kept[at] + (p < grid.width ? 0.0 : down[above]);
    along[at] = kept[at] + (p % grid.width == 0 ? 0.0 : along[at - 1]);
  }
  constexpr double kEpsilon = 1e-6;
  for (int64_t p = 0; p < grid.count(); ++p) {
    const auto at = static_cast<size_t>(p);
    const double last_down =
        down[static_cast<size_t>((grid.height - 1) * grid.width + p % grid.width)];
    const double last_along = along[static_cast<size_t>((p / grid.width + 1) * grid.width - 1)];
    add_sines(down[at] / (last_down + kEpsilon) * 2.0 * std::numbers::pi, half, values);
    add_sines(along[at] / (last_along + kEpsilon) * 2.0 * std::numbers::pi, half, values);
  }
  return values;
}

Status Detr::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  const ForwardShape& s = result.shape;
  const GridSize grid = feature_grid(c_.backbone, {s.height, s.width});
  if (c_.learned_positions && (grid.height > kLearnedPlaces || grid.width > kLearnedPlaces)) {
    return invalid_argument(
        message({"[pixel_values] of ", s.height, " x ", s.width, " pixels make ", grid.height,
                 " x ", grid.width, " features, but this model has positions for ", kLearnedPlaces,
                 " x ", kLearnedPlaces, "; give smaller pictures."}));
  }
  std::vector<uint8_t> kept(static_cast<size_t>(s.batch * grid.count()), 1);
  const auto found = inputs.find("pixel_mask");
  result.shape.more = {found != inputs.end() ? 1 : 0};
  if (found != inputs.end()) {
    if (found->second.shape != Shape{s.batch, s.height, s.width}) {
      return invalid_argument(
          message({"[pixel_mask] has shape ", shape_text(found->second.shape), ", but must be ",
                   shape_text({s.batch, s.height, s.width}), "."}));
    }
    VKF_ASSIGN(const std::vector<uint8_t> pixels, mask_flags("pixel_mask", found->second));
    for (size_t i = 0; i < kept.size(); ++i) {
      const auto p = static_cast<int64_t>(i) % grid.count();
      const int64_t row = nearest_source(p / grid.width, s.height, grid.height);
      const int64_t column = nearest_source(p % grid.width, s.width, grid.width);
      const int64_t picture = static_cast<int64_t>(i) / grid.count();
      kept[i] = pixels[static_cast<size_t>((picture * s.height + row) * s.width + column)];
    }
    result.words[kFeatureMask] = pack_key_mask(kept, s.batch, grid.count());
  }
  std::vector<float> positions;
  for (int64_t i = 0; i < s.batch; ++i) {
    const auto count = static_cast<size_t>(grid.count());
    const std::vector<float> own = positions_of(
        std::span<const uint8_t>(kept).subspan(static_cast<size_t>(i) * count, count), grid);
    positions.insert(positions.end(), own.begin(), own.end());
  }
  result.words[kFeaturePositions] = float_words(positions);
  return {};
}

// Queries, which begin as nothing but their positions. `run` has batch, memory and its keys.
Result<TensorId> Detr::decode(ModelBuilder& b, const StackRun& given) const {
  Graph& g = b.graph();
  StackRun run = given;
  run.tokens = c_.queries;
  const int64_t rows = run.batch * c_.queries;
  g.set_scope("queries");
  VKF_ASSIGN(const TensorId table, b.table("queries"));
  std::vector<uint32_t> order;
  for (int64_t i = 0; i < rows; ++i) order.push_back(static_cast<uint32_t>(i % c_.queries));
  const TensorId indices =
      b.host_tensor("queries.order", DType::kU32, {run.batch, c_.queries}, std::move(order));
  VKF_ASSIGN(run.placed, add_gather_rows(g, {.x = table, .indices = indices}));
  const TensorId nothing =
      b.host_floats("queries.nothing", {run.batch, c_.queries, c_.decoder.width},
                    std::vector<float>(static_cast<size_t>(rows * c_.decoder.width), 0.0f));
  if (c_.norms_layers) {
    run.tapped = StackRun::Tapped::kOutputs;
    run.after = [&](int64_t, TensorId, TensorId output) {
      return add_named_norm(b, c_.decoder, "decoder.norm", output);
    };
  }
  return add_stack(b, c_.decoder, run, nothing);
}

Status Detr::build_forward(ModelBuilder& b, const ForwardShape& shape,
                           const ForwardTaps& taps) const {
  Graph& g = b.graph();
  const int64_t d = c_.encoder.width;
  const TensorId pixels = add_pixel_values(b, c_.backbone.channels, shape);
  VKF_ASSIGN(const FeatureMap features, add_resnet(b, c_.backbone, pixels));
  VKF_ASSIGN(const TensorId x, add_named_linear(b, "features", features.states));
  const int64_t count = features.grid.count();
  const TensorId positions =
      g.add_external(kFeaturePositions, DType::kF32, {shape.batch, count, d});
  b.feed(kFeaturePositions, positions);
  const bool masked = !shape.more.empty() && shape.more[0] != 0;
  StackRun run{.batch = shape.batch, .tokens = count, .taps = taps, .placed = positions};
  if (masked) run.terms = add_stack_terms(b, c_.encoder, kFeatureMask, shape.batch, count);
  VKF_ASSIGN(const TensorId memory, add_stack(b, c_.encoder, run, x));
  b.mark_output(memory, "encoder_last_hidden_state");
  g.set_scope("memory.placed");
  VKF_ASSIGN(const TensorId keys, add_combine(g, memory, positions, {}));
  StackRun decoding{.batch = shape.batch, .taps = taps, .memory_keys = keys, .memory = memory};
  decoding.source = count;
  decoding.source_mask = run.terms.words;
  VKF_ASSIGN(const TensorId states, decode(b, decoding));
  b.mark_output(states, "last_hidden_state");
  if (facts_.head != HeadKind::kObjects) return {};
  return add_detection_head(b, head(), states);
}

Status read_detr_head(const JsonConfig& config, ModelFacts& facts) {
  VKF_ASSIGN(facts.architecture, get_architecture(config, "DetrModel"));
  if (facts.architecture == "DetrModel") return {};
  facts.head = head_of(facts.architecture);
  if (facts.architecture != "DetrForObjectDetection") {
    return unsupported(
        message({"[architectures] of ", config.where(), " names '", facts.architecture,
                 "', whose head this family does not have; supported are "
                 "DetrModel and DetrForObjectDetection."}));
  }
  VKF_ASSIGN(facts.labels, get_labels(config));
  return {};
}

Result<ResNet> read_backbone(const JsonConfig& config) {
  VKF_ASSIGN(const bool dilated, config.get_bool_or("dilation", false));
  if (dilated) {
    return unsupported(message({"[dilation] of ", config.where(),
                                " is true, but a dilated backbone is not supported; take a "
                                "checkpoint without DC5."}));
  }
  VKF_ASSIGN(const int64_t channels, get_size_or(config, "num_channels", 3, kMostWidth));
  VKF_ASSIGN(const std::string name, config.get_string_or("backbone", "resnet50"));
  if (!config.has("backbone_config")) return named_resnet(name, channels);
  const JsonConfig backbone = config.object("backbone_config");
  VKF_CHECK(backbone.status());
  VKF_ASSIGN(const std::string type, backbone.get_string_or("model_type", "resnet"));
  if (type == "resnet") return read_resnet(backbone);
  if (type == "timm_backbone") {
    VKF_ASSIGN(const std::string own, backbone.get_string_or("backbone", name));
    return named_resnet(own, channels);
  }
  return unsupported(message({"[backbone_config.model_type] of ", config.where(), " is '", type,
                              "'; supported are resnet and timm_backbone."}));
}

Status read_detr_stack(const JsonConfig& config, const std::string& rows, StackConfig& stack) {
  stack.rows = rows;
  stack.taps = rows + "_";
  VKF_ASSIGN(stack.width, get_size_or(config, "d_model", 256, kMostWidth));
  VKF_ASSIGN(stack.layers, get_size_or(config, rows + "_layers", 6, kMostLayers));
  VKF_ASSIGN(stack.heads, get_size_or(config, rows + "_attention_heads", 8, kMostWidth));
  VKF_ASSIGN(stack.ffn, get_size_or(config, rows + "_ffn_dim", 2048, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  VKF_ASSIGN(stack.activation, get_activation(config, "activation_function", "relu"));
  return {};
}

Status read_detr_positions(const JsonConfig& config, DetrConfig& c) {
  VKF_ASSIGN(const std::string kind, config.get_string_or("position_embedding_type", "sine"));
  if (kind != "sine" && kind != "learned") {
    return invalid_file(message({"[position_embedding_type] of ", config.where(), " is '", kind,
                                 "', but must be sine or learned."}));
  }
  c.learned_positions = kind == "learned";
  const int64_t parts = c.learned_positions ? 2 : 4;
  if (c.encoder.width % parts == 0) return {};
  return invalid_file(message({"[d_model] of ", config.where(), " is ", c.encoder.width, ", but ",
                               kind, " positions need a multiple of ", parts, "."}));
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_detr(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "detr", .kind = ModelKind::kEncoder, .source = SourceKind::kPictures};
  VKF_CHECK(read_detr_head(config, facts));
  DetrConfig c;
  VKF_ASSIGN(c.backbone, read_backbone(config));
  VKF_CHECK(read_detr_stack(config, "encoder", c.encoder));
  VKF_CHECK(read_detr_stack(config, "decoder", c.decoder));
  c.decoder.cross = StackConfig::Cross::kYes;
  c.decoder.final_norm = StackConfig::FinalNorm::kYes;
  VKF_CHECK(read_detr_positions(config, c));
  VKF_ASSIGN(c.queries, get_size_or(config, "num_queries", 100, kMostQueries));
  VKF_ASSIGN(c.norms_layers, config.get_bool_or("auxiliary_loss", false));
  facts.width = c.encoder.width;
  facts.encoder_layers = c.encoder.layers;
  facts.decoder_layers = c.decoder.layers;
  facts.encoder_heads = c.encoder.heads;
  facts.decoder_heads = c.decoder.heads;
  facts.grid.channels = c.backbone.channels;
  return std::unique_ptr<ModelFamily>(new Detr(std::move(facts), std::move(c)));
}

}  // namespace vkformer
