#include "model/gliner_form.h"

#include <algorithm>
#include <numeric>

#include "base/message.h"
#include "model/blocks/padded_tokens.h"
#include "model/config_reading.h"
#include "model/weight_rows.h"
#include "ops/activation.h"
#include "ops/combine.h"
#include "ops/gather_rows.h"
#include "ops/matmul.h"
#include "ops/score_terms.h"

namespace vkformer {
namespace {

constexpr uint32_t kZeroRow = ~0u;                // gather_rows gives zeros for it
constexpr int64_t kMostSpans = int64_t{1} << 24;  // of a pass
constexpr const char* kSpanModule = "span_rep_layer.span_rep_layer.";

// linear, ReLU, linear, whose dropout between them has the number 2.
void add_mlp_rows(WeightTable& table, const std::string& to, const std::string& from, int64_t width,
                  int64_t inner) {
  table.rows.push_back(linear_row(to + ".up", {from + ".0"}, inner, width));
  table.rows.push_back(linear_row(to + ".down", {from + ".3"}, width, inner));
}

// The columns [first, first + width) of a matrix (rows, 2 width).
WeightRow half_row(std::string name, const std::string& module, int64_t rows, int64_t width,
                   int64_t first) {
  WeightRow row = plain_linear_row(std::move(name), {module}, rows, width);
  row.part = MatrixPart{.whole_rows = rows, .whole_width = 2 * width, .first_input = first};
  row.part->rows.resize(static_cast<size_t>(rows));
  std::iota(row.part->rows.begin(), row.part->rows.end(), 0u);
  return row;
}

Result<TensorId> add_mlp(ModelBuilder& b, const std::string& name, TensorId x,
                         ActivationKind last) {
  VKF_ASSIGN(x, add_named_linear(b, name + ".up", x, {.activation = ActivationKind::kRelu}));
  return add_named_linear(b, name + ".down", x, {.activation = last});
}

TensorId fed_rows(ModelBuilder& b, const std::string& name, Shape shape) {
  const TensorId rows = b.graph().add_external(name, DType::kU32, std::move(shape));
  b.feed(name, rows);
  return rows;
}

}  // namespace

// What is known of the words of a pass.
struct GlinerForm::Words {
  int64_t batch = 0;             // B
  int64_t tokens = 0;            // S
  std::vector<int64_t> numbers;  // (B, S), words_mask
  std::vector<int64_t> lengths;  // (B)
  int64_t longest() const { return *std::max_element(lengths.begin(), lengths.end()); }
};

GlinerForm::GlinerForm(DisentangledConfig encoder, GlinerConfig config, int64_t encoder_width)
    : DisentangledForm(encoder), config_(config), encoder_width_(encoder_width) {
  set_width(encoder_width);
}

RecurrentEncoder GlinerForm::lstm() const {
  return {.cell = CellKind::kLstm, .layers = config_.lstm_layers, .width = config_.width / 2};
}

void GlinerForm::add_rows(const std::string& prefix, WeightTable& table) const {
  DisentangledForm::add_rows(prefix, table);
  const int64_t h = config_.width;
  if (h != encoder_width_) {
    table.rows.push_back(
        linear_row("projection", {"token_rep_layer.projection"}, h, encoder_width_));
  }
  add_encoder_cells(table, lstm(), "rnn.lstm", h);
  const bool newer = config_.mode == GlinerConfig::SpanMode::kMarkerV0;
  const std::string span = kSpanModule;
  add_mlp_rows(table, "span.start", span + "project_start", h, newer ? 4 * h : 2 * h);
  add_mlp_rows(table, "span.end", span + "project_end", h, newer ? 4 * h : 2 * h);
  add_mlp_rows(table, "prompt", "prompt_rep_layer", h, 4 * h);
  const std::string out = span + (newer ? "out_project.0" : "out_project");
  const int64_t features = config_.span_features();
  table.rows.push_back(half_row("span.out.start", out, features, h, 0));
  table.rows.push_back(half_row("span.out.end", out, features, h, h));
  table.rows.back().biases = {out + ".bias"};
  if (!newer) return;
  WeightRow last = plain_linear_row("span.out.prompt", {span + "out_project.3"}, features, h);
  last.axes = WeightRow::Axes::kInOut;
  table.rows.push_back(std::move(last));
  table.rows.push_back(table_row("span.out.bias", {span + "out_project.3.bias"}, {1}, h));
}

std::vector<std::string> GlinerForm::input_names() const {
  return {"words_mask", "text_lengths", "span_mask"};
}

Status GlinerForm::read_words(const TensorMap& inputs, const ForwardInputs& read,
                              Words& words) const {
  const auto found = inputs.find("words_mask");
  const Shape shape = {words.batch, words.tokens};
  words.numbers.assign(static_cast<size_t>(element_count(shape)), 0);
  if (found == inputs.end()) {
    const std::vector<uint32_t>& mask = read.words.at("key_mask");
    for (int64_t r = 0; r < words.batch; ++r) {
      int64_t next = 1;
      for (int64_t t = 0; t < words.tokens; ++t) {
        if (is_kept(mask, words.tokens, r, t)) {
          words.numbers[static_cast<size_t>(r * words.tokens + t)] = next++;
        }
      }
    }
    return {};
  }
  if (found->second.shape != shape) {
    return invalid_argument(message({"[words_mask] has shape ", shape_text(found->second.shape),
                                     ", but the token ids have ", shape_text(shape), "."}));
  }
  VKF_ASSIGN(words.numbers, found->second.to_ints());
  for (size_t i = 0; i < words.numbers.size(); ++i) {
    if (words.numbers[i] >= 0 && words.numbers[i] <= kMostPositions) continue;
    return invalid_argument(message({"[words_mask] holds ", words.numbers[i], " at element ", i,
                                     ", but a word's number lies between 1 and ", kMostPositions,
                                     "; 0 stands for no word."}));
  }
  return {};
}

Status GlinerForm::read_lengths(const TensorMap& inputs, Words& words) const {
  words.lengths.assign(static_cast<size_t>(words.batch), 0);
  for (size_t i = 0; i < words.numbers.size(); ++i) {
    int64_t& length = words.lengths[i / static_cast<size_t>(words.tokens)];
    length = std::max(length, words.numbers[i]);
  }
  const auto found = inputs.find("text_lengths");
  if (found == inputs.end()) return {};
  const Shape& shape = found->second.shape;
  if (shape != Shape{words.batch} && shape != Shape{words.batch, 1}) {
    return invalid_argument(
        message({"[text_lengths] has shape ", shape_text(shape), ", but must be (", words.batch,
                 "): the number of words of each text."}));
  }
  VKF_ASSIGN(const std::vector<int64_t> given, found->second.to_ints());
  for (size_t r = 0; r < given.size(); ++r) {
    if (given[r] >= words.lengths[r] && given[r] <= kMostPositions) continue;
    return invalid_argument(
        message({"[text_lengths] is ", given[r], " of row ", r, ", but must lie between ",
                 words.lengths[r], ", the last word of words_mask, and ", kMostPositions, "."}));
  }
  words.lengths = given;
  return {};
}

Status GlinerForm::read_spans(const TensorMap& inputs, const Words& words,
                              ForwardInputs& result) const {
  const int64_t widths = config_.max_width;
  int64_t most = std::max<int64_t>(1, words.longest());
  const auto found = inputs.find("span_mask");
  std::vector<int64_t> asked;
  if (found != inputs.end()) {
    const Shape& shape = found->second.shape;
    const bool fits = shape.size() == 3 && shape[0] == words.batch && shape[1] >= most &&
                      shape[1] <= kMostPositions && shape[2] == widths;
    if (!fits) {
      return invalid_argument(
          message({"[span_mask] has shape ", shape_text(shape), ", but must be (", words.batch,
                   ", W, ", widths, ") with a W of at least ", most, " words."}));
    }
    most = shape[1];
    VKF_ASSIGN(asked, found->second.to_ints());
  }
  if (most * widths > kMostSpans / words.batch) {
    return invalid_argument(
        message({words.batch, " rows of ", most, " words have more than ", kMostSpans,
                 " spans of up to ", widths, " words; give fewer rows, or shorter texts."}));
  }
  std::vector<uint32_t>& starts = result.words["span_starts"];
  std::vector<uint32_t>& ends = result.words["span_ends"];
  for (int64_t r = 0; r < words.batch; ++r) {
    const int64_t length = words.lengths[static_cast<size_t>(r)];
    for (int64_t s = 0; s < most; ++s) {
      for (int64_t k = 0; k < widths; ++k) {
        const bool inside = s + k < length;
        const bool wanted = asked.empty() ? inside : asked[starts.size()] != 0;
        if (wanted && !inside) {
          return invalid_argument(
              message({"[span_mask] asks for ", k + 1, " words from word ", s, " of row ", r,
                       " on, which has ", length, " words; set it to 0 there."}));
        }
        starts.push_back(static_cast<uint32_t>(r * most + (wanted ? s : 0)));
        ends.push_back(static_cast<uint32_t>(r * most + (wanted ? s + k : 0)));
      }
    }
  }
  result.shape.more = {most};
  return {};
}

// The rows of labels' states; returns C.
int64_t GlinerForm::read_labels(ForwardInputs& result) const {
  const std::vector<uint32_t> ids = result.words.at("input_ids");
  const int64_t batch = result.shape.batch, tokens = result.shape.source;
  const int64_t after = config_.label_state == GlinerConfig::LabelState::kNextToken ? 1 : 0;
  std::vector<std::vector<uint32_t>> labels(static_cast<size_t>(batch));
  size_t most = 1;
  for (int64_t r = 0; r < batch; ++r) {
    std::vector<uint32_t>& row = labels[static_cast<size_t>(r)];
    for (int64_t t = 0; t < tokens; ++t) {
      if (ids[static_cast<size_t>(r * tokens + t)] != config_.label_token) continue;
      row.push_back(t + after < tokens ? static_cast<uint32_t>(r * tokens + t + after) : kZeroRow);
    }
    most = std::max(most, row.size());
  }
  std::vector<uint32_t>& rows = result.words["label_rows"];
  for (std::vector<uint32_t>& row : labels) {
    row.resize(most, kZeroRow);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return static_cast<int64_t>(most);
}

Status GlinerForm::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  Words words{.batch = result.shape.batch, .tokens = result.shape.source};
  VKF_CHECK(read_words(inputs, result, words));
  VKF_CHECK(read_lengths(inputs, words));
  VKF_CHECK(read_spans(inputs, words, result));
  const int64_t most = result.shape.more[0];
  const auto at = [&](int64_t row, int64_t word) { return static_cast<size_t>(row * most + word); };
  std::vector<uint32_t>& rows = result.words["word_rows"];
  rows.assign(at(words.batch, 0), kZeroRow);
  std::vector<uint8_t> real(rows.size());
  for (size_t i = 0; i < words.numbers.size(); ++i) {
    if (words.numbers[i] == 0) continue;
    const auto row = static_cast<int64_t>(i) / words.tokens;
    uint32_t& place = rows[at(row, words.numbers[i] - 1)];
    if (place != kZeroRow) {
      return invalid_argument(message({"[words_mask] holds ", words.numbers[i], " twice in row ",
                                       row, ", but only a word's first token has its number."}));
    }
    place = static_cast<uint32_t>(i);
  }
  for (int64_t r = 0; r < words.batch; ++r) {
    std::fill_n(real.begin() + static_cast<ptrdiff_t>(at(r, 0)),
                words.lengths[static_cast<size_t>(r)], uint8_t{1});
  }
  ForwardInputs order{.shape = {.batch = words.batch, .source = most}};
  order.words["key_mask"] = pack_key_mask(real, words.batch, most);
  add_token_order(order);
  order.words.erase("key_mask");
  result.words.merge(order.words);
  result.shape.more.push_back(read_labels(result));
  return {};
}

Result<TensorId> GlinerForm::add_spans(ModelBuilder& b, TensorId words) const {
  Graph& g = b.graph();
  const Shape shape = g.tensor(words).shape;
  const Shape spans = {shape[0], shape[1] * config_.max_width};
  VKF_ASSIGN(TensorId starts, add_mlp(b, "span.start", words, ActivationKind::kRelu));
  VKF_ASSIGN(TensorId ends, add_mlp(b, "span.end", words, ActivationKind::kRelu));
  VKF_ASSIGN(starts, add_named_linear(b, "span.out.start", starts));
  VKF_ASSIGN(ends, add_named_linear(b, "span.out.end", ends));
  g.set_scope("span");
  VKF_ASSIGN(starts,
             add_gather_rows(g, {.x = starts, .indices = fed_rows(b, "span_starts", spans)}));
  VKF_ASSIGN(ends, add_gather_rows(g, {.x = ends, .indices = fed_rows(b, "span_ends", spans)}));
  VKF_ASSIGN(const TensorId sums, add_combine(g, starts, ends, {}));
  if (config_.mode == GlinerConfig::SpanMode::kMarker) return sums;
  return add_activation(g, sums, {ActivationKind::kRelu});
}

Result<TensorId> GlinerForm::add_products(ModelBuilder& b, TensorId spans, TensorId prompts) const {
  Graph& g = b.graph();
  if (config_.mode == GlinerConfig::SpanMode::kMarker) {
    return add_matmul(g, spans, prompts, kNoTensor, {.trans_b = true});
  }
  VKF_ASSIGN(const TensorId factors, add_named_linear(b, "span.out.prompt", prompts));
  VKF_ASSIGN(const TensorId bias, b.table("span.out.bias"));
  g.set_scope("scores");
  VKF_ASSIGN(TensorId shifts, add_matmul(g, bias, prompts, kNoTensor, {.trans_b = true}));
  // (B, 1, C) for every span of a row.
  const Shape shape = g.tensor(spans).shape;
  std::vector<uint32_t> items(static_cast<size_t>(shape[0] * shape[1]));
  for (size_t i = 0; i < items.size(); ++i) {
    items[i] = static_cast<uint32_t>(i / static_cast<size_t>(shape[1]));
  }
  const TensorId rows =
      b.host_tensor("span_items", DType::kU32, {shape[0], shape[1]}, std::move(items));
  VKF_ASSIGN(shifts, add_gather_rows(g, {.x = shifts, .indices = rows}));
  return add_matmul(g, spans, factors, shifts, {.trans_b = true});
}

Status GlinerForm::add_heads(ModelBuilder& b, const StackConfig&, const ForwardShape& shape,
                             const HeadInput& input) const {
  Graph& g = b.graph();
  const int64_t most = shape.more.size() == 2 ? shape.more[0] : shape.source;
  const int64_t labels = shape.more.size() == 2 ? shape.more[1] : 1;
  TensorId states = input.states;
  if (config_.width != encoder_width_) {
    VKF_ASSIGN(states, add_named_linear(b, "projection", states));
  }
  g.set_scope("words");
  VKF_ASSIGN(
      TensorId words,
      add_gather_rows(g, {.x = states, .indices = fed_rows(b, "word_rows", {shape.batch, most})}));
  VKF_ASSIGN(TensorId prompts,
             add_gather_rows(
                 g, {.x = states, .indices = fed_rows(b, "label_rows", {shape.batch, labels})}));
  if (config_.lstm_layers > 0) {
    VKF_ASSIGN(const RecurrentMemory memory, add_recurrent_encoder(b, lstm(), {}, words));
    words = memory.states;
  }
  VKF_ASSIGN(const TensorId spans, add_spans(b, words));
  VKF_ASSIGN(prompts, add_mlp(b, "prompt", prompts, ActivationKind::kNone));
  g.set_scope("scores");
  VKF_ASSIGN(TensorId logits, add_products(b, spans, prompts));
  // (B, W K, C) in the shape that is handed out.
  const Shape places = {shape.batch, most, config_.max_width};
  std::vector<uint32_t> rows(static_cast<size_t>(element_count(places)));
  std::iota(rows.begin(), rows.end(), 0u);
  const TensorId order = b.host_tensor("span_places", DType::kU32, places, std::move(rows));
  VKF_ASSIGN(logits, add_gather_rows(g, {.x = logits, .indices = order}));
  b.mark_output(logits, "logits");
  return {};
}

}  // namespace vkformer
