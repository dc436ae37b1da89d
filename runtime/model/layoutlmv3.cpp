// LayoutLMv3 (Huang et al., 2022): a RoBERTa whose embedding adds where each token's box is on its
// page. The patches of the page's image follow the tokens. Scores get biases by the distances of
// order, left edges and lower edges.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/message.h"
#include "model/blocks/bert_layers.h"
#include "model/blocks/box_embedding.h"
#include "model/blocks/picture_embedding.h"
#include "model/blocks/stack_attention.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"
#include "ops/combine.h"
#include "ops/concat_columns.h"
#include "ops/gather_rows.h"
#include "ops/relative_positions.h"
#include "ops/score_terms.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr float kPatchEpsilon = 1e-6f;  // of the patches' own norm, whatever the configuration says
constexpr int64_t kPageSide = 1000;     // what the cells of patches divide
constexpr size_t kFewClasses = 10;      // from which on token classes have a layer before them

// A learned bias (H) for each bucket of distances.
struct PageBias {
  const char* tensor = nullptr;
  T5Buckets buckets;
  std::vector<float> table = {};  // (H, buckets)
};

struct PageConfig {
  BoxEmbedding boxes;
  PictureEmbedding picture;
  std::vector<PageBias> biases;  // none, one by order, or those by left and lower edges too
  int64_t heads = 12;            // H
  int64_t width = 768;           // D
  int64_t head_width = 64;       // E
  HeadKind head = HeadKind::kNone;
};

class PageForm : public EncoderForm {
 public:
  explicit PageForm(PageConfig config) : c_(std::move(config)) {}

  Status prepare(const Checkpoint& checkpoint, const std::string& prefix) override;
  void add_rows(const std::string& prefix, WeightTable& table) const override;
  std::vector<std::string> input_names() const override { return {"bbox", "pixel_values"}; }
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Result<TensorId> after_lookup(ModelBuilder& builder, TensorId x) const override;
  Result<TensorId> append_tokens(ModelBuilder& builder, const StackConfig& stack,
                                 const ForwardShape& shape, TensorId x) const override;
  Result<StackRun::Attend> begin_pass(ModelBuilder& builder, const StackConfig& stack,
                                      const ForwardShape& shape, TensorId mask) const override;
  Result<TensorId> head_states(ModelBuilder& builder, const ForwardShape& shape,
                               TensorId states) const override;

 private:
  int64_t tokens(const ForwardShape& shape) const {
    return shape.source + (shape.height > 0 ? c_.picture.tokens() : 0);
  }
  Status read_page(const Tensor& pixels, ForwardInputs& result) const;
  std::vector<int64_t> places_of(const ForwardInputs& inputs, size_t bias, int64_t item) const;
  void add_biases(ForwardInputs& result) const;

  PageConfig c_;
  WeightRow positions_;  // of patches, with the class token
};

Status PageForm::prepare(const Checkpoint& checkpoint, const std::string& prefix) {
  for (PageBias& bias : c_.biases) {
    VKF_ASSIGN(bias.table,
               read_floats(checkpoint, prefix + bias.tensor, {c_.heads, bias.buckets.buckets}));
  }
  VKF_ASSIGN(positions_, position_row(checkpoint, c_.picture, prefix + "pos_embed",
                                      {prefix + "cls_token"}, c_.width));
  return {};
}

void PageForm::add_rows(const std::string& prefix, WeightTable& table) const {
  add_box_rows(c_.boxes, prefix + "embeddings.", table);
  const PictureEmbedding& e = c_.picture;
  table.rows.push_back(linear_row(e.patches, {prefix + "patch_embed.proj"}, c_.width,
                                  e.picture.channels * e.patch.count()));
  table.rows.push_back(positions_);
  table.rows.push_back(norm_row("patches.norm", prefix + "norm", c_.width));
  table.rows.push_back(norm_row("page.norm", prefix + "LayerNorm", c_.width));
  // Read on the host.
  table.ignored.insert(table.ignored.end(), {prefix + "cls_token", prefix + "pos_embed",
                                             prefix + "encoder.rel_pos*_bias.weight"});
}

Status PageForm::read_page(const Tensor& pixels, ForwardInputs& result) const {
  const GridFacts& picture = c_.picture.picture;
  const Shape wanted = {result.shape.batch, picture.channels, picture.height, picture.width};
  if (pixels.shape != wanted) {
    return invalid_argument(message({"[pixel_values] has shape ", shape_text(pixels.shape),
                                     ", but must be (B, C, height, width) = ", shape_text(wanted),
                                     "; resize the pages to that."}));
  }
  VKF_ASSIGN(const std::vector<float> values, pixels.to_floats());
  result.words["pixel_values"] = float_words(values);
  result.shape.height = picture.height;
  result.shape.width = picture.width;
  // Every patch is attended to.
  const int64_t all = tokens(result.shape);
  std::vector<uint8_t> kept(static_cast<size_t>(result.shape.batch * all), 1);
  std::vector<uint32_t>& mask = result.words["key_mask"];
  const auto words = static_cast<size_t>((result.shape.source + 31) / 32);
  for (int64_t b = 0; b < result.shape.batch; ++b) {
    for (int64_t t = 0; t < result.shape.source; ++t) {
      const uint32_t word = mask[static_cast<size_t>(b) * words + static_cast<size_t>(t / 32)];
      kept[static_cast<size_t>(b * all + t)] = word >> (t % 32) & 1u;
    }
  }
  mask = pack_key_mask(kept, result.shape.batch, all);
  return {};
}

// Where the tokens of an item stand by order (bias 0), left edge (1) or lower edge (2). Patches
// count from 0 again, and their boxes are cells of a page; the class token's is the page.
std::vector<int64_t> PageForm::places_of(const ForwardInputs& inputs, size_t bias,
                                         int64_t item) const {
  std::vector<int64_t> places;
  const std::vector<uint32_t>& corners = inputs.words.at("box_corners");
  for (int64_t t = 0; t < inputs.shape.source; ++t) {
    const auto corner = static_cast<size_t>(4 * (item * inputs.shape.source + t));
    const int64_t edges[] = {t, corners[corner], corners[corner + 3] - c_.boxes.positions};
    places.push_back(edges[bias]);
  }
  if (inputs.shape.height == 0) return places;
  const GridSize grid = c_.picture.grid();
  const int64_t page[] = {0, 1, kPageSide - 1};
  places.push_back(page[bias]);
  for (int64_t p = 0; p < grid.count(); ++p) {
    const int64_t cell[] = {p + 1, kPageSide * (p % grid.width) / grid.width,
                            kPageSide * (p / grid.width + 1) / grid.height};
    places.push_back(cell[bias]);
  }
  return places;
}

// The words page_bias (B, H, T, T): what is added to scores, in their scale.
void PageForm::add_biases(ForwardInputs& result) const {
  const int64_t batch = result.shape.batch;
  const int64_t all = tokens(result.shape);
  const float scale = 1.0f / std::sqrt(static_cast<float>(c_.head_width));
  std::vector<float> biases(static_cast<size_t>(batch * c_.heads * all * all), 0.0f);
  for (size_t n = 0; n < c_.biases.size(); ++n) {
    const PageBias& bias = c_.biases[n];
    const int64_t buckets = bias.buckets.buckets;
    for (int64_t b = 0; b < batch; ++b) {
      const std::vector<int64_t> places = places_of(result, n, b);
      const auto [least, most] = std::minmax_element(places.begin(), places.end());
      const int64_t reach = *most - *least;
      std::vector<uint32_t> bucket_of;
      for (int64_t d = -reach; d <= reach; ++d) bucket_of.push_back(t5_bucket(d, bias.buckets));
      for (int64_t h = 0; h < c_.heads; ++h) {
        const float* table = bias.table.data() + h * buckets;
        float* row = biases.data() + (b * c_.heads + h) * all * all;
        for (int64_t i = 0; i < all; ++i, row += all) {
          const uint32_t* from = bucket_of.data() + reach - places[static_cast<size_t>(i)];
          for (int64_t j = 0; j < all; ++j) {
            row[j] += scale * table[from[places[static_cast<size_t>(j)]]];
          }
        }
      }
    }
  }
  result.words["page_bias"] = float_words(biases);
}

Status PageForm::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  VKF_CHECK(read_boxes(c_.boxes, inputs, result));
  const auto pixels = inputs.find("pixel_values");
  if (pixels != inputs.end()) VKF_CHECK(read_page(pixels->second, result));
  if (!c_.biases.empty()) add_biases(result);
  return {};
}

// x + [left | top | right | bottom | height | width].
Result<TensorId> PageForm::after_lookup(ModelBuilder& b, TensorId x) const {
  const Shape shape = b.graph().tensor(x).shape;
  VKF_ASSIGN(const BoxParts parts, add_box_lookups(b, shape[0], shape[1]));
  b.graph().tensor(parts.corners).shape = {shape[0], shape[1], 4 * c_.boxes.corner_width};
  b.graph().tensor(parts.sizes).shape = {shape[0], shape[1], 2 * c_.boxes.size_width};
  VKF_ASSIGN(const TensorId boxes, add_concat_columns(b.graph(), parts.corners, parts.sizes));
  return add_combine(b.graph(), x, boxes, {});
}

// A copy of x (B, T, D) as rows (B, T D), which stand beside others.
Result<TensorId> one_row_each(ModelBuilder& b, const std::string& name, TensorId x) {
  const Shape shape = b.graph().tensor(x).shape;
  std::vector<uint32_t> rows(static_cast<size_t>(shape[0] * shape[1]));
  std::iota(rows.begin(), rows.end(), 0u);
  const TensorId indices = b.host_tensor(name, DType::kU32, {shape[0], shape[1]}, std::move(rows));
  VKF_ASSIGN(const TensorId copy, add_gather_rows(b.graph(), {.x = x, .indices = indices}));
  b.graph().tensor(copy).shape = {shape[0], shape[1] * shape[2]};
  return copy;
}

Result<TensorId> PageForm::append_tokens(ModelBuilder& b, const StackConfig& stack,
                                         const ForwardShape& shape, TensorId x) const {
  if (shape.height == 0) return x;
  VKF_ASSIGN(TensorId patches, add_picture_embedding(b, c_.picture, shape.batch));
  VKF_ASSIGN(patches,
             add_named_norm(b, StackConfig{.epsilon = kPatchEpsilon}, "patches.norm", patches));
  VKF_ASSIGN(x, one_row_each(b, "text.order", x));
  VKF_ASSIGN(patches, one_row_each(b, "page.order", patches));
  VKF_ASSIGN(x, add_concat_columns(b.graph(), x, patches));
  b.graph().tensor(x).shape = {shape.batch, tokens(shape), c_.width};
  return add_named_norm(b, stack, "page.norm", x);
}

Result<StackRun::Attend> PageForm::begin_pass(ModelBuilder& b, const StackConfig&,
                                              const ForwardShape& shape, TensorId) const {
  if (c_.biases.empty()) return StackRun::Attend();
  const int64_t all = tokens(shape);
  const int64_t mask = shape.batch * ((all + 31) / 32);
  StackTerms terms;
  terms.words = b.graph().add_external("terms.page", DType::kU32,
                                       {mask + shape.batch * c_.heads * all * all});
  b.feed("key_mask", terms.words);
  b.feed("page_bias", terms.words, static_cast<uint64_t>(mask));
  terms.params.key_mask_offset = 0;
  terms.params.bias_offset = static_cast<uint32_t>(mask);
  return StackRun::Attend([terms](const LayerSite& site, TensorId, TensorId qkv) {
    AttentionAttrs attrs = own_attrs(site);
    attrs.terms = terms.params;
    return attend(site, {.q = qkv, .kv = qkv, .terms = terms.words}, attrs,
                  tap_of(site, site.c.taps));
  });
}

// Classes of tokens are those of the text alone.
Result<TensorId> PageForm::head_states(ModelBuilder& b, const ForwardShape& shape,
                                       TensorId states) const {
  if (c_.head != HeadKind::kTokens || shape.height == 0) return states;
  std::vector<uint32_t> rows;
  for (int64_t i = 0; i < shape.batch; ++i) {
    for (int64_t t = 0; t < shape.source; ++t) {
      rows.push_back(static_cast<uint32_t>(i * tokens(shape) + t));
    }
  }
  const TensorId indices =
      b.host_tensor("text.rows", DType::kU32, {shape.batch, shape.source}, std::move(rows));
  return add_gather_rows(b.graph(), {.x = states, .indices = indices});
}

Status refuse_missing_parts(const JsonConfig& config) {
  for (const char* key : {"text_embed", "visual_embed"}) {
    VKF_ASSIGN(const bool has, config.get_bool_or(key, true));
    if (has) continue;
    return unsupported(message({"[", key, "] is false in ", config.where(),
                                "; models that read texts and pictures are supported"}));
  }
  return {};
}

Result<BoxEmbedding> read_page_boxes(const JsonConfig& config, int64_t width) {
  BoxEmbedding boxes{.sizes = BoxEmbedding::Sizes::kClamp};
  VKF_ASSIGN(boxes.positions,
             get_size_or(config, "max_2d_position_embeddings", 1024, kMostPositions));
  VKF_ASSIGN(boxes.corner_width, get_size_or(config, "coordinate_size", 128, kMostWidth));
  VKF_ASSIGN(boxes.size_width, get_size_or(config, "shape_size", 128, kMostWidth));
  const int64_t columns = 4 * boxes.corner_width + 2 * boxes.size_width;
  if (columns == width) return boxes;
  return invalid_file(
      message({"[coordinate_size] and [shape_size] in ", config.where(), " make boxes of 4 * ",
               boxes.corner_width, " + 2 * ", boxes.size_width, " = ", columns,
               " columns, but must make hidden_size, ", width}));
}

Result<PageBias> read_page_bias(const JsonConfig& config, const char* tensor,
                                const std::string& bins, const std::string& most) {
  const bool order = bins == "rel_pos_bins";
  PageBias bias{.tensor = tensor};
  VKF_ASSIGN(bias.buckets.buckets, get_size_or(config, bins, order ? 32 : 64, kMostPositions));
  VKF_ASSIGN(bias.buckets.max_distance,
             get_size_or(config, most, order ? 128 : 256, kMostPositions));
  VKF_CHECK(check_t5_buckets(bias.buckets));
  return bias;
}

// Distances on the page count only beside distances of order.
Result<std::vector<PageBias>> read_page_biases(const JsonConfig& config) {
  std::vector<PageBias> biases;
  VKF_ASSIGN(const bool order, config.get_bool_or("has_relative_attention_bias", true));
  VKF_ASSIGN(const bool page, config.get_bool_or("has_spatial_attention_bias", true));
  if (!order) return biases;
  VKF_ASSIGN(PageBias own,
             read_page_bias(config, "encoder.rel_pos_bias.weight", "rel_pos_bins", "max_rel_pos"));
  biases.push_back(std::move(own));
  if (!page) return biases;
  for (const char* tensor : {"encoder.rel_pos_x_bias.weight", "encoder.rel_pos_y_bias.weight"}) {
    VKF_ASSIGN(PageBias bias, read_page_bias(config, tensor, "rel_2d_pos_bins", "max_rel_2d_pos"));
    biases.push_back(std::move(bias));
  }
  return biases;
}

void add_page_head(BertConfig& bert) {
  const int64_t d = bert.facts.width;
  switch (bert.facts.head) {
    case HeadKind::kSequence:
      add_sequence_head(bert, "classifier.dense", ActivationKind::kTanh, "classifier.out_proj");
      break;
    case HeadKind::kTokens:
      if (bert.facts.labels.size() < kFewClasses) {
        add_shared_head(bert);
        break;
      }
      add_sequence_head(bert, "classifier.dense", ActivationKind::kTanh, "classifier.out_proj");
      bert.block.heads.back().input = HeadConfig::Input::kAll;
      break;
    case HeadKind::kSpans:
      bert.block.heads = span_heads({.dense = "head.dense", .activation = ActivationKind::kTanh});
      bert.head_rows = span_rows("qa_outputs.out_proj", d);
      bert.head_rows.push_back(linear_row("head.dense", {"qa_outputs.dense"}, d, d));
      break;
    default:
      break;
  }
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_layoutlmv3(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_CHECK(refuse_missing_parts(config));
  VKF_ASSIGN(BertConfig bert,
             read_bert_config(files, {.vocab = 50265, .epsilon = 1e-5}, "LayoutLMv3Model"));
  if (bert.facts.head == HeadKind::kMasked) {
    return unsupported(
        message({"[architectures] of ", config.where(), " names '", bert.facts.architecture,
                 "', whose head this family does not have; supported are the bare "
                 "model and heads for sequence and token classification, and "
                 "question answering"}));
  }
  VKF_CHECK(read_positions_after_pad(config, bert));
  PageConfig page{.heads = bert.block.stack.heads,
                  .width = bert.facts.width,
                  .head_width = bert.block.stack.head(),
                  .head = bert.facts.head};
  VKF_ASSIGN(page.boxes, read_page_boxes(config, page.width));
  VKF_ASSIGN(page.picture, read_picture_embedding(config, {.size = "input_size"}));
  page.picture.patches = "patches";
  page.picture.positions = "patches.positions";
  VKF_ASSIGN(page.biases, read_page_biases(config));
  bert.facts.grid = page.picture.picture;
  bert.names = bert_names("layoutlmv3.", bert.block.stack.layers);
  bert.names.pooler.clear();
  bert.names.ignored = {"classifier.*", "qa_outputs.*"};
  add_page_head(bert);
  bert.block.form = std::make_shared<PageForm>(std::move(page));
  return make_bert(std::move(bert));
}

}  // namespace vkformer
