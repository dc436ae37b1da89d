#include "conformance/benchmark_steps.h"

#include <cstring>

#include "base/check.h"
#include "base/narrow.h"
#include "image/picture_tables.h"
#include "measure/benchmark_inputs.h"
#include "ops/attention_step.h"
#include "ops/beam_select.h"
#include "ops/chunk_attention.h"
#include "ops/greedy_select.h"
#include "ops/kv_append.h"
#include "ops/lsh_sort.h"
#include "ops/mix_rounds.h"
#include "ops/picture_values.h"
#include "ops/recurrent_cell.h"
#include "ops/rotary_append.h"
#include "ops/step_advance.h"
#include "ops/token_sample.h"
#include "params/decode_state.h"

namespace vkformer {
namespace {

// A graph in the making, with the numbers that its row gives.
class StepGraph {
 public:
  StepGraph(const std::vector<RowInput>& numbers, OperatorGraph& out)
      : numbers_(numbers), out_(out) {}

  Graph& graph() { return out_.graph; }
  // The number of that name, or the fallback.
  int64_t number(const char* name, int64_t fallback = 1) const {
    for (const RowInput& input : numbers_) {
      if (input.name == name) return input.shape.front();
    }
    return fallback;
  }
  // Uniform in [-1, 1).
  TensorId floats(const char* name, Shape shape) {
    const TensorId id = graph().add_external(name, DType::kF32, std::move(shape));
    UniformNoise noise(id + 1);
    TensorContent content{id, {}};
    content.bytes.resize(static_cast<size_t>(element_count(graph().tensor(id).shape)) * 4);
    for (size_t i = 0; i < content.bytes.size(); i += 4) {
      const float value = noise.next();
      std::memcpy(content.bytes.data() + i, &value, 4);
    }
    out_.contents.push_back(std::move(content));
    return id;
  }
  TensorId words(const char* name, Shape shape, const std::vector<uint32_t>& values) {
    const TensorId id = graph().add_external(name, DType::kU32, std::move(shape));
    TensorContent content{id, std::vector<std::byte>(values.size() * 4)};
    if (!values.empty()) std::memcpy(content.bytes.data(), values.data(), content.bytes.size());
    out_.contents.push_back(std::move(content));
    return id;
  }
  // A step's state: its slots are rows 0, 1, ..., all live.
  TensorId state(int64_t slots, int64_t items, int64_t position) {
    graph().set_step(u32(slots));
    return state_words(slots, items, position);
  }
  // The same beside a prompt.
  TensorId state_words(int64_t slots, int64_t items, int64_t position) {
    std::vector<uint32_t> values(VKF_STATE_WORDS + VKF_MAX_SLOTS, 0u);
    values[0] = u32(items);
    values[1] = u32(slots);
    values[2] = u32(position);
    for (uint32_t slot = 0; slot < slots; ++slot) values[VKF_STATE_WORDS + slot] = slot;
    return words("decode_state", {static_cast<int64_t>(values.size())}, values);
  }

 private:
  const std::vector<RowInput>& numbers_;
  OperatorGraph& out_;
};

// Every line of the cache is seen.
Status attention_step(StepGraph& in) {
  const int64_t slots = in.number("slots"), lines = in.number("lines");
  const int64_t heads = in.number("heads"), width = in.number("width");
  const TensorId state = in.state(slots, 1, lines - 1);
  const TensorId q = in.floats("q", {slots, heads * width});
  const TensorId kv = in.floats("kv", {slots, lines, 2 * heads * width});
  std::vector<uint32_t> ancestry(static_cast<size_t>(slots * lines));
  for (size_t i = 0; i < ancestry.size(); ++i) ancestry[i] = u32(static_cast<int64_t>(i) / lines);
  const TensorId aux = in.words("ancestry", {slots, lines}, ancestry);
  AttentionStepAttrs attrs;
  attrs.heads = attrs.kv_heads = u32(heads);
  attrs.head_width = attrs.value_width = u32(width);
  attrs.beams = u32(slots);
  AttentionStepInputs inputs;
  inputs.q = q;
  inputs.kv = kv;
  inputs.aux = aux;
  inputs.state = state;
  VKF_ASSIGN(const TensorId y, add_attention_step(in.graph(), inputs, attrs));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

Status kv_append(StepGraph& in) {
  const int64_t slots = in.number("slots"), lines = in.number("lines");
  const int64_t width = in.number("width"), prompt = in.number("prompt", 0);
  const TensorId state =
      prompt > 0 ? in.state_words(slots, slots, prompt) : in.state(slots, slots, lines - 1);
  const TensorId x =
      in.floats("x", prompt > 0 ? Shape{1, prompt, 3 * width} : Shape{slots, 3 * width});
  const TensorId cache = in.floats("cache", {slots, lines, 2 * width});
  KvAppendAttrs attrs;
  attrs.k_offset = u32(width);
  attrs.v_offset = u32(2 * width);
  attrs.k_width = attrs.v_width = u32(width);
  return add_kv_append(in.graph(), x, state, cache, attrs);
}

Status rotary_append(StepGraph& in) {
  const int64_t slots = in.number("slots"), lines = in.number("lines");
  const int64_t heads = in.number("heads"), width = in.number("width");
  RotaryAppendInputs inputs;
  inputs.state = in.state(slots, slots, lines - 1);
  inputs.x = in.floats("x", {slots, 3 * heads * width});
  inputs.table = in.floats("table", {lines, width});
  inputs.cache = in.floats("cache", {slots, lines, 2 * heads * width});
  RotaryAppendAttrs attrs;
  attrs.heads = attrs.kv_heads = u32(heads);
  attrs.head_width = attrs.rotary_width = u32(width);
  VKF_ASSIGN(const TensorId y, add_rotary_append(in.graph(), inputs, attrs));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

// A search in its first step; every beam of an item has a hypothesis.
SearchTensors search_tensors(StepGraph& in) {
  const int64_t items = in.number("items"), beams = in.number("beams");
  const int64_t rows = items * beams;
  SearchTensors t{.params = {}};
  t.params.batch = u32(items);
  t.params.beams = u32(beams);
  t.params.capacity = u32(in.number("capacity"));
  t.params.vocab = u32(in.number("vocab"));
  t.params.candidates = beams == 1 ? 1 : 2 * u32(beams);
  const int64_t capacity = in.number("capacity");
  t.state = in.state(rows, items, 0);
  std::vector<uint32_t> search(search_words(t.params), 0u);
  // params/search.h: tokens (R, C), scores (R), items (B, 4).
  const auto first_item = static_cast<size_t>(rows * capacity + rows);
  for (size_t i = 0; i < static_cast<size_t>(items); ++i) {
    search[first_item + 4 * i + VKF_ITEM_ACTIVE] = 1;
  }
  t.search = in.words("search", {static_cast<int64_t>(search.size())}, search);
  SearchSettings settings{};
  settings.prompt_length = 1;
  settings.max_length = t.params.capacity;
  settings.forced_first = settings.forced_last = VKF_NO_TOKEN;
  settings.length_penalty = 1.0f;
  settings.eos_count = 1;
  std::vector<uint32_t> words(sizeof settings / 4);
  std::memcpy(words.data(), &settings, sizeof settings);
  t.settings = in.words("settings", {static_cast<int64_t>(words.size())}, words);
  const int64_t half = (int64_t{t.params.vocab} + 31) / 32;
  t.suppress = in.words("suppress", {2, half}, std::vector<uint32_t>(2 * u32(half), 0u));
  std::vector<uint32_t> ancestry(static_cast<size_t>(rows * capacity));
  for (size_t i = 0; i < ancestry.size(); ++i) {
    ancestry[i] = u32(static_cast<int64_t>(i) / capacity);
  }
  t.ancestry = in.words("ancestry", {rows, capacity}, ancestry);
  t.step_ids = in.words("step_ids", {rows}, std::vector<uint32_t>(u32(rows), 0u));
  t.args = in.words("args", {int64_t{kMaxStepDispatches} * 7}, {});
  return t;
}

// (R, K, 2): score bits and token, best first.
TensorId candidates(StepGraph& in, const SearchParams& p) {
  const uint32_t rows = p.batch * p.beams;
  std::vector<uint32_t> words;
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t k = 0; k < p.candidates; ++k) {
      const float score = -0.25f * static_cast<float>(k + 1);
      uint32_t bits = 0;
      std::memcpy(&bits, &score, 4);
      words.insert(words.end(), {bits, (row * p.candidates + k + 1) % p.vocab});
    }
  }
  return in.words("candidates", {rows, p.candidates, 2}, words);
}

Status token_candidates(StepGraph& in) {
  const SearchTensors t = search_tensors(in);
  const int64_t rows = int64_t{t.params.batch} * t.params.beams;
  const TensorId logits = in.floats("logits", {rows, t.params.vocab});
  VKF_ASSIGN(const TensorId y, add_token_candidates(in.graph(), logits, t));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

// Settings of every row as users set them, and no rules.
TensorId choice_words_of(StepGraph& in, const SearchParams& p) {
  std::vector<uint32_t> words(choice_words(p, 0), 0u);
  ChoiceRow row{};
  row.temperature = 0.8f;
  row.top_p = 0.95f;
  row.typical_p = 1.0f;
  row.top_k = 40;
  row.repetition = 1.1f;
  for (size_t r = 0; r < size_t{p.batch} * p.beams; ++r) {
    std::memcpy(words.data() + r * VKF_CHOICE_WORDS, &row, sizeof row);
  }
  return in.words("choice", {static_cast<int64_t>(words.size())}, words);
}

Status token_scores(StepGraph& in) {
  SearchTensors t = search_tensors(in);
  t.choice = choice_words_of(in, t.params);
  const int64_t rows = int64_t{t.params.batch} * t.params.beams;
  const TensorId logits = in.floats("logits", {rows, t.params.vocab});
  VKF_ASSIGN(const TensorId y, add_token_scores(in.graph(), logits, t, ScoresFrom::kLogits));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

Status token_sample(StepGraph& in) {
  SearchTensors t = search_tensors(in);
  t.choice = choice_words_of(in, t.params);
  const int64_t rows = int64_t{t.params.batch} * t.params.beams;
  const TensorId logits = in.floats("logits", {rows, t.params.vocab});
  const TensorId scores = in.floats("scores", {rows, t.params.vocab});
  VKF_ASSIGN(const TensorId y, add_token_sample(in.graph(), scores, logits, t));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

Status select(StepGraph& in) {
  const SearchTensors t = search_tensors(in);
  const TensorId chosen = candidates(in, t.params);
  return t.params.beams == 1 ? add_greedy_select(in.graph(), chosen, t)
                             : add_beam_select(in.graph(), chosen, t);
}

Status advance(StepGraph& in) {
  return add_step_advance(in.graph(), search_tensors(in));
}

// Rows in the order of their hashes, one round behind the other, keys that are the queries.
Status chunk_attention(StepGraph& in) {
  const int64_t heads = in.number("heads"), tokens = in.number("tokens");
  const int64_t width = in.number("width"), rounds = in.number("rounds");
  ChunkAttentionAttrs attrs;
  attrs.heads = u32(heads);
  attrs.tokens = u32(tokens);
  attrs.head_width = attrs.value_width = u32(width);
  attrs.rounds = u32(rounds);
  attrs.chunk = u32(in.number("chunk"));
  attrs.before = 1;
  attrs.keys = ChunkAttentionAttrs::Keys::kQueries;
  attrs.q = attrs.k = separate_heads(attrs.heads, attrs.tokens, attrs.head_width, 0);
  attrs.v =
      separate_heads(attrs.heads, attrs.tokens, attrs.value_width, u32(heads * tokens * width));
  const TensorId x = in.floats("x", {2, heads, tokens, width});
  std::vector<uint32_t> order(static_cast<size_t>(heads * rounds * tokens));
  // An odd factor permutes the positions: of tokens it is a power of two, as here.
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = u32(static_cast<int64_t>(i) * 1021 % tokens);
  }
  const TensorId by = in.words("order", {1, heads, rounds, tokens}, order);
  VKF_ASSIGN(const TensorId y, add_chunk_attention(in.graph(), {.x = x, .order = by}, attrs));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

Status lsh_sort(StepGraph& in) {
  const int64_t heads = in.number("heads"), tokens = in.number("tokens");
  const int64_t rounds = in.number("rounds"), buckets = in.number("buckets");
  UniformNoise noise(1);
  std::vector<uint32_t> values(static_cast<size_t>(heads * rounds * tokens));
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t round = static_cast<int64_t>(i) / tokens % rounds;
    const float unit = 0.5f + 0.5f * noise.next();
    values[i] = u32(round * buckets + static_cast<int64_t>(unit * static_cast<float>(buckets)));
  }
  const TensorId x = in.words("buckets", {1, heads, rounds, tokens}, values);
  VKF_ASSIGN(const TensorId y, add_lsh_sort(in.graph(), x, {.buckets = u32(buckets)}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

Status mix_rounds(StepGraph& in) {
  const TensorId x = in.floats("x", {1, in.number("heads"), in.number("rounds"),
                                     in.number("tokens"), in.number("width") + 2});
  VKF_ASSIGN(const TensorId y, add_mix_rounds(in.graph(), x));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

Status recurrent_cell(StepGraph& in) {
  const int64_t rows = in.number("rows"), width = in.number("width");
  const RecurrentCellInputs inputs{.gates = in.floats("gates", {rows, 3 * width}),
                                   .states = in.floats("states", {rows, 3 * width}),
                                   .carry = in.floats("carry", {rows, width})};
  VKF_ASSIGN(const TensorId y, add_recurrent_cell(in.graph(), inputs, {}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

Status picture_values(StepGraph& in) {
  const PictureSize size{in.number("width"), in.number("height")};
  const auto side = static_cast<int>(in.number("size"));
  VKF_ASSIGN(const PictureTables tables,
             make_picture_tables({&size, 1}, PictureSettings{.width = side, .height = side}));
  std::vector<uint32_t> pixels(static_cast<size_t>(size.width * size.height));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint32_t>(i * 2654435761u);
  const PictureValuesAttrs attrs{u32(side),
                                 u32(side),
                                 {{.width = u32(size.width),
                                   .height = u32(size.height),
                                   .columns = tables.places[0].columns,
                                   .rows = tables.places[0].rows}}};
  const auto count = static_cast<int64_t>(pixels.size());
  const auto words = static_cast<int64_t>(tables.words.size());
  const TensorId x = in.words("pixels", {count}, pixels);
  const TensorId t = in.words("tables", {words}, tables.words);
  VKF_ASSIGN(const TensorId y, add_picture_values(in.graph(), x, t, attrs));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

struct Builder {
  const char* op;
  Status (*build)(StepGraph& in);
};

constexpr Builder kBuilders[] = {
    {"attention", attention_step},
    {"beam_select", select},
    {"chunk_attention", chunk_attention},
    {"greedy_select", select},
    {"kv_append", kv_append},
    {"lsh_sort", lsh_sort},
    {"mix_rounds", mix_rounds},
    {"picture_values", picture_values},
    {"recurrent_cell", recurrent_cell},
    {"rotary_append", rotary_append},
    {"step_advance", advance},
    {"token_candidates", token_candidates},
    {"token_sample", token_sample},
    {"token_scores", token_scores},
};

}  // namespace

Result<OperatorGraph> make_step_graph(const std::string& op, const std::vector<RowInput>& numbers) {
  for (const Builder& builder : kBuilders) {
    if (op != builder.op) continue;
    OperatorGraph result;
    StepGraph in(numbers, result);
    VKF_CHECK(builder.build(in));
    return result;
  }
  return internal_error("[benchmark] The operator " + op +
                        " has a row without a call, but nothing that builds it; add one.");
}

}  // namespace vkformer
