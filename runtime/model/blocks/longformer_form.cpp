#include "model/blocks/longformer_form.h"

#include <algorithm>
#include <bit>

#include "base/message.h"
#include "model/blocks/stack_attention.h"
#include "model/config_reading.h"
#include "model/mask_input.h"
#include "model/weight_rows.h"
#include "ops/concat_columns.h"
#include "ops/gather_rows.h"

namespace vkformer {
namespace {

constexpr uint32_t kNoRow = ~0u;  // gather_rows makes zeros of it
constexpr int64_t kSeparators = 3;

// Tensors of one pass that all layers share.
struct LongformerPass {
  LongformerConfig config;
  TensorId mask = kNoTensor;   // key mask words
  TensorId terms = kNoTensor;  // the mask again, then the global tokens
  ScoreTermsParams params = no_score_terms();
  int64_t most = 0;             // G: rows of global tokens; 0: none anywhere
  TensorId rows = kNoTensor;    // (B, G): the token of each
  TensorId places = kNoTensor;  // (B, S): the row of each token
};

TensorId fed_words(ModelBuilder& b, const std::string& name, Shape shape) {
  const TensorId tensor = b.graph().add_external(name, DType::kU32, std::move(shape));
  b.feed(name, tensor);
  return tensor;
}

AttentionAttrs local_attrs(const LongformerPass& pass, const LayerSite& site) {
  AttentionAttrs attrs = own_attrs(site);
  const auto half = static_cast<int32_t>(pass.config.windows[static_cast<size_t>(site.layer)] / 2);
  attrs.terms = pass.params;
  attrs.terms.flags |= VKF_TERM_WINDOW_LEFT | VKF_TERM_WINDOW_RIGHT;
  attrs.terms.window_left = attrs.terms.window_right = half;
  attrs.visited = static_cast<uint32_t>(2 * half + 1 + pass.most);
  // Rows of tokens, which gather_rows can add to.
  attrs.y_shape = {site.run.batch * site.run.tokens, site.c.heads * site.c.head()};
  return attrs;
}

// The rows of global tokens: queries of G tokens over all keys.
struct GlobalRows {
  AttentionInputs inputs;
  AttentionAttrs attrs;
};

Result<GlobalRows> add_global_rows(const LongformerPass& pass, const LayerSite& site, TensorId h) {
  const std::string name = site.rows() + ".global";
  const auto width = static_cast<uint32_t>(site.c.width);
  GlobalRows global;
  site.b.graph().set_scope(name);
  VKF_ASSIGN(TensorId chosen, add_gather_rows(site.b.graph(), {.x = h, .indices = pass.rows}));
  VKF_ASSIGN(global.inputs.q, add_named_linear(site.b, name + ".q", chosen));
  VKF_ASSIGN(global.inputs.kv, add_named_linear(site.b, name + ".kv", h));
  global.inputs.terms = pass.mask;
  AttentionAttrs& a = global.attrs = sizes_of(site, site.run.tokens);
  a.queries = static_cast<uint32_t>(pass.most);
  a.q = merged_rows(a.queries, width, 0, a.head_width);
  a.k = merged_rows(a.keys, 2 * width, 0, a.head_width);
  a.v = merged_rows(a.keys, 2 * width, width, a.head_width);
  a.terms.key_mask_offset = 0;
  site.b.graph().set_scope(name);
  return global;
}

// Where the rows of maps come from: (B, Hsel, S).
TensorId map_rows(const LayerSite& site, int64_t head) {
  const std::string name = head >= 0 ? "global_head_rows" : "global_map_rows";
  const TensorId known = site.b.graph().find_external(name);
  if (known != kNoTensor) return known;
  return fed_words(site.b, name, {site.run.batch, head >= 0 ? 1 : site.c.heads, site.run.tokens});
}

// Of each head the rows of the local map, then those of the global one; of them a row for every
// token.
Result<TensorId> join_maps(const LayerSite& site, TensorId local, TensorId global, int64_t head) {
  Graph& g = site.b.graph();
  const int64_t tokens = site.run.tokens;
  const Shape of_local = g.tensor(local).shape;
  const Shape of_global = g.tensor(global).shape;
  const int64_t units = of_local[0] * of_local[1];
  const int64_t rows = of_local[2] + of_global[2];
  if (rows * tokens > int64_t{0x7fffffff}) {
    return unsupported(message({"[attentions] a map of ", tokens,
                                " tokens is too large for this family; use a shorter sequence"}));
  }
  g.tensor(local).shape = {units, of_local[2] * tokens};
  g.tensor(global).shape = {units, of_global[2] * tokens};
  VKF_ASSIGN(TensorId both, add_concat_columns(g, local, global));
  g.tensor(both).shape = {units * rows, tokens};
  return add_gather_rows(g, {.x = both, .indices = map_rows(site, head)});
}

Result<TensorId> attend_long(const LongformerPass& pass, const LayerSite& site, TensorId h,
                             TensorId qkv) {
  Graph& g = site.b.graph();
  const AttentionInputs own{.q = qkv, .kv = qkv, .terms = pass.terms};
  const AttentionAttrs local = local_attrs(pass, site);
  const AttentionTap tap = tap_of(site, site.c.taps);
  if (pass.most == 0) {
    VKF_ASSIGN(TensorId y, attend(site, own, local, tap));
    g.tensor(y).shape = {site.run.batch, site.run.tokens, local.y_shape[1]};
    return y;
  }
  VKF_ASSIGN(TensorId y, add_attention(g, own, local));
  VKF_ASSIGN(GlobalRows global, add_global_rows(pass, site, h));
  VKF_ASSIGN(TensorId rows, add_attention(g, global.inputs, global.attrs));
  if (!tap.name.empty()) {
    VKF_ASSIGN(TensorId map, add_map(site, own, local, tap));
    VKF_ASSIGN(TensorId of_global, add_map(site, global.inputs, global.attrs, tap));
    VKF_ASSIGN(map, join_maps(site, map, of_global, tap.head));
    site.b.mark_output(map, tap.name);
  }
  // A global token's row of y is zeros.
  return add_gather_rows(g, {.x = rows, .indices = pass.places, .addend = y});
}

bool is_allowed(const ForwardInputs& read, int64_t b, int64_t t) {
  const std::vector<uint32_t>& words = read.words.at("key_mask");
  const int64_t row = b * ((read.shape.source + 31) / 32);
  return (words[static_cast<size_t>(row + t / 32)] >> (t % 32) & 1u) != 0;
}

// The words of the feeds, for `most` global tokens a row.
void add_global_words(const std::vector<uint8_t>& flags, int64_t most, int64_t heads,
                      ForwardInputs& result) {
  const int64_t batch = result.shape.batch;
  const int64_t tokens = result.shape.source;
  std::vector<uint32_t> rows(static_cast<size_t>(batch * most), kNoRow);
  std::vector<uint32_t> places(flags.size(), kNoRow);
  for (int64_t b = 0; b < batch; ++b) {
    int64_t next = b * most;
    for (int64_t t = b * tokens; t < (b + 1) * tokens; ++t) {
      if (flags[static_cast<size_t>(t)] == 0) continue;
      rows[static_cast<size_t>(next)] = static_cast<uint32_t>(t);
      places[static_cast<size_t>(t)] = static_cast<uint32_t>(next++);
    }
  }
  const auto rows_of_maps = [&](int64_t count) {
    std::vector<uint32_t> from;
    for (int64_t row = 0; row < batch * count * tokens; ++row) {
      const int64_t unit = row / tokens;
      const int64_t b = unit / count;
      const int64_t t = row % tokens;
      const uint32_t place = places[static_cast<size_t>(b * tokens + t)];
      const int64_t at = place == kNoRow ? t : tokens + place - b * most;
      from.push_back(static_cast<uint32_t>(unit * (tokens + most) + at));
    }
    return from;
  };
  result.words["global_map_rows"] = rows_of_maps(heads);
  result.words["global_head_rows"] = rows_of_maps(1);
  result.words["global_rows"] = std::move(rows);
  result.words["global_places"] = std::move(places);
}

}  // namespace

Result<std::vector<int64_t>> read_attention_windows(const JsonConfig& config, int64_t layers) {
  VKF_ASSIGN(std::vector<int64_t> windows, config.get_int_list_or("attention_window", {512}));
  if (windows.size() == 1) windows.assign(static_cast<size_t>(layers), windows[0]);
  if (static_cast<int64_t>(windows.size()) != layers) {
    return invalid_file(
        message({"[attention_window] in ", config.where(), " has ", windows.size(),
                 " values, but there are ", layers, " layers; give one, or one for each layer"}));
  }
  for (size_t i = 0; i < windows.size(); ++i) {
    if (windows[i] > 0 && windows[i] % 2 == 0 && windows[i] <= kMostPositions) continue;
    return invalid_file(
        message({"[attention_window] in ", config.where(), " is ", windows[i], " in layer ", i,
                 ", but must be an even number of tokens from 2 to ", kMostPositions}));
  }
  return windows;
}

void LongformerForm::add_layer_rows(const std::string& to, const std::string& from, int64_t width,
                                    WeightTable& table) const {
  const std::string module = from + config_.module;
  table.rows.push_back(linear_row(to + ".global.q", {module + "query_global"}, width, width));
  table.rows.push_back(linear_row(
      to + ".global.kv", {module + "key_global", module + "value_global"}, 2 * width, width));
}

Status LongformerForm::default_flags(const TensorMap& inputs, const ForwardInputs& read,
                                     std::vector<uint8_t>& flags) const {
  const int64_t tokens = read.shape.source;
  const std::vector<uint32_t>& ids = read.words.at("input_ids");
  const int64_t given = inputs.at("input_ids").shape[1];
  for (int64_t b = 0; b < read.shape.batch; ++b) {
    const auto first = static_cast<size_t>(b * tokens);
    if (config_.without == LongformerConfig::Default::kFirst) flags[first] = 1;
    if (config_.without != LongformerConfig::Default::kQuestion) continue;
    const auto begin = ids.begin() + b * tokens;
    const auto separator = static_cast<uint32_t>(config_.separator);
    const auto found = std::count(begin, begin + given, separator);
    if (found != kSeparators) {
      return invalid_argument(
          message({"[global_attention_mask] is missing, and row ", b, " of input_ids has ", found,
                   " separators (id ", config_.separator,
                   ") where question and context have 3: give the mask"}));
    }
    const auto end = std::find(begin, begin + given, separator) - begin;
    std::fill_n(flags.begin() + b * tokens, end, uint8_t{1});
  }
  return {};
}

Result<std::vector<uint8_t>> LongformerForm::global_flags(const TensorMap& inputs,
                                                          const ForwardInputs& read) const {
  const int64_t tokens = read.shape.source;
  std::vector<uint8_t> flags(static_cast<size_t>(read.shape.batch * tokens), 0);
  const auto found = inputs.find("global_attention_mask");
  if (found == inputs.end()) {
    VKF_CHECK(default_flags(inputs, read, flags));
  } else {
    const Shape& ids = inputs.at("input_ids").shape;
    if (found->second.shape != ids) {
      return invalid_argument(
          message({"[global_attention_mask] has shape ", shape_text(found->second.shape),
                   ", but input_ids has ", shape_text(ids)}));
    }
    VKF_ASSIGN(std::vector<uint8_t> values, mask_flags("global_attention_mask", found->second));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / ids[1];
      const auto at = static_cast<size_t>(row * tokens + static_cast<int64_t>(i) % ids[1]);
      flags[at] = values[i];
    }
  }
  for (size_t i = 0; i < flags.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (!is_allowed(read, at / tokens, at % tokens)) flags[i] = 0;
  }
  return flags;
}

std::vector<std::string> LongformerForm::input_names() const {
  return {"global_attention_mask"};
}

Status LongformerForm::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  VKF_ASSIGN(std::vector<uint8_t> flags, global_flags(inputs, result));
  const int64_t tokens = result.shape.source;
  uint64_t most = 0;
  for (auto row = flags.begin(); row != flags.end(); row += tokens) {
    most = std::max(most, static_cast<uint64_t>(std::count(row, row + tokens, 1)));
  }
  // Rounded, so that near numbers share a recording.
  const int64_t rounded =
      std::min(static_cast<int64_t>(most == 0 ? 0 : std::bit_ceil(most)), tokens);
  result.shape.more = {rounded};
  if (rounded == 0) return {};
  result.words["global_tokens"] = pack_global_tokens(flags, result.shape.batch, tokens);
  add_global_words(flags, rounded, config_.heads, result);
  return {};
}

Result<StackRun::Attend> LongformerForm::begin_pass(ModelBuilder& b, const StackConfig&,
                                                    const ForwardShape& shape,
                                                    TensorId mask) const {
  LongformerPass pass{.config = config_, .mask = mask, .terms = mask};
  pass.params.key_mask_offset = 0;
  pass.params.flags = VKF_TERM_MASKED_QUERIES;
  pass.most = shape.more.empty() ? 0 : shape.more[0];
  if (pass.most > 0) {
    const int64_t mask_words = shape.batch * ((shape.source + 31) / 32);
    const int64_t first = mask_words + int64_t{VKF_SPARSE_WORDS};
    pass.terms = b.graph().add_external("longformer_terms", DType::kU32,
                                        {first + global_token_words(shape.batch, shape.source)});
    b.feed("key_mask", pass.terms);
    std::vector<uint32_t> table(VKF_SPARSE_WORDS, 0u);
    table[VKF_SPARSE_GLOBAL] = static_cast<uint32_t>(first);
    b.host_words(pass.terms, static_cast<uint64_t>(mask_words), std::move(table));
    b.feed("global_tokens", pass.terms, static_cast<uint64_t>(first));
    pass.params.sparse_offset = static_cast<uint32_t>(mask_words);
    pass.params.flags |= VKF_TERM_GLOBAL | VKF_TERM_NO_GLOBAL_QUERIES;
    pass.rows = fed_words(b, "global_rows", {shape.batch, pass.most});
    pass.places = fed_words(b, "global_places", {shape.batch, shape.source});
  }
  return StackRun::Attend([pass](const LayerSite& site, TensorId h, TensorId qkv) {
    return attend_long(pass, site, h, qkv);
  });
}

}  // namespace vkformer
