// BEiT (Bao et al., 2021): a ViT without biases of keys, which pools the mean of the patches. Its
// layers add a learned bias to the scores for each difference of row and column. Images may have
// any size: biases and positions are resized.
#include "base/message.h"
#include "model/blocks/picture_tokens.h"
#include "model/blocks/stack_attention.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/vit.h"
#include "model/weight_rows.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

// Biases of the class token: as query of a patch, as key of a patch, of itself.
constexpr int64_t kClassBiases = 3;

struct BeitConfig {
  VitEncoder encoder;
  bool positions = false;      // a table of positions
  bool own_biases = false;     // of scores, in every layer
  bool shared_biases = false;  // of scores, for all layers
  bool pools_mean = true;      // else the pooled state is the class token's
};

class Beit : public ModelFamily {
 public:
  Beit(ModelFacts facts, BeitConfig config) : facts_(std::move(facts)), c_(std::move(config)) {}

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  GridSize bias_grid(const GridSize& grid) const {
    return {2 * grid.height - 1, 2 * grid.width - 1};
  }
  // The biases that a layer adds: its own, those of all, or both.
  std::vector<const std::vector<float>*> tables_of(int64_t layer) const;
  std::vector<float> biases_of(int64_t layer, const GridSize& grid) const;
  StackRun::Attend attend_with_biases(ModelBuilder& b, const GridSize& grid) const;
  HeadConfig head() const;

  ModelFacts facts_;
  GenerationFacts generation_;
  BeitConfig c_;
  std::string prefix_;
  PictureTokens tokens_;
  std::vector<float> shared_;                     // (differences + 3, H), or empty
  std::vector<std::vector<float>> layer_biases_;  // the same of each layer
};

Status Beit::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, "beit.", "embeddings.cls_token");
  const VitEncoder& e = c_.encoder;
  const std::string from = prefix_ + "embeddings.";
  PictureTokenNames names{.first = {{from + "cls_token"}}};
  if (c_.positions) names.positions = from + "position_embeddings";
  VKF_ASSIGN(tokens_, read_picture_tokens(checkpoint, e.picture, e.stack.width, names));
  const Shape biases = {bias_grid(e.picture.grid()).count() + kClassBiases, e.stack.heads};
  const std::string table = "relative_position_bias.relative_position_bias_table";
  if (c_.shared_biases) {
    const std::string name =
        first_present(checkpoint, {prefix_ + "shared_position_bias.relative_position_bias_table",
                                   prefix_ + "encoder." + table});
    VKF_ASSIGN(shared_, read_floats(checkpoint, name, biases));
  }
  layer_biases_.clear();
  for (int64_t i = 0; c_.own_biases && i < e.stack.layers; ++i) {
    const std::string layer = vit_layers(checkpoint, prefix_) + std::to_string(i) + ".";
    const std::string name =
        first_present(checkpoint, {layer + table, layer + "attention.attention." + table});
    VKF_ASSIGN(std::vector<float> own, read_floats(checkpoint, name, biases));
    layer_biases_.push_back(std::move(own));
  }
  return {};
}

Result<WeightTable> Beit::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  const int64_t d = c_.encoder.stack.width;
  add_vit_layer_rows(table, checkpoint, c_.encoder, prefix_);
  if (c_.pools_mean) {
    table.rows.push_back(norm_row("pooler.norm", prefix_ + "pooler.layernorm", d));
  }
  if (facts_.head == HeadKind::kSequence) {
    table.rows.push_back(
        linear_row("classifier", {"classifier"}, static_cast<int64_t>(facts_.labels.size()), d));
  }
  // Tokens, positions and biases are read on the host; an index follows from the grid.
  table.ignored = {prefix_ + "embeddings.*_token",  prefix_ + "embeddings.position_embeddings",
                   "*relative_position_bias_table", "*relative_position_index",
                   prefix_ + "pooler.layernorm.*",  "classifier.*"};
  return table;
}

std::vector<const std::vector<float>*> Beit::tables_of(int64_t layer) const {
  std::vector<const std::vector<float>*> tables;
  if (c_.shared_biases) tables.push_back(&shared_);
  if (c_.own_biases) tables.push_back(&layer_biases_[static_cast<size_t>(layer)]);
  return tables;
}

// (H, T, T) of the class token and a grid of patches.
std::vector<float> Beit::biases_of(int64_t layer, const GridSize& grid) const {
  const int64_t heads = c_.encoder.stack.heads;
  const int64_t tokens = 1 + grid.count();
  const GridSize own = bias_grid(c_.encoder.picture.grid());
  const GridSize wanted = bias_grid(grid);
  // The reference implementation takes a table's rows for its columns when it resizes it.
  const GridSize stored = {own.width, own.height};
  std::vector<float> biases(static_cast<size_t>(heads * tokens * tokens), 0.0f);
  for (const std::vector<float>* table : tables_of(layer)) {
    const std::span<const float> all(*table);
    const std::span<const float> pairs = all.first(static_cast<size_t>(own.count() * heads));
    const std::vector<float> values =
        resized_positions(pairs, stored, wanted, heads, PositionFilter::kBilinear);
    const float* of_class = all.data() + pairs.size();
    const auto bias = [&](int64_t h, int64_t i, int64_t j) {
      if (i == 0 && j == 0) return of_class[2 * heads + h];
      if (i == 0) return of_class[h];
      if (j == 0) return of_class[heads + h];
      const int64_t row = (i - 1) / grid.width - (j - 1) / grid.width + grid.height - 1;
      const int64_t column = (i - 1) % grid.width - (j - 1) % grid.width + grid.width - 1;
      return values[static_cast<size_t>((row * wanted.width + column) * heads + h)];
    };
    size_t at = 0;
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < tokens; ++i) {
        for (int64_t j = 0; j < tokens; ++j) biases[at++] += bias(h, i, j);
      }
    }
  }
  return biases;
}

StackRun::Attend Beit::attend_with_biases(ModelBuilder& b, const GridSize& grid) const {
  const int64_t tokens = 1 + grid.count();
  std::vector<TensorId> words;
  for (int64_t i = 0; i < (c_.own_biases ? c_.encoder.stack.layers : 1); ++i) {
    words.push_back(b.host_tensor("biases." + std::to_string(i), DType::kU32,
                                  {c_.encoder.stack.heads * tokens * tokens},
                                  float_words(biases_of(i, grid))));
  }
  return [words](const LayerSite& site, TensorId, TensorId qkv) {
    AttentionAttrs attrs = own_attrs(site);
    attrs.terms.bias_offset = 0;
    attrs.terms.flags |= VKF_TERM_BIAS_ONE_BATCH;
    const TensorId terms = words[words.size() == 1 ? 0 : static_cast<size_t>(site.layer)];
    return attend(site, {.q = qkv, .kv = qkv, .terms = terms}, attrs, tap_of(site, site.c.taps));
  };
}

HeadConfig Beit::head() const {
  HeadConfig head{.input = HeadConfig::Input::kToken, .name = "pooler_output"};
  if (c_.pools_mean) {
    head.input = HeadConfig::Input::kMean;
    head.token = 1;
    head.norm = "pooler.norm";
  }
  if (facts_.head == HeadKind::kSequence) {
    head.output = "classifier";
    head.name = "logits";
  }
  return head;
}

Status Beit::build_forward(ModelBuilder& b, const ForwardShape& shape,
                           const ForwardTaps& taps) const {
  const PictureEmbedding& e = c_.encoder.picture;
  const StackConfig& stack = c_.encoder.stack;
  VKF_ASSIGN(const GridSize grid, grid_of(e, shape));
  const int64_t tokens = 1 + grid.count();
  const TensorId pixels = add_pixel_values(b, e.picture.channels, shape);
  VKF_ASSIGN(const TensorId x, add_picture_tokens(b, e, tokens_, grid, pixels));
  StackRun run{.batch = shape.batch, .tokens = tokens, .taps = taps};
  if (c_.own_biases || c_.shared_biases) run.attend = attend_with_biases(b, grid);
  VKF_ASSIGN(const TensorId states, add_stack(b, stack, run, x));
  b.mark_output(states, "last_hidden_state");
  return add_heads(b, stack, {head()}, {.states = states});
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_beit(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  BeitConfig c;
  VKF_ASSIGN(c.encoder, read_vit_encoder(config, {}, "encoder", ""));
  c.encoder.bias = ProjectionBias::kNotKeys;
  VKF_ASSIGN(const double scale, config.get_double_or("layer_scale_init_value", 0.1));
  if (scale > 0) {
    c.encoder.attention_scale = "lambda_1";
    c.encoder.ffn_scale = "lambda_2";
  }
  VKF_ASSIGN(c.positions, config.get_bool_or("use_absolute_position_embeddings", false));
  VKF_ASSIGN(c.own_biases, config.get_bool_or("use_relative_position_bias", false));
  VKF_ASSIGN(c.shared_biases, config.get_bool_or("use_shared_relative_position_bias", false));
  VKF_ASSIGN(c.pools_mean, config.get_bool_or("use_mean_pooling", true));
  if (c.pools_mean) c.encoder.stack.final_norm = StackConfig::FinalNorm::kNo;
  ModelFacts facts{.family = "beit", .kind = ModelKind::kEncoder, .source = SourceKind::kPictures};
  VKF_CHECK(read_picture_head(config, "BeitModel", facts));
  facts.width = c.encoder.stack.width;
  facts.encoder_layers = c.encoder.stack.layers;
  facts.encoder_heads = c.encoder.stack.heads;
  facts.max_source = c.encoder.picture.tokens();
  facts.grid.channels = c.encoder.picture.picture.channels;
  return std::unique_ptr<ModelFamily>(new Beit(std::move(facts), std::move(c)));
}

}  // namespace vkformer
