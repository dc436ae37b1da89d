#include "model/blocks/towers.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/message.h"
#include "base/narrow.h"
#include "model/mask_input.h"
#include "model/weight_rows.h"
#include "ops/attention.h"
#include "ops/gather_rows.h"
#include "ops/matmul.h"
#include "ops/score_terms.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

void add_tower_layers(const StackConfig& s, const std::string& from, WeightTable& table) {
  const int64_t d = s.width;
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string layer = from + "encoder.layers." + std::to_string(i) + ".";
    const std::string attn = layer + "self_attn.";
    table.rows.push_back(norm_row(to + ".self.norm", layer + "layer_norm1", d));
    table.rows.push_back(linear_row(to + ".self.qkv",
                                    {attn + "q_proj", attn + "k_proj", attn + "v_proj"}, 3 * d, d));
    table.rows.push_back(linear_row(to + ".self.out", {attn + "out_proj"}, d, d));
    table.rows.push_back(norm_row(to + ".ffn.norm", layer + "layer_norm2", d));
    table.rows.push_back(linear_row(to + ".ffn.up", {layer + "mlp.fc1"}, s.ffn, d));
    table.rows.push_back(linear_row(to + ".ffn.down", {layer + "mlp.fc2"}, d, s.ffn));
  }
  // Positions that older versions of the library saved.
  table.ignored.push_back(from + "embeddings.position_ids");
}

// Rows [first, first + rows) of the merged projection of a torch.nn.MultiheadAttention.
WeightRow in_projection(std::string name, const std::string& from, int64_t first, int64_t rows,
                        int64_t width) {
  return {.name = std::move(name),
          .sources = {from + "in_proj_weight"},
          .biases = {from + "in_proj_bias"},
          .rows = rows,
          .width = width,
          .first_row = first,
          .source_rows = {3 * width}};
}

}  // namespace

void TextTower::add_rows(const std::string& prefix, WeightTable& table) const {
  const int64_t d = stack.width;
  const std::string from = prefix + "embeddings.";
  table.rows.push_back(
      embedding_row(embedding.words, from + "token_embedding.weight", vocabulary, d));
  table.rows.push_back(
      table_row(embedding.positions, {from + "position_embedding.weight"}, {tokens}, d));
  add_tower_layers(stack, prefix, table);
  table.rows.push_back(norm_row(stack.rows + ".norm", prefix + "final_layer_norm", d));
  if (projection == 0) return;
  const auto linear = head_bias == HeadBias::kYes ? linear_row : plain_linear_row;
  table.rows.push_back(linear("text.head", {head}, projection, d));
}

std::vector<uint32_t> TextTower::pooled_rows(std::span<const uint32_t> ids, int64_t batch) const {
  const size_t length = ids.size() / static_cast<size_t>(batch);
  std::vector<uint32_t> rows;
  for (size_t b = 0; b < static_cast<size_t>(batch); ++b) {
    const auto row = ids.subspan(b * length, length);
    size_t at = length - 1;
    if (pool == Pool::kHighestId) {
      at = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    } else if (pool == Pool::kEndToken) {
      const auto found = std::find(row.begin(), row.end(), static_cast<uint32_t>(end));
      at = found == row.end() ? 0 : static_cast<size_t>(found - row.begin());
    }
    rows.push_back(static_cast<uint32_t>(b * length + at));
  }
  return rows;
}

Result<TensorId> TextTower::states(ModelBuilder& b, int64_t batch, int64_t count,
                                   const ForwardTaps& taps) const {
  VKF_ASSIGN(const TextStates text,
             add_text_stack(b, stack, embedding, {.batch = batch, .source = count}, taps));
  return text.states;
}

Result<TensorId> TextTower::pooled(ModelBuilder& b, TensorId states) const {
  const int64_t batch = b.graph().tensor(states).shape[0];
  const TensorId rows = b.graph().add_external("pooled_tokens", DType::kU32, {batch});
  b.feed("pooled_tokens", rows);
  b.graph().set_scope("text.pooled");
  return add_gather_rows(b.graph(), {.x = states, .indices = rows});
}

Result<TensorId> TextTower::projected(ModelBuilder& b, TensorId pooled) const {
  return projection == 0 ? Result<TensorId>(pooled) : add_named_linear(b, "text.head", pooled);
}

Status PictureTower::prepare(const Checkpoint& checkpoint, const std::string& prefix) {
  if (input == Input::kPictures) return {};
  VKF_ASSIGN(const std::vector<float> values,
             read_floats(checkpoint, prefix + "embeddings.position_embedding.weight",
                         {embedding.tokens(), stack.width}));
  positions = split_positions(embedding, stack.width, values);
  positions.filter = PositionFilter::kBilinearAntialias;
  return {};
}

Status PictureTower::add_rows(const Checkpoint& checkpoint, const std::string& prefix,
                              WeightTable& table) const {
  const int64_t d = stack.width;
  const std::string from = prefix + "embeddings.";
  const PictureEmbedding& e = embedding;
  const bool by_class = e.class_tokens > 0;
  const auto patches = by_class ? plain_linear_row : linear_row;
  table.rows.push_back(
      patches(e.patches, {from + "patch_embedding"}, d, e.picture.channels * e.patch.count()));
  const std::string places = from + "position_embedding.weight";
  VKF_ASSIGN(std::vector<float> values, read_floats(checkpoint, places, {e.tokens(), d}));
  table.ignored.push_back(places);
  if (by_class) {
    VKF_ASSIGN(const std::vector<float> token,
               read_floats(checkpoint, from + "class_embedding", {d}));
    for (size_t i = 0; i < token.size(); ++i) values[i] += token[i];
    table.ignored.push_back(from + "class_embedding");
    // As the files spell it.
    table.rows.push_back(norm_row("picture.first_norm", prefix + "pre_layrnorm", d));
  }
  if (input == Input::kPictures) {
    table.rows.push_back(computed_row(e.positions, std::move(values), e.tokens(), d));
  }
  add_tower_layers(stack, prefix, table);
  const bool ends = last_norm == LastNorm::kYes && stack.layers == file_layers;
  if (pool != Pool::kNone || ends) {
    table.rows.push_back(norm_row("picture.last_norm", prefix + "post_layernorm", d));
  }
  if (pool == Pool::kNone) {
    // What pools, and layers after those whose states are read.
    for (const char* name : {"post_layernorm.*", "head.*"}) table.ignored.push_back(prefix + name);
    for (int64_t i = stack.layers; i < file_layers; ++i) {
      table.ignored.push_back(prefix + "encoder.layers." + std::to_string(i) + ".*");
    }
    return {};
  }
  if (projection > 0) {
    table.rows.push_back(plain_linear_row("picture.head", {head}, projection, d));
  }
  if (by_class) return {};
  const std::string pooling = prefix + "head.";
  const std::string attention = pooling + "attention.";
  VKF_ASSIGN(std::vector<float> probe, read_floats(checkpoint, pooling + "probe", {1, 1, d}));
  table.ignored.push_back(pooling + "probe");
  table.rows.push_back(computed_row("picture.probe", std::move(probe), 1, d));
  table.rows.push_back(in_projection("picture.pool.q", attention, 0, d, d));
  table.rows.push_back(in_projection("picture.pool.kv", attention, d, 2 * d, d));
  table.rows.push_back(linear_row("picture.pool.out", {attention + "out_proj"}, d, d));
  table.rows.push_back(norm_row("picture.pool.norm", pooling + "layernorm", d));
  table.rows.push_back(linear_row("picture.pool.up", {pooling + "mlp.fc1"}, stack.ffn, d));
  table.rows.push_back(linear_row("picture.pool.down", {pooling + "mlp.fc2"}, d, stack.ffn));
  return {};
}

Result<TensorId> PictureTower::states(ModelBuilder& b, const GivenPictures& given,
                                      const ForwardTaps& taps) const {
  VKF_ASSIGN(TensorId x, embedded(b, given));
  StackRun run{.batch = given.batch, .tokens = tokens(given), .taps = taps};
  if (input == Input::kPatches) {
    run.terms = add_stack_terms(b, stack, kPatchMask, given.batch, run.tokens);
  }
  VKF_ASSIGN(x, add_stack(b, stack, run, x));
  return last_norm == LastNorm::kNo ? Result<TensorId>(x)
                                    : add_named_norm(b, stack, "picture.last_norm", x);
}

Result<TensorId> PictureTower::embedded(ModelBuilder& b, const GivenPictures& given) const {
  if (input == Input::kPatches) {
    return add_given_patches(b, embedding, stack.width, {given.batch, tokens(given), given.cut});
  }
  VKF_ASSIGN(const TensorId x, add_picture_embedding(b, embedding, given.batch));
  return embedding.class_tokens == 0 ? Result<TensorId>(x)
                                     : add_named_norm(b, stack, "picture.first_norm", x);
}

Result<std::vector<TensorId>> PictureTower::layer_states(ModelBuilder& b, int64_t batch,
                                                         const std::vector<int64_t>& layers) const {
  VKF_ASSIGN(TensorId x, embedded(b, {.batch = batch}));
  std::vector<TensorId> after = {x};
  StackRun run{.batch = batch, .tokens = embedding.tokens()};
  run.after = [&](int64_t, TensorId, TensorId output) -> Result<TensorId> {
    after.push_back(output);
    return output;
  };
  VKF_ASSIGN(x, add_stack(b, stack, run, x));
  if (last_norm == LastNorm::kYes && stack.layers == file_layers) {
    VKF_ASSIGN(after.back(), add_named_norm(b, stack, "picture.last_norm", x));
  }
  std::vector<TensorId> states;
  for (const int64_t layer : layers) states.push_back(after[static_cast<size_t>(layer)]);
  return states;
}

Result<TensorId> PictureTower::pooled(ModelBuilder& b, TensorId states) const {
  if (pool == Pool::kClass) {
    VKF_ASSIGN(const TensorId token, add_token_states(b, states, 0));
    return add_named_norm(b, stack, "picture.last_norm", token);
  }
  Graph& g = b.graph();
  const Shape shape = g.tensor(states).shape;
  const uint32_t d = u32(stack.width);
  g.set_scope("picture.probe");
  VKF_ASSIGN(const TensorId probe, b.table("picture.probe"));
  const TensorId first = b.host_tensor("picture.probes", DType::kU32, {shape[0], 1},
                                       std::vector<uint32_t>(static_cast<size_t>(shape[0]), 0));
  VKF_ASSIGN(const TensorId queries, add_gather_rows(g, {.x = probe, .indices = first}));
  VKF_ASSIGN(const TensorId q, add_named_linear(b, "picture.pool.q", queries));
  VKF_ASSIGN(const TensorId kv, add_named_linear(b, "picture.pool.kv", states));
  AttentionAttrs a;
  a.batch = u32(shape[0]);
  a.heads = a.kv_heads = u32(stack.heads);
  a.queries = 1;
  a.keys = u32(shape[1]);
  a.head_width = a.value_width = u32(stack.head());
  a.q = merged_rows(1, d, 0, a.head_width);
  a.k = merged_rows(a.keys, 2 * d, 0, a.head_width);
  a.v = merged_rows(a.keys, 2 * d, d, a.head_width);
  const TensorId mask = g.find_external(kPatchMask);
  if (mask != kNoTensor) a.terms.key_mask_offset = 0;
  VKF_ASSIGN(TensorId y, add_attention(g, {.q = q, .kv = kv, .terms = mask}, a));
  VKF_ASSIGN(y, add_named_linear(b, "picture.pool.out", y));
  VKF_ASSIGN(TensorId h, add_named_norm(b, stack, "picture.pool.norm", y));
  VKF_ASSIGN(h, add_named_linear(b, "picture.pool.up", h, {.activation = stack.activation}));
  VKF_ASSIGN(y, add_named_linear(b, "picture.pool.down", h, {.residual = y}));
  return add_token_states(b, y, 0);
}

Result<TensorId> PictureTower::projected(ModelBuilder& b, TensorId pooled) const {
  return projection == 0 ? Result<TensorId>(pooled) : add_named_linear(b, "picture.head", pooled);
}

namespace {

// The inputs of a tower of patches.
std::vector<std::string> tower_input_names(const PictureTower& tower) {
  if (tower.input == PictureTower::Input::kPictures) return {};
  return {"pixel_attention_mask", "pixel_values", "spatial_shapes"};
}

Result<GivenPictures> read_patches(const TensorMap& inputs, const PictureTower& tower,
                                   ForwardInputs& result) {
  VKF_ASSIGN(const PatchRows rows,
             read_patch_rows(inputs, tower.embedding, tower.positions, result.words));
  return GivenPictures{rows.batch, rows.patches, rows.cut};
}

// What one tower and two have in common.
class TowerFamily : public ModelFamily {
 public:
  explicit TowerFamily(ModelFacts facts) : facts_(std::move(facts)) {}
  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }

 private:
  ModelFacts facts_;
  GenerationFacts generation_;
};

class TextTowerFamily : public TowerFamily {
 public:
  TextTowerFamily(TowerFacts facts, TextTower tower)
      : TowerFamily(std::move(facts.facts)),
        projected_(facts.projected),
        tower_(std::move(tower)) {}

  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override {
    WeightTable table;
    tower_.add_rows(name_prefix(checkpoint, "text_model.", "embeddings.token_embedding.weight"),
                    table);
    return table;
  }
  Status read_inputs(const TensorMap&, ForwardInputs& result) const override {
    const auto ids = result.words.find("input_ids");
    if (ids == result.words.end()) return internal_error("[input_ids] were not read");
    result.words["pooled_tokens"] = tower_.pooled_rows(ids->second, result.shape.batch);
    return {};
  }
  Status build_forward(ModelBuilder& b, const ForwardShape& shape,
                       const ForwardTaps& taps) const override {
    VKF_ASSIGN(const TensorId states, tower_.states(b, shape.batch, shape.source, taps));
    b.mark_output(states, "last_hidden_state");
    VKF_ASSIGN(TensorId pooled, tower_.pooled(b, states));
    VKF_ASSIGN(const TensorId projected, tower_.projected(b, pooled));
    if (projected_ == TowerFacts::Projected::kPooled) pooled = projected;
    b.mark_output(pooled, "pooler_output");
    if (pooled != projected) b.mark_output(projected, "text_embeds");
    return {};
  }

 private:
  TowerFacts::Projected projected_;
  TextTower tower_;
};

class PictureTowerFamily : public TowerFamily {
 public:
  PictureTowerFamily(TowerFacts facts, PictureTower tower)
      : TowerFamily(std::move(facts.facts)), tower_(std::move(tower)) {}

  Status prepare(const Checkpoint& checkpoint) override {
    return tower_.prepare(checkpoint, prefix_of(checkpoint));
  }
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override {
    WeightTable table;
    VKF_CHECK(tower_.add_rows(checkpoint, prefix_of(checkpoint), table));
    return table;
  }
  std::vector<std::string> input_names() const override { return tower_input_names(tower_); }
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override {
    if (tower_.input == PictureTower::Input::kPictures) return {};
    VKF_ASSIGN(const GivenPictures given, read_patches(inputs, tower_, result));
    result.shape.batch = given.batch;
    result.shape.more = {given.patches, given.cut ? 1 : 0};
    return {};
  }
  Status build_forward(ModelBuilder& b, const ForwardShape& shape,
                       const ForwardTaps& taps) const override {
    GivenPictures given{.batch = shape.batch};
    if (shape.more.size() == 2) {
      given.patches = shape.more[0];
      given.cut = shape.more[1] != 0;
    }
    VKF_ASSIGN(const TensorId states, tower_.states(b, given, taps));
    b.mark_output(states, "last_hidden_state");
    VKF_ASSIGN(const TensorId pooled, tower_.pooled(b, states));
    b.mark_output(pooled, "pooler_output");
    VKF_ASSIGN(const TensorId projected, tower_.projected(b, pooled));
    if (pooled != projected) b.mark_output(projected, "image_embeds");
    return {};
  }

 private:
  static std::string prefix_of(const Checkpoint& checkpoint) {
    return name_prefix(checkpoint, "vision_model.", "embeddings.patch_embedding.weight");
  }

  PictureTower tower_;
};

// Sizes that a pass of two towers has beside ForwardShape's own.
enum MoreSizes : size_t { kTexts, kPictures, kPatches, kCut, kMoreSizes };

class TowerPairFamily : public TowerFamily {
 public:
  TowerPairFamily(ModelFacts facts, TowerPair pair)
      : TowerFamily(std::move(facts)), pair_(std::move(pair)) {}

  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  std::vector<std::string> input_names() const override {
    std::vector<std::string> names = tower_input_names(pair_.picture);
    if (names.empty()) names = {"pixel_values"};
    names.insert(names.end(), {"attention_mask", "input_ids"});
    return names;
  }
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  Status read_texts(const TensorMap& inputs, const Tensor& tensor, ForwardInputs& result) const;
  Status read_pictures(const TensorMap& inputs, ForwardInputs& result) const;
  Result<TensorId> compare(ModelBuilder& b, TensorId rows, TensorId columns,
                           const std::string& name) const;

  TowerPair pair_;
  float scale_ = 1.0f;
  float bias_ = 0.0f;
};

Status TowerPairFamily::prepare(const Checkpoint& checkpoint) {
  VKF_CHECK(pair_.picture.prepare(checkpoint, "vision_model."));
  VKF_ASSIGN(const std::vector<float> scale,
             read_floats(checkpoint, "logit_scale", pair_.scale_shape));
  scale_ = std::exp(scale[0]);
  if (pair_.bias == TowerPair::Bias::kNo) return {};
  VKF_ASSIGN(const std::vector<float> bias, read_floats(checkpoint, "logit_bias", {1}));
  bias_ = bias[0];
  return {};
}

Result<WeightTable> TowerPairFamily::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  pair_.text.add_rows("text_model.", table);
  VKF_CHECK(pair_.picture.add_rows(checkpoint, "vision_model.", table));
  table.ignored.insert(table.ignored.end(), {"logit_scale", "logit_bias"});
  return table;
}

Status TowerPairFamily::read_texts(const TensorMap& inputs, const Tensor& tensor,
                                   ForwardInputs& result) const {
  const Shape& s = tensor.shape;
  const TextTower& text = pair_.text;
  if (s.size() != 2 || s[0] < 1 || s[1] < 1 || s[1] > text.tokens) {
    return invalid_argument(
        message({"[input_ids] has shape ", shape_text(s), ", but must be (B, S) with at most ",
                 text.tokens, " tokens a row"}));
  }
  VKF_ASSIGN(const std::vector<int64_t> ids, tensor.to_ints());
  for (const int64_t id : ids) {
    if (id >= 0 && id < text.vocabulary) continue;
    return invalid_argument(
        message({"[input_ids] holds ", id, ", but this model knows 0 to ", text.vocabulary - 1}));
  }
  std::vector<uint8_t> kept(ids.size(), 1);
  const auto mask = inputs.find("attention_mask");
  if (mask != inputs.end()) {
    if (mask->second.shape != s) {
      return invalid_argument(
          message({"[attention_mask] has shape ", shape_text(mask->second.shape),
                   ", but [input_ids] has ", shape_text(s)}));
    }
    VKF_ASSIGN(kept, mask_flags("attention_mask", mask->second));
  }
  std::vector<uint32_t>& words = result.words["input_ids"];
  words.assign(ids.begin(), ids.end());
  result.words["key_mask"] = pack_key_mask(kept, s[0], s[1]);
  result.words["pooled_tokens"] = text.pooled_rows(words, s[0]);
  result.shape.source = s[1];
  result.shape.more[kTexts] = s[0];
  return {};
}

Status TowerPairFamily::read_pictures(const TensorMap& inputs, ForwardInputs& result) const {
  if (pair_.picture.input == PictureTower::Input::kPatches) {
    VKF_ASSIGN(const GivenPictures given, read_patches(inputs, pair_.picture, result));
    result.shape.more[kPictures] = given.batch;
    result.shape.more[kPatches] = given.patches;
    result.shape.more[kCut] = given.cut ? 1 : 0;
    return {};
  }
  const Tensor& tensor = inputs.at("pixel_values");
  const Shape& s = tensor.shape;
  const GridFacts& picture = pair_.picture.embedding.picture;
  if (s.size() != 4 || s[0] < 1 || s[1] != picture.channels || s[2] != picture.height ||
      s[3] != picture.width) {
    return invalid_argument(
        message({"[pixel_values] has shape ", shape_text(s), ", but must be (B, ", picture.channels,
                 ", ", picture.height, ", ", picture.width, "); resize the pictures to that"}));
  }
  VKF_ASSIGN(const std::vector<float> values, tensor.to_floats());
  result.words["pixel_values"] = float_words(values);
  result.shape.height = s[2];
  result.shape.width = s[3];
  result.shape.more[kPictures] = s[0];
  return {};
}

Status TowerPairFamily::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  result.shape.more.assign(kMoreSizes, 0);
  const auto ids = inputs.find("input_ids");
  const auto pixels = inputs.find("pixel_values");
  if (ids == inputs.end() && pixels == inputs.end()) {
    return not_found(
        "[input_ids] and [pixel_values] are missing from the inputs; give one or both");
  }
  if (ids != inputs.end()) VKF_CHECK(read_texts(inputs, ids->second, result));
  if (pixels != inputs.end()) VKF_CHECK(read_pictures(inputs, result));
  result.shape.batch = std::max(result.shape.more[kTexts], result.shape.more[kPictures]);
  return {};
}

// rows (M, P), columns (N, P) -> (M, N).
Result<TensorId> TowerPairFamily::compare(ModelBuilder& b, TensorId rows, TensorId columns,
                                          const std::string& name) const {
  const int64_t m = b.graph().tensor(rows).shape[0];
  const int64_t n = b.graph().tensor(columns).shape[0];
  TensorId bias = kNoTensor;
  if (pair_.bias == TowerPair::Bias::kYes) {
    bias = b.host_floats(name + ".bias", {m, n},
                         std::vector<float>(static_cast<size_t>(m * n), bias_));
  }
  b.graph().set_scope(name);
  VKF_ASSIGN(const TensorId y,
             add_matmul(b.graph(), rows, columns, bias, {.trans_b = true, .alpha = scale_}));
  b.mark_output(y, name);
  return y;
}

Status TowerPairFamily::build_forward(ModelBuilder& b, const ForwardShape& shape,
                                      const ForwardTaps&) const {
  const bool stated = shape.more.size() == kMoreSizes;
  const int64_t texts = stated ? shape.more[kTexts] : shape.batch;
  const int64_t pictures = stated ? shape.more[kPictures] : shape.batch;
  TensorId text = kNoTensor;
  TensorId picture = kNoTensor;
  if (texts > 0) {
    VKF_ASSIGN(text, pair_.text.states(b, texts, shape.source, {}));
    VKF_ASSIGN(text, pair_.text.pooled(b, text));
    VKF_ASSIGN(text, pair_.text.projected(b, text));
    VKF_ASSIGN(text, add_unit_rows(b, text));
    b.mark_output(text, "text_embeds");
  }
  if (pictures > 0) {
    GivenPictures given{.batch = pictures};
    if (stated) {
      given.patches = shape.more[kPatches];
      given.cut = shape.more[kCut] != 0;
    }
    VKF_ASSIGN(picture, pair_.picture.states(b, given, {}));
    VKF_ASSIGN(picture, pair_.picture.pooled(b, picture));
    VKF_ASSIGN(picture, pair_.picture.projected(b, picture));
    VKF_ASSIGN(picture, add_unit_rows(b, picture));
    b.mark_output(picture, "image_embeds");
  }
  if (text == kNoTensor || picture == kNoTensor) return {};
  VKF_CHECK(compare(b, picture, text, "logits_per_image"));
  VKF_CHECK(compare(b, text, picture, "logits_per_text"));
  return {};
}

}  // namespace

std::unique_ptr<ModelFamily> make_text_tower(TowerFacts facts, TextTower tower) {
  return std::make_unique<TextTowerFamily>(std::move(facts), std::move(tower));
}

std::unique_ptr<ModelFamily> make_picture_tower(TowerFacts facts, PictureTower tower) {
  return std::make_unique<PictureTowerFamily>(std::move(facts), std::move(tower));
}

std::unique_ptr<ModelFamily> make_tower_pair(ModelFacts facts, TowerPair pair) {
  return std::make_unique<TowerPairFamily>(std::move(facts), std::move(pair));
}

}  // namespace vkformer
