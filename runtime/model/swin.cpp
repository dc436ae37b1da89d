#include "model/swin.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "model/blocks/heads.h"
#include "model/family_list.h"
#include "model/weight_rows.h"
#include "ops/activation.h"
#include "ops/gather_rows.h"
#include "ops/relative_positions.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr int64_t kMostSwinStages = 16;
constexpr int64_t kMostWindow = 64;                    // tokens a side
constexpr int64_t kMostSwinBiases = int64_t{1} << 28;  // values of one block
// Norms whose epsilon no configuration sets: after patches and before merging.
constexpr float kFixedEpsilon = 1e-5f;

std::string swin_prefix(const Checkpoint& checkpoint) {
  return name_prefix(checkpoint, "swin.", "embeddings.patch_embeddings.projection.weight");
}

std::string block_source(const std::string& prefix, int64_t stage, int64_t block) {
  return prefix + "encoder.layers." + std::to_string(stage) + ".blocks." + std::to_string(block);
}

}  // namespace

// One block of one pass.
struct SwinEncoder::BlockSite {
  ModelBuilder& b;
  const ForwardTaps& taps;
  int64_t batch = 0;
  int64_t stage = 0;
  int64_t block = 0;
  WindowGrid grid;
  std::string rows;
};

int64_t SwinEncoder::Config::tokens(int64_t height, int64_t width_in_pixels) const {
  const int64_t down = int64_t{1} << (stages() - 1);
  const auto side = [&](int64_t pixels, int64_t patch) {
    return ((pixels + patch - 1) / patch + down - 1) / down;
  };
  return side(height, embedding.patch.height) * side(width_in_pixels, embedding.patch.width);
}

std::string SwinEncoder::block_rows(int64_t stage, int64_t block) const {
  return config_.rows + "stage." + std::to_string(stage) + "." + std::to_string(block);
}

std::string SwinEncoder::merge_name(int64_t stage) const {
  return config_.rows + "merge." + std::to_string(stage);
}

Status SwinEncoder::prepare(const Checkpoint& checkpoint, const std::string& prefix) {
  VKF_ASSIGN(index_, swin_relative_index(config_.window));
  const int64_t side = 2 * config_.window - 1;
  tables_.clear();
  for (int64_t s = 0; s < config_.stages(); ++s) {
    tables_.emplace_back();
    for (int64_t i = 0; i < config_.depth(s); ++i) {
      const std::string attention = block_source(prefix, s, i) + ".attention.";
      const std::string name = first_present(
          checkpoint, {attention + "relative_position_bias.relative_position_bias_table",
                       attention + "self.relative_position_bias_table"});
      VKF_ASSIGN(std::vector<float> table,
                 read_floats(checkpoint, name, {side * side, config_.stage_heads(s)}));
      tables_.back().push_back(std::move(table));
    }
  }
  return {};
}

Status SwinEncoder::add_rows(const Checkpoint& checkpoint, const std::string& prefix,
                             WeightTable& table) const {
  const Config& c = config_;
  const PictureEmbedding& e = c.embedding;
  const std::string from = prefix + "embeddings.";
  table.rows.push_back(linear_row(e.patches, {from + "patch_embeddings.projection"}, c.width,
                                  e.picture.channels * e.patch.count()));
  table.rows.push_back(norm_row(e.patches + ".norm", from + "norm", c.width));
  if (!e.positions.empty()) {
    VKF_ASSIGN(WeightRow row,
               position_row(checkpoint, e, from + "position_embeddings", {}, c.width));
    table.rows.push_back(std::move(row));
  }
  for (int64_t s = 0; s < c.stages(); ++s) {
    const int64_t d = c.stage_width(s);
    for (int64_t i = 0; i < c.depth(s); ++i) {
      const PictureLayer layer{.to = block_rows(s, i),
                               .from = block_source(prefix, s, i),
                               .projection = "attention.self",
                               .width = d,
                               .inner = d,
                               .ffn = c.ffn[static_cast<size_t>(s)],
                               .bias = c.bias};
      add_picture_projection_row(table, checkpoint, layer);
      add_picture_layer_rows(table, checkpoint, layer);
    }
    if (s + 1 == c.stages()) break;
    const std::string merging = prefix + "encoder.layers." + std::to_string(s) + ".downsample.";
    table.rows.push_back(norm_row(merge_name(s) + ".norm", merging + "norm", 4 * d));
    table.rows.push_back(
        plain_linear_row(merge_name(s) + ".linear", {merging + "reduction"}, 2 * d, 4 * d));
  }
  // Positions and biases are read on the host; an index follows from the window's size.
  table.ignored.insert(table.ignored.end(),
                       {from + "position_embeddings", from + "mask_token",
                        "*.relative_position_bias_table", "*.relative_position_index"});
  return {};
}

Result<TensorId> SwinEncoder::embed(ModelBuilder& b, const ForwardShape& shape,
                                    const GridSize& grid) const {
  const PictureEmbedding& e = config_.embedding;
  const TensorId pixels = add_pixel_values(b, e.picture.channels, shape);
  PatchConv conv{.rows = e.patches, .norm = e.patches + ".norm", .epsilon = kFixedEpsilon};
  conv.window.kernel_height = conv.window.stride_height = static_cast<uint32_t>(e.patch.height);
  conv.window.kernel_width = conv.window.stride_width = static_cast<uint32_t>(e.patch.width);
  // The picture is padded with zeros to whole patches.
  conv.window.out_height = static_cast<uint32_t>(grid.height);
  conv.window.out_width = static_cast<uint32_t>(grid.width);
  VKF_ASSIGN(TensorId x, add_patch_conv(b, pixels, {}, conv));
  if (e.positions.empty()) return x;
  if (grid.count() != e.tokens()) {
    return invalid_argument(message(
        {"[pixel_values] makes ", grid.count(), " patches, but this model has positions for ",
         e.tokens(), "; resize the picture to ", e.picture.height, " x ", e.picture.width}));
  }
  std::vector<uint32_t> rows;
  for (int64_t i = 0; i < shape.batch * grid.count(); ++i) rows.push_back(static_cast<uint32_t>(i));
  const TensorId indices = b.host_tensor(e.patches + ".order", DType::kU32,
                                         {shape.batch, grid.count()}, std::move(rows));
  b.graph().set_scope(e.positions);
  VKF_ASSIGN(TensorId table, b.table(e.positions));
  return add_gather_rows(b.graph(), {.x = x, .indices = indices, .addend = table});
}

// Every second block is shifted, unless one window covers a side of the grid.
Result<WindowGrid> SwinEncoder::grid_of(const GridSize& tokens, int64_t stage,
                                        int64_t block) const {
  const int64_t side = std::min(tokens.height, tokens.width);
  const std::string where = "[stage " + std::to_string(stage) + "] of the picture ";
  if (side < config_.window) {
    return invalid_argument(message({where, "has ", tokens.height, " x ", tokens.width,
                                     " tokens, but a window of this model is ", config_.window,
                                     " tokens a side; give a larger picture"}));
  }
  WindowGrid grid{.tokens = tokens, .window = config_.window};
  if (block % 2 == 1 && side > config_.window) grid.shift = config_.window / 2;
  const int64_t slices = grid.shift > 0 ? grid.windows() : 1;
  const int64_t slice = config_.stage_heads(stage) * grid.area() * grid.area();
  if (slices > kMostSwinBiases / slice) {
    return unsupported(
        message({where, "needs ", slices, " windows with ", slice, " biases each, but at most ",
                 kMostSwinBiases, " are supported in all; give a smaller picture"}));
  }
  return grid;
}

// Attention inside windows, (B * windows, area, D) -> the same.
Result<TensorId> SwinEncoder::attend(const BlockSite& site, TensorId windows) const {
  ModelBuilder& b = site.b;
  VKF_ASSIGN(TensorId qkv, add_named_linear(b, site.rows + ".self.qkv", windows));
  const std::vector<float>& table =
      tables_[static_cast<size_t>(site.stage)][static_cast<size_t>(site.block)];
  const int64_t heads = config_.stage_heads(site.stage);
  std::vector<uint32_t> terms = float_words(window_biases(site.grid, index_, table, heads));
  AttentionAttrs attrs;
  attrs.terms.bias_offset = 0;
  attrs.terms.flags = VKF_TERM_BIAS_ONE_BATCH;
  if (site.grid.shift > 0) {
    attrs.terms.flags = VKF_TERM_BIAS_PERIODIC;
    terms.insert(terms.begin(), static_cast<uint32_t>(site.grid.windows()));
  }
  const auto words = static_cast<int64_t>(terms.size());
  const TensorId biases =
      b.host_tensor(site.rows + ".biases", DType::kU32, {words}, std::move(terms));
  const auto width = static_cast<uint32_t>(config_.stage_width(site.stage));
  attrs.batch = static_cast<uint32_t>(site.batch * site.grid.windows());
  attrs.heads = attrs.kv_heads = static_cast<uint32_t>(heads);
  attrs.queries = attrs.keys = static_cast<uint32_t>(site.grid.area());
  attrs.head_width = attrs.value_width = width / attrs.heads;
  attrs.q = merged_rows(attrs.queries, 3 * width, 0, attrs.head_width);
  attrs.k = merged_rows(attrs.keys, 3 * width, width, attrs.head_width);
  attrs.v = merged_rows(attrs.keys, 3 * width, 2 * width, attrs.head_width);
  // A stage shows the map of its last block.
  const bool last = site.block + 1 == config_.depth(site.stage);
  b.graph().set_scope(site.rows + ".self");
  return add_seen_attention(b, {.q = qkv, .kv = qkv, .terms = biases}, attrs, site.taps,
                            last ? site.stage : -1, config_.taps);
}

Result<TensorId> SwinEncoder::add_block(const BlockSite& site, TensorId x) const {
  ModelBuilder& b = site.b;
  const WindowGrid& grid = site.grid;
  const std::string rows = site.rows;
  // Blocks of a stage that shift alike share their index lists.
  const std::string lists =
      config_.rows + "stage." + std::to_string(site.stage) + ".shift." + std::to_string(grid.shift);
  const TensorId cut =
      b.host_tensor(lists + ".windows", DType::kU32, {site.batch * grid.windows(), grid.area()},
                    window_rows(grid, site.batch));
  const TensorId back =
      b.host_tensor(lists + ".tokens", DType::kU32, {site.batch, grid.tokens.count()},
                    unwindow_rows(grid, site.batch));
  VKF_ASSIGN(TensorId h, add_named_norm(b, config_.layers, rows + ".self.norm", x));
  VKF_ASSIGN(h, add_gather_rows(b.graph(), {.x = h, .indices = cut}));
  VKF_ASSIGN(h, attend(site, h));
  VKF_ASSIGN(h, add_gather_rows(b.graph(), {.x = h, .indices = back}));
  VKF_ASSIGN(x, add_named_linear(b, rows + ".self.out", h, {.residual = x}));
  return add_picture_feed_forward(b, config_.layers, rows, x);
}

// 2 x 2 tokens (B, T, D) side by side, normed and projected -> (B, ~T / 4, 2D).
Result<TensorId> SwinEncoder::merge(ModelBuilder& b, TensorId x, const GridSize& tokens,
                                    int64_t stage) const {
  const std::string name = merge_name(stage);
  const int64_t batch = b.graph().tensor(x).shape[0];
  std::vector<uint32_t> rows = merge_rows(tokens, batch);
  const int64_t merged = static_cast<int64_t>(rows.size()) / 4 / batch;
  const TensorId indices =
      b.host_tensor(name + ".rows", DType::kU32, {batch, merged, 4}, std::move(rows));
  b.graph().set_scope(name);
  VKF_ASSIGN(TensorId four, add_gather_rows(b.graph(), {.x = x, .indices = indices}));
  // A copy, because a tensor has one shape: (B, T / 4, 4, D) seen as (B, T / 4, 4D).
  VKF_ASSIGN(TensorId wide, add_activation(b.graph(), four, {.kind = ActivationKind::kNone}));
  b.graph().tensor(wide).shape = {batch, merged, 4 * config_.stage_width(stage)};
  VKF_ASSIGN(TensorId h,
             add_named_norm(b, StackConfig{.epsilon = kFixedEpsilon}, name + ".norm", wide));
  return add_named_linear(b, name + ".linear", h);
}

Result<TensorId> SwinEncoder::build(ModelBuilder& b, const ForwardShape& shape,
                                    const ForwardTaps& taps) const {
  const GridSize& patch = config_.embedding.patch;
  GridSize tokens = {(shape.height + patch.height - 1) / patch.height,
                     (shape.width + patch.width - 1) / patch.width};
  VKF_ASSIGN(TensorId x, embed(b, shape, tokens));
  for (int64_t s = 0; s < config_.stages(); ++s) {
    if (taps.hidden_states == ForwardTaps::Tap::kOn) {
      b.mark_output(x, config_.taps + "hidden_states." + std::to_string(s));
    }
    for (int64_t i = 0; i < config_.depth(s); ++i) {
      VKF_ASSIGN(WindowGrid grid, grid_of(tokens, s, i));
      VKF_ASSIGN(x, add_block({b, taps, shape.batch, s, i, grid, block_rows(s, i)}, x));
    }
    if (s + 1 == config_.stages()) break;
    VKF_ASSIGN(x, merge(b, x, tokens, s));
    tokens = {(tokens.height + 1) / 2, (tokens.width + 1) / 2};
  }
  return x;
}

namespace {

Result<PictureEmbedding> read_swin_embedding(const JsonConfig& config, const std::string& rows) {
  PictureEmbedding e{.patches = rows + "patches", .class_tokens = 0};
  VKF_ASSIGN(e.picture.channels, get_size_or(config, "num_channels", 3, 4096));
  VKF_ASSIGN(GridSize picture, read_grid_size(config, "image_size", 224, 1 << 15));
  VKF_ASSIGN(e.patch, read_grid_size(config, "patch_size", 4, 1024));
  e.picture.height = picture.height;
  e.picture.width = picture.width;
  VKF_ASSIGN(bool absolute, config.get_bool_or("use_absolute_embeddings", false));
  if (!absolute) return e;
  e.positions = rows + "positions";
  if (e.tokens() >= 1 && e.tokens() <= kMostPositions) return e;
  return invalid_file(
      message({"[image_size] in ", config.where(), " makes ", e.tokens(),
               " patches of [patch_size], but there must be between 1 and ", kMostPositions}));
}

// Depth, heads and feed-forward width of every stage.
Status read_swin_stages(const JsonConfig& config, SwinEncoder::Config& c) {
  VKF_ASSIGN(c.depths, config.get_int_list_or("depths", {2, 2, 6, 2}));
  VKF_ASSIGN(c.heads, config.get_int_list_or("num_heads", {3, 6, 12, 24}));
  VKF_ASSIGN(double ratio, config.get_double_or("mlp_ratio", 4.0));
  if (c.depths.empty() || c.stages() > kMostSwinStages || c.depths.size() != c.heads.size()) {
    return invalid_file(message({"[depths] in ", config.where(), " lists ", c.depths.size(),
                                 " stages and [num_heads] ", c.heads.size(),
                                 "; there must be as many, 1 to ", kMostSwinStages}));
  }
  for (int64_t s = 0; s < c.stages(); ++s) {
    const int64_t d = c.stage_width(s);
    const double ffn = static_cast<double>(d) * ratio;
    const bool fits = c.depth(s) >= 1 && c.depth(s) <= kMostLayers && c.stage_heads(s) >= 1 &&
                      d <= kMostWidth && ffn >= 1 && ffn <= static_cast<double>(kMostWidth);
    if (!fits) {
      return invalid_file(message(
          {"[depths] in ", config.where(), " and what goes with it give stage ", s, " ", c.depth(s),
           " blocks, ", c.stage_heads(s), " heads, a width of ", d, " and a feed-forward width of ",
           ffn, "; blocks must be 1 to ", kMostLayers, ", the rest 1 to ", kMostWidth}));
    }
    VKF_CHECK(head_width(config, d, c.stage_heads(s)));
    c.ffn.push_back(static_cast<int64_t>(ffn));
  }
  return {};
}

// An encoder with a norm and, where it classifies, a head.
class Swin : public ModelFamily {
 public:
  Swin(ModelFacts facts, SwinEncoder::Config config)
      : facts_(std::move(facts)), encoder_(std::move(config)) {}

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  ModelFacts facts_;
  GenerationFacts generation_;
  SwinEncoder encoder_;
};

Status Swin::prepare(const Checkpoint& checkpoint) {
  return encoder_.prepare(checkpoint, swin_prefix(checkpoint));
}

Result<WeightTable> Swin::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  const std::string prefix = swin_prefix(checkpoint);
  VKF_CHECK(encoder_.add_rows(checkpoint, prefix, table));
  table.rows.push_back(norm_row("norm", prefix + "layernorm", facts_.width));
  if (facts_.head == HeadKind::kSequence) {
    table.rows.push_back(linear_row("classifier", {"classifier"},
                                    static_cast<int64_t>(facts_.labels.size()), facts_.width));
  }
  table.ignored.insert(table.ignored.end(), {"classifier.*", "decoder.0.*"});
  return table;
}

Status Swin::build_forward(ModelBuilder& b, const ForwardShape& shape,
                           const ForwardTaps& taps) const {
  VKF_ASSIGN(const TensorId x, encoder_.build(b, shape, taps));
  const StackConfig& layers = encoder_.config().layers;
  VKF_ASSIGN(TensorId states, add_named_norm(b, layers, "norm", x));
  b.mark_output(states, "last_hidden_state");
  HeadConfig head{.input = HeadConfig::Input::kMean, .name = "pooler_output"};
  if (facts_.head == HeadKind::kSequence) {
    head.output = "classifier";
    head.name = "logits";
  }
  VKF_CHECK(add_head(b, layers, head, {.states = states}));
  return {};
}

}  // namespace

Result<SwinEncoder::Config> SwinEncoder::read(const JsonConfig& config, const std::string& rows,
                                              const std::string& taps) {
  Config c{.rows = rows, .taps = taps};
  VKF_ASSIGN(c.embedding, read_swin_embedding(config, rows));
  VKF_ASSIGN(c.width, get_size_or(config, "embed_dim", 96, kMostWidth));
  VKF_CHECK(read_swin_stages(config, c));
  VKF_ASSIGN(c.window, get_size_or(config, "window_size", 7, kMostWindow));
  VKF_ASSIGN(bool bias, config.get_bool_or("qkv_bias", true));
  c.bias = bias ? ProjectionBias::kYes : ProjectionBias::kNo;
  VKF_ASSIGN(c.layers.epsilon, get_epsilon(config, "layer_norm_eps", 1e-5));
  VKF_ASSIGN(c.layers.activation, get_activation(config, "hidden_act", "gelu"));
  return c;
}

Result<std::unique_ptr<ModelFamily>> load_swin(const ModelFiles& files) {
  VKF_ASSIGN(SwinEncoder::Config c, SwinEncoder::read(files.config, "", ""));
  ModelFacts facts{.family = "swin", .kind = ModelKind::kEncoder, .source = SourceKind::kPictures};
  facts.width = c.out_width();
  facts.encoder_layers = c.stages();  // as many maps can be seen
  facts.encoder_heads = *std::max_element(c.heads.begin(), c.heads.end());
  facts.grid.channels = c.embedding.picture.channels;
  VKF_CHECK(read_picture_head(files.config, "SwinModel", facts));
  return std::unique_ptr<ModelFamily>(new Swin(std::move(facts), std::move(c)));
}

}  // namespace vkformer
