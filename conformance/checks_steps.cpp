// Checks of what a decoding step is made of: caches, attention over them, embeddings, states. Slots
// that are not live keep what they hold, which is the poison: NaN.
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/content.h"
#include "conformance/matrix_rounding.h"
#include "conformance/packed_cache.h"
#include "ops/additive_attention.h"
#include "ops/attention_step.h"
#include "ops/embedding.h"
#include "ops/kv_append.h"
#include "ops/move_columns.h"
#include "ops/rotary_append.h"
#include "params/decode_state.h"
#include "reference/additive_attention.h"
#include "reference/attention.h"
#include "reference/layer_norm.h"
#include "reference/rotary.h"

namespace vkformer::conformance {
namespace {

constexpr double kUntouched = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kSlots = 5;  // of which three are live
const std::vector<uint32_t> kLiveRows = {4, 0, 3};

// State words: the live slots' rows, the position of the token.
Tensor state_of(uint32_t position) {
  std::vector<uint32_t> list(VKF_STATE_WORDS + VKF_MAX_SLOTS, 0u);
  list[0] = list[1] = u32(static_cast<int64_t>(kLiveRows.size()));
  list[2] = position;
  std::copy(kLiveRows.begin(), kLiveRows.end(), list.begin() + VKF_STATE_WORDS);
  return words(list);
}

CheckCase step_case() {
  CheckCase made;
  made.op.graph.set_step(u32(kSlots));
  made.live_slots = u32(static_cast<int64_t>(kLiveRows.size()));
  return made;
}

struct KeyValue {
  int64_t lines, k, v;
  uint32_t position, sinks;
};

const char* cache_name(CacheFormat format) {
  if (format == CacheFormat::kF32) return "";
  return format == CacheFormat::kF16 ? "f16-" : "q8-";
}

// Whole numbers up to 127, which are met in every run of 32: any format keeps all of them exactly.
Array exact_lines(const Shape& shape, uint64_t seed) {
  Array array = random_ids(shape, seed, 255);
  for (int64_t i = 0; i < array.size(); ++i) {
    array[i] = i % shape.back() % 32 == 0 ? -127 : array[i] - 127;
  }
  return array;
}

// A cache (R, lines, width) as it is stored, and what is expected of it.
Tensor stored(const Array& cache, CacheFormat format) {
  return format == CacheFormat::kF32 ? floats(cache) : packed_cache(floats(cache), format);
}
Result<Expected> expected_cache(const Array& cache, CacheFormat format) {
  VKF_ASSIGN(Array words, reference::from_tensor(stored(cache, format)));
  return Expected{std::move(words)};
}

// Which line of a cache a position has.
int64_t line_of(const KeyValue& c, int64_t position) {
  return position < c.lines ? position : c.sinks + (position - c.sinks) % (c.lines - c.sinks);
}

Result<CheckCase> append_case(const KeyValue& c) {
  const Array x = random_array({kSlots, c.k + c.v + 9}, 1, Content::kSpecial);
  Array cache = random_array({kSlots, c.lines, c.k + c.v}, 2);
  CheckCase made = step_case();
  const TensorId from = made.op.bind("x", floats(x));
  const TensorId state = made.op.bind("state", state_of(c.position));
  const TensorId to = made.op.bind("cache", floats(cache));
  const KvAppendAttrs attrs{.k_offset = 2,
                            .v_offset = u32(c.k + 5),
                            .k_width = u32(c.k),
                            .v_width = u32(c.v),
                            .positions = 4096,
                            .sinks = c.sinks};
  VKF_CHECK(add_kv_append(made.op.graph, from, state, to, attrs));
  const int64_t width = c.k + c.v;
  for (size_t slot = 0; slot < kLiveRows.size(); ++slot) {
    const int64_t at = (kLiveRows[slot] * c.lines + line_of(c, c.position)) * width;
    for (int64_t i = 0; i < width; ++i) {
      const int64_t column = i < c.k ? 2 + i : 5 + i;
      cache[at + i] = x[static_cast<int64_t>(slot) * x.dim(1) + column];
    }
  }
  made.expected.emplace("cache", Expected{std::move(cache)});
  return made;
}

// Keys and values that lie next to each other in a row of x (R, T, width), or (R, width) with
// `tokens` 0, put into a cache (R, lines, width) of that format.
Result<CheckCase> append_lines(const KeyValue& c, CacheFormat format, int64_t tokens,
                               const Array& x, Array cache) {
  const int64_t width = c.k + c.v;
  CheckCase made = tokens > 0 ? CheckCase{} : step_case();
  std::vector<uint32_t> list(VKF_STATE_WORDS + VKF_MAX_SLOTS, 0u);
  list[0] = list[1] = u32(kSlots);
  list[2] = u32(tokens);
  for (uint32_t row = 0; row < kSlots; ++row) list[VKF_STATE_WORDS + row] = row;
  const TensorId from = made.op.bind("x", floats(x));
  const TensorId state = made.op.bind("state", tokens > 0 ? words(list) : state_of(c.position));
  const TensorId to = made.op.bind("cache", stored(cache, format));
  const KvAppendAttrs attrs{.k_offset = 0,
                            .v_offset = u32(c.k),
                            .k_width = u32(c.k),
                            .v_width = u32(c.v),
                            .positions = 4096,
                            .sinks = c.sinks};
  VKF_CHECK(add_kv_append(made.op.graph, from, state, to, attrs));
  const auto live = tokens > 0 ? kSlots * tokens : static_cast<int64_t>(kLiveRows.size());
  for (int64_t i = 0; i < live; ++i) {
    const int64_t row = tokens > 0 ? i / tokens : kLiveRows[static_cast<size_t>(i)];
    const int64_t line = line_of(c, tokens > 0 ? i % tokens : c.position);
    std::copy_n(x.data.begin() + i * width, width,
                cache.data.begin() + (row * c.lines + line) * width);
  }
  VKF_ASSIGN(Expected expected, expected_cache(cache, format));
  made.expected.emplace("cache", std::move(expected));
  return made;
}

// Packed to halves or bytes, which hold these numbers exactly.
Result<CheckCase> append_packed_case(const KeyValue& c, CacheFormat format, int64_t tokens) {
  const int64_t width = c.k + c.v;
  const Shape shape = tokens > 0 ? Shape{kSlots, tokens, width} : Shape{kSlots, width};
  return append_lines(c, format, tokens, exact_lines(shape, 1),
                      exact_lines({kSlots, c.lines, width}, 2));
}

// A prompt of `tokens` + 1 tokens, the last of which is the first step's.
Result<CheckCase> prompt_case(const KeyValue& c, int64_t tokens) {
  const int64_t width = c.k + c.v;
  return append_lines(c, CacheFormat::kF32, tokens, random_array({kSlots, tokens, width}, 1),
                      random_array({kSlots, c.lines, width}, 2));
}

struct RotaryStep {
  int64_t heads, kv_heads, width, turned, lines;
  uint32_t position;
};

Result<CheckCase> rotary_append_case(const RotaryStep& c) {
  const int64_t q = c.heads * c.width, kv = c.kv_heads * c.width, line = q + 2 * kv;
  const Array x = random_array({kSlots, line}, 1);
  const Array table = random_array({c.lines, c.turned}, 2);
  Array cache = random_array({kSlots, c.lines, 2 * kv}, 3);
  CheckCase made = step_case();
  RotaryAppendInputs in;
  in.x = made.op.bind("x", floats(x));
  in.table = made.op.bind("table", floats(table));
  in.state = made.op.bind("state", state_of(c.position));
  in.cache = made.op.bind("cache", floats(cache));
  RotaryAppendAttrs attrs;
  attrs.heads = u32(c.heads);
  attrs.kv_heads = u32(c.kv_heads);
  attrs.head_width = u32(c.width);
  attrs.rotary_width = u32(c.turned);
  VKF_ASSIGN(const TensorId y, add_rotary_append(made.op.graph, in, attrs));
  made.op.name_output(y, "y");
  const Array places = reference::filled({kSlots}, c.position);
  VKF_ASSIGN(
      const Array turned,
      reference::rotary(x, table, places, {.heads = c.heads + c.kv_heads, .head_width = c.width}));
  Array queries = reference::filled({kSlots, q}, kUntouched);
  for (size_t slot = 0; slot < kLiveRows.size(); ++slot) {
    const auto from = turned.data.begin() + static_cast<int64_t>(slot) * line;
    std::copy_n(from, q, queries.data.begin() + static_cast<int64_t>(slot) * q);
    std::copy_n(from + q, 2 * kv,
                cache.data.begin() + (kLiveRows[slot] * c.lines + c.position) * 2 * kv);
  }
  made.expected.emplace("y", Expected{std::move(queries), terms(2), 4});
  made.expected.emplace("cache", Expected{std::move(cache), terms(2), 4});
  return made;
}

struct AttentionStep {
  int64_t lines, heads, kv_heads, width, value_width;
  uint32_t position;
  bool self;  // else over an encoder's keys
  CacheFormat cache = CacheFormat::kF32;
};

// The keys and values that a live slot sees, from a cache (lines of rows, Hkv (E + Ev)).
Result<Array> seen(const AttentionStep& c, const Array& q, const Array& kv, int64_t slot,
                   const std::vector<int64_t>& owners) {
  const auto keys = static_cast<int64_t>(owners.size());
  const int64_t line = c.kv_heads * (c.width + c.value_width);
  Array query = reference::filled({1, c.heads, 1, c.width}, 0.0);
  Array k = reference::filled({1, c.kv_heads, keys, c.width}, 0.0);
  Array v = reference::filled({1, c.kv_heads, keys, c.value_width}, 0.0);
  std::copy_n(q.data.begin() + slot * q.dim(1), query.size(), query.data.begin());
  for (int64_t j = 0; j < keys; ++j) {
    const int64_t base = (owners[static_cast<size_t>(j)] * c.lines + j) * line;
    for (int64_t h = 0; h < c.kv_heads; ++h) {
      for (int64_t e = 0; e < c.width; ++e) {
        k[(h * keys + j) * c.width + e] = kv[base + h * c.width + e];
      }
      for (int64_t e = 0; e < c.value_width; ++e) {
        v[(h * keys + j) * c.value_width + e] =
            kv[base + c.kv_heads * c.width + h * c.value_width + e];
      }
    }
  }
  return reference::attention(query, k, v);
}

Result<CheckCase> attention_step_case(const AttentionStep& c) {
  const int64_t line = c.kv_heads * (c.width + c.value_width);
  const Array q = random_array({kSlots, c.heads * c.width}, 1);
  Array kv = random_array({kSlots, c.lines, line}, 2);
  const Tensor lines = stored(kv, c.cache);
  if (c.cache != CacheFormat::kF32) {
    VKF_ASSIGN(kv, reference::from_tensor(unpacked_cache(lines, c.cache, line)));
  }
  CheckCase made = step_case();
  AttentionStepInputs in;
  in.q = made.op.bind("q", floats(q));
  in.kv = made.op.bind("kv", lines);
  in.state = made.op.bind("state", state_of(c.position));
  AttentionStepAttrs attrs;
  attrs.source = c.self ? AttentionStepAttrs::Source::kSelf : AttentionStepAttrs::Source::kCross;
  attrs.heads = u32(c.heads);
  attrs.kv_heads = u32(c.kv_heads);
  attrs.head_width = u32(c.width);
  attrs.value_width = u32(c.value_width);
  std::vector<uint32_t> ancestry;
  if (c.self) {
    attrs.beams = u32(kSlots);
    Noise noise(3);
    for (int64_t i = 0; i < kSlots * c.lines; ++i) ancestry.push_back(u32(noise.below(kSlots)));
    Tensor aux = words(ancestry);
    aux.shape = {kSlots, c.lines};
    in.aux = made.op.bind("aux", std::move(aux));
  }
  VKF_ASSIGN(const TensorId y, add_attention_step(made.op.graph, in, attrs));
  made.op.name_output(y, "y");
  const int64_t width = c.heads * c.value_width;
  Array expected = reference::filled({kSlots, width}, kUntouched);
  for (size_t slot = 0; slot < kLiveRows.size(); ++slot) {
    const int64_t keys = c.self ? int64_t{c.position} + 1 : c.lines;
    std::vector<int64_t> owners;
    for (int64_t j = 0; j < keys; ++j) {
      const auto at = static_cast<size_t>(kLiveRows[slot] * c.lines + j);
      owners.push_back(c.self ? ancestry[at] : kLiveRows[slot]);
    }
    VKF_ASSIGN(const Array one, seen(c, q, kv, static_cast<int64_t>(slot), owners));
    std::copy(one.data.begin(), one.data.end(),
              expected.data.begin() + static_cast<int64_t>(slot) * width);
  }
  made.expected.emplace("y", Expected{std::move(expected), terms(c.lines + c.width)});
  return made;
}

Result<CheckCase> embedding_step_case(int64_t width, MatrixFormat format, bool normed) {
  const Array given = random_array({11, width}, 1);
  const Array table = round_to_format(given, format, MatrixOrder::kOutIn);
  const Array places = random_array({40, width}, 2);
  const std::vector<uint32_t> ids = {3, 10, 0, 7, 7};
  CheckCase made = step_case();
  EmbeddingInputs in;
  in.ids = made.op.bind("ids", words(ids));
  EmbeddingAttrs attrs;
  attrs.vocabulary = 11;
  attrs.width = u32(width);
  attrs.scale = 0.5f;
  if (in_blocks(format)) {
    VKF_ASSIGN(const std::vector<float> values, floats(given).to_floats());
    VKF_ASSIGN(const PackedMatrix packed, pack_matrix(values, {11, width}, {}, format));
    in.table = made.op.bind("table", words(packed.words));
    attrs.format = format;
    attrs.panel_stride = panel_stride(format, attrs.width);
  } else {
    const OperatorCall call{"embedding", "{}", {{"table", floats(given)}}};
    OperatorOptions options;
    options.weights = format_name(format);
    VKF_ASSIGN(const OperatorArguments arguments, OperatorArguments::parse(call, options));
    VKF_ASSIGN(Tensor stored, arguments.weights("table"));
    in.table = made.op.bind("table", std::move(stored));
  }
  in.positions = made.op.bind("positions", floats(places));
  in.state = made.op.bind("state", state_of(17));
  const Array gain = random_array({width}, 3), bias = random_array({width}, 4);
  if (normed) {
    Array gain_bias = gain;
    gain_bias.shape = {2, width};
    gain_bias.data.insert(gain_bias.data.end(), bias.data.begin(), bias.data.end());
    in.gain_bias = made.op.bind("gain_bias", floats(gain_bias));
  }
  VKF_ASSIGN(const TensorId y, add_embedding(made.op.graph, in, attrs));
  made.op.name_output(y, "y");
  Array expected = reference::filled(made.op.graph.tensor(y).shape, kUntouched);
  Array live = reference::filled({static_cast<int64_t>(kLiveRows.size()), width}, 0);
  for (int64_t i = 0; i < live.size(); ++i) {
    const int64_t id = ids[static_cast<size_t>(i / width)];
    live[i] = table[id * width + i % width] * 0.5 + places[17 * width + i % width];
  }
  if (normed) {
    VKF_ASSIGN(live, reference::layer_norm(live, {.gain = &gain, .bias = &bias}));
  }
  std::copy(live.data.begin(), live.data.end(), expected.data.begin());
  made.expected.emplace("y", Expected{std::move(expected), terms(normed ? width : 1), 4});
  return made;
}

// The alignment of one query of every live slot with the tokens of its item.
Result<CheckCase> alignment_step_case(int64_t tokens, int64_t width, int64_t value_width) {
  const int64_t line = width + value_width;
  const Array q = random_array({kSlots, width}, 1), kv = random_array({kSlots, tokens, line}, 2);
  const Array v = random_array({width}, 3);
  const Tensor stored = floats(v);
  std::vector<uint32_t> aux(static_cast<size_t>(width));
  std::memcpy(aux.data(), stored.bytes.data(), stored.bytes.size());
  CheckCase made = step_case();
  AdditiveAttentionInputs in;
  in.q = made.op.bind("q", floats(q));
  in.kv = made.op.bind("kv", floats(kv));
  in.aux = made.op.bind("aux", words(aux));
  in.state = made.op.bind("state", state_of(9));
  AdditiveAttentionAttrs attrs;
  attrs.width = u32(width);
  attrs.value_width = u32(value_width);
  VKF_ASSIGN(const TensorId y, add_additive_attention(made.op.graph, in, attrs));
  made.op.name_output(y, "y");
  Array expected = reference::filled({kSlots, value_width + tokens}, kUntouched);
  for (size_t slot = 0; slot < kLiveRows.size(); ++slot) {
    const auto at = static_cast<int64_t>(slot) * width;
    const auto item = int64_t{kLiveRows[slot]} * tokens * line;
    const reference::AlignmentInputs one{
        Array{{1, 1, width}, {q.data.begin() + at, q.data.begin() + at + width}},
        Array{{1, tokens, line}, {kv.data.begin() + item, kv.data.begin() + item + tokens * line}},
        nullptr, &v};
    reference::AlignmentOptions options;
    options.width = width;
    options.value_width = value_width;
    VKF_ASSIGN(const Array row, reference::additive_attention(one, options));
    std::copy(row.data.begin(), row.data.end(),
              expected.data.begin() + static_cast<int64_t>(slot) * (value_width + tokens));
  }
  made.expected.emplace("y", Expected{std::move(expected), terms(std::max(tokens, 64 * width))});
  return made;
}

// The columns that the position before left, and the own ones where they go.
Result<CheckCase> state_case(int64_t width, uint32_t position) {
  Array states = random_array({kSlots, 2, width + 3}, 3);
  CheckCase made = step_case();
  StateCache cache;
  cache.cache = made.op.bind("cache", floats(states));
  std::vector<uint32_t> ancestry;
  for (uint32_t row = 0; row < kSlots; ++row) {
    for (uint32_t t = 0; t < 4; ++t) ancestry.push_back((row + t) % u32(kSlots));
  }
  Tensor aux = words(ancestry);
  aux.shape = {kSlots, 4};
  cache.ancestry = made.op.bind("ancestry", std::move(aux));
  cache.state = made.op.bind("state", state_of(position));
  cache.capacity = 4;
  cache.beams = u32(kSlots);
  VKF_ASSIGN(const TensorId y, add_load_state(made.op.graph, cache, 1, width));
  made.op.name_output(y, "y");
  VKF_CHECK(add_store_state(made.op.graph, y, cache, 2));
  Array loaded = reference::filled({kSlots, width}, kUntouched);
  Array after = states;
  for (size_t slot = 0; slot < kLiveRows.size(); ++slot) {
    const uint32_t row = kLiveRows[slot];
    const uint32_t owner = position == 0 ? 0 : ancestry[row * 4 + position - 1];
    const int64_t from = (2 * owner + (position + 1) % 2) * (width + 3);
    const int64_t to = (2 * row + position % 2) * (width + 3);
    for (int64_t i = 0; i < width; ++i) {
      loaded[static_cast<int64_t>(slot) * width + i] = states[from + 1 + i];
      after[to + 2 + i] = states[from + 1 + i];
    }
  }
  made.expected.emplace("y", Expected{std::move(loaded)});
  made.expected.emplace("cache", Expected{std::move(after)});
  return made;
}

void add_cache_checks(CheckList& list) {
  for (const KeyValue& c :
       {KeyValue{1, 1, 1, 0, 0}, KeyValue{9, 8, 6, 8, 0}, KeyValue{9, 33, 31, 15, 2},
        KeyValue{64, 129, 64, 63, 0}, KeyValue{7, 768, 768, 1500, 3}}) {
    const std::string at = size_text({c.lines, c.k, c.v}) + "-at-" + std::to_string(c.position);
    list.add("kv_append", "slots/" + at, c.lines == 9, [=] { return append_case(c); });
    const int64_t tokens = std::min<int64_t>(c.lines, 33);
    list.add("kv_append", "prompt/" + at, c.lines == 9, [=] { return prompt_case(c, tokens); });
    for (const CacheFormat format : kPackedCaches) {
      const std::string how = cache_name(format) + at;
      list.add("kv_append", "slots-" + how, c.lines == 9,
               [=] { return append_packed_case(c, format, 0); });
      list.add("kv_append", "prompt-" + how, c.lines == 9,
               [=] { return append_packed_case(c, format, tokens); });
    }
  }
}

}  // namespace

void add_step_checks(CheckList& list) {
  add_cache_checks(list);
  for (const RotaryStep& c :
       {RotaryStep{1, 1, 2, 2, 1, 0}, RotaryStep{3, 1, 32, 16, 20, 19},
        RotaryStep{4, 2, 66, 66, 70, 33}, RotaryStep{2, 2, 128, 128, 129, 128}}) {
    list.add(
        "rotary_append",
        size_text({c.heads, c.kv_heads, c.width, c.turned}) + "-at-" + std::to_string(c.position),
        c.lines == 20, [=] { return rotary_append_case(c); });
  }
  for (const uint32_t position : {0u, 1u, 7u, 31u, 32u, 63u, 64u, 65u, 255u, 256u, 257u, 1499u}) {
    for (const auto& [width, value_width] :
         {std::pair{int64_t{16}, int64_t{16}}, {64, 64}, {80, 24}, {256, 256}}) {
      const AttentionStep c{int64_t{position} + 2, 4, 2, width, value_width, position, true};
      const std::string at = size_text({width, value_width}) + "-at-" + std::to_string(position);
      const bool quick = (position == 7 || position == 257) && width <= 64;
      list.add("attention", "step-self/" + at, quick, [=] { return attention_step_case(c); });
      AttentionStep cross = c;
      cross.self = false;
      list.add("attention", "step-cross/" + at, quick, [=] { return attention_step_case(cross); });
      for (const CacheFormat format : kPackedCaches) {
        AttentionStep packed = c;
        packed.cache = format;
        list.add("attention", std::string("step-self-") + cache_name(format) + at, quick,
                 [=] { return attention_step_case(packed); });
      }
    }
  }
  for (const Shape& s : {Shape{1, 1, 1}, Shape{9, 33, 17}, Shape{65, 64, 129}}) {
    list.add("additive_attention", "step/" + size_text(s), s[0] == 9,
             [=] { return alignment_step_case(s[0], s[1], s[2]); });
  }
  for (const int64_t width : {int64_t{1}, int64_t{31}, int64_t{33}, int64_t{768}}) {
    for (const MatrixFormat format : kMatrixFormats) {
      const int64_t stored = format == MatrixFormat::kF16 ? width + width % 2 : width;
      for (const bool normed : {false, true}) {
        const std::string name = std::string("step-") + format_name(format) +
                                 (normed ? "-norm/" : "/") + std::to_string(stored);
        list.add("embedding", name, width == 33,
                 [=] { return embedding_step_case(stored, format, normed); });
      }
    }
    for (const uint32_t position : {0u, 1u, 2u}) {
      list.add("move_columns", "step/" + size_text({width, position}), width == 33,
               [=] { return state_case(width, position); });
    }
  }
}

}  // namespace vkformer::conformance
