#include "conformance/attention_step_cases.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/step_cases.h"
#include "ops/score_terms.h"
#include "reference/attention.h"

namespace vkformer::conformance {
namespace {

// Whose line holds key `j` of a row.
int64_t owner_of(const AttentionStep& c, const AttentionStepArrays& a, int64_t row, int64_t j) {
  if (!c.self()) return row / c.beams;
  return c.beams == 1 ? row : a.aux[static_cast<size_t>(row * c.lines + j)];
}

// Keys and values of the lines that a row reads, as the reference takes them.
struct Seen {
  Array k, v;  // (1, Hkv, S, E), (1, Hkv, S, Ev)
};
Seen seen_by(const AttentionStep& c, const AttentionStepArrays& a, int64_t row, int64_t keys) {
  Seen seen{reference::filled({1, c.kv_heads, keys, c.head_width}, 0.0),
            reference::filled({1, c.kv_heads, keys, c.value_width}, 0.0)};
  for (int64_t j = 0; j < keys; ++j) {
    const auto line = a.kv.data.begin() + (owner_of(c, a, row, j) * c.lines + j) * c.line();
    for (int64_t h = 0; h < c.kv_heads; ++h) {
      std::copy_n(line + h * c.head_width, c.head_width,
                  seen.k.data.begin() + (h * keys + j) * c.head_width);
      std::copy_n(line + c.first_value() + h * c.value_width, c.value_width,
                  seen.v.data.begin() + (h * keys + j) * c.value_width);
    }
  }
  return seen;
}

// 1 where a row may look, and what is added to its scores.
struct Terms {
  Array mask, bias;  // (1, S), (1, H, 1, S)
};
Terms terms_of(const AttentionStep& c, const AttentionStepArrays& a, int64_t row, int64_t keys) {
  Terms t{reference::filled({1, keys}, 1.0), reference::filled({1, c.heads, 1, keys}, 0.0)};
  for (int64_t j = 0; j < keys; ++j) {
    const int64_t distance = j - c.own_position();
    if (c.masked) {
      const int64_t word = row / c.beams * ((c.lines + 31) / 32) + j / 32;
      t.mask[j] = a.aux[static_cast<size_t>(word)] >> (j % 32) & 1u;
    }
    if (c.self() && c.window > 0 && -distance >= c.window) t.mask[j] = 0;
    const int64_t column = std::clamp(distance, -c.reach, c.reach) + c.reach;
    for (int64_t h = 0; h < c.heads; ++h) {
      double& added = t.bias[h * keys + j];
      if (c.sloped) added += a.slopes[h] * static_cast<double>(distance);
      if (c.reach > 0) added += a.distances[h * (2 * c.reach + 1) + column];
    }
  }
  return t;
}

// The live slot's row (1, H, 1, Ev).
Result<Array> expected_row(const AttentionStep& c, const AttentionStepArrays& a, int64_t slot) {
  const int64_t row = c.slot_rows[static_cast<size_t>(slot)];
  const int64_t keys = c.self() ? std::min(c.own_position() + 1, c.lines) : c.lines;
  Array query = reference::filled({1, c.heads, 1, c.head_width}, 0.0);
  std::copy_n(a.q.data.begin() + slot * a.q.dim(1) + c.query_column, query.size(),
              query.data.begin());
  const Seen seen = seen_by(c, a, row, keys);
  const Terms terms = terms_of(c, a, row, keys);
  reference::AttentionOptions options;
  options.masks.key_mask = &terms.mask;
  options.bias = &terms.bias;
  if (c.sinks) options.sink_scores = &a.sinks;
  return reference::attention(query, seen.k, seen.v, options);
}

// Binds the words that go with the cache, and says where slopes and distances are.
TensorId bind_aux(const AttentionStep& c, const AttentionStepArrays& a, PreparedOperator& op,
                  AttentionStepAttrs& attrs) {
  const bool added = c.sloped || c.reach > 0 || c.sinks;
  if (!c.masked && !added && (c.beams == 1 || !c.self())) return kNoTensor;
  std::vector<uint32_t> list = a.aux;
  const auto add_floats = [&](const Array& values) {
    for (const double value : values.data) {
      list.push_back(std::bit_cast<uint32_t>(static_cast<float>(value)));
    }
  };
  if (c.sloped) {
    attrs.slopes_offset = static_cast<uint32_t>(list.size());
    add_floats(a.slopes);
  }
  if (c.reach > 0) {
    attrs.distance_offset = static_cast<uint32_t>(list.size());
    list.push_back(u32(c.reach));
    add_floats(a.distances);
  }
  if (c.sinks) {
    attrs.sink_scores_offset = static_cast<uint32_t>(list.size());
    add_floats(a.sinks);
  }
  Tensor aux = words(list);
  if (!c.self()) aux.shape = {a.kv.dim(0), aux.shape[0] / a.kv.dim(0)};
  return op.bind("aux", std::move(aux));
}

}  // namespace

Result<AttentionStepArrays> make_step_arrays(const AttentionStep& c) {
  const int64_t items = c.rows / c.beams, holders = c.self() ? c.rows : items;
  AttentionStepArrays a;
  a.q = random_array({c.rows, c.query_column + c.heads * c.head_width}, 1);
  a.kv = random_array({holders, c.lines, c.line()}, 2);
  a.stored = stored(a.kv, c.cache);
  if (c.cache != CacheFormat::kF32) {
    VKF_ASSIGN(a.kv, reference::from_tensor(unpacked_cache(a.stored, c.cache, c.line())));
  }
  Noise noise(3);
  if (c.self()) {
    for (int64_t i = 0; i < c.rows * c.lines; ++i) {
      a.aux.push_back(u32(i / c.lines / c.beams * c.beams + noise.below(c.beams)));
    }
  } else if (c.masked) {
    std::vector<uint8_t> allowed;
    for (const double bit : random_mask({items, c.lines}, 4).data) allowed.push_back(bit != 0);
    a.aux = pack_key_mask(allowed, items, c.lines);
  }
  if (c.sloped) {
    a.slopes = reference::filled({c.heads}, 0.0);
    for (int64_t h = 0; h < c.heads; ++h) a.slopes[h] = std::ldexp(1.0, static_cast<int>(-1 - h));
  }
  if (c.sinks) a.sinks = random_array({c.heads}, 6);
  if (c.reach > 0) a.distances = random_array({c.heads, 2 * c.reach + 1}, 5);
  return a;
}

Result<CheckCase> attention_step_case(const AttentionStep& c, const AttentionStepArrays& a) {
  CheckCase made;
  made.op.graph.set_step(u32(c.rows));
  made.live_slots = static_cast<uint32_t>(c.slot_rows.size());
  std::vector<uint32_t> entries = c.slot_rows;
  for (uint32_t& entry : entries) entry |= c.start << VKF_SLOT_ROW_BITS;
  AttentionStepAttrs attrs;
  attrs.source = c.source;
  attrs.heads = u32(c.heads);
  attrs.kv_heads = u32(c.kv_heads);
  attrs.head_width = u32(c.head_width);
  attrs.value_width = u32(c.value_width);
  if (c.value_column) attrs.value_column = u32(*c.value_column);
  attrs.q_offset = u32(c.query_column);
  attrs.beams = u32(c.beams);
  attrs.window = c.window;
  AttentionStepInputs in;
  in.q = made.op.bind("q", floats(a.q));
  in.kv = made.op.bind("kv", a.stored);
  in.state = made.op.bind("state", state_of(c.position, entries));
  in.aux = bind_aux(c, a, made.op, attrs);
  VKF_ASSIGN(const TensorId y, add_attention_step(made.op.graph, in, attrs));
  made.op.name_output(y, "y");
  const int64_t width = c.heads * c.value_width;
  Array expected = reference::filled({c.rows, width}, kUntouched);
  for (int64_t slot = 0; slot < static_cast<int64_t>(c.slot_rows.size()); ++slot) {
    VKF_ASSIGN(const Array one, expected_row(c, a, slot));
    std::copy(one.data.begin(), one.data.end(), expected.data.begin() + slot * width);
  }
  made.expected.emplace("y", Expected{std::move(expected), terms(c.lines + c.head_width)});
  return made;
}

namespace {

Result<CheckCase> whole_case(const AttentionStep& c) {
  VKF_ASSIGN(const AttentionStepArrays a, make_step_arrays(c));
  return attention_step_case(c, a);
}

// Positions around lane groups and parts of keys, by width and by how the cache is stored.
void add_position_checks(OperatorCases& cases) {
  for (const uint32_t position : {0u, 1u, 7u, 31u, 32u, 63u, 64u, 65u, 255u, 256u, 257u, 1499u}) {
    for (const auto& [width, value_width] :
         {std::pair{int64_t{16}, int64_t{16}}, {64, 64}, {80, 24}, {256, 256}}) {
      AttentionStep c{.rows = kSlots,
                      .beams = kSlots,
                      .lines = int64_t{position} + 2,
                      .head_width = width,
                      .value_width = value_width,
                      .position = position,
                      .slot_rows = kLiveRows,
                      .query_column = 0};
      const std::string at = size_text({width, value_width}) + "-at-" + std::to_string(position);
      const bool quick = (position == 7 || position == 257) && width <= 64;
      cases.check("step-self/" + at, quick, [=] { return whole_case(c); });
      AttentionStep cross = c;
      cross.source = AttentionStepAttrs::Source::kCross;
      cross.beams = 1;
      cases.check("step-cross/" + at, quick, [=] { return whole_case(cross); });
      for (const CacheFormat format : kPackedCaches) {
        c.cache = format;
        cases.check(std::string("step-self-") + cache_name(format) + at, quick,
                    [=] { return whole_case(c); });
      }
    }
  }
}

// Values that are columns of the one key: a rotated part, then a latent (multi-head latent
// attention).
AttentionStep latent_step(int64_t rotary, int64_t rank, uint32_t position) {
  return {.lines = int64_t{position} + 4,
          .kv_heads = 1,
          .head_width = rotary + rank,
          .value_width = rank,
          .value_column = rotary,
          .position = position};
}

// One row of `lines` keys: longer than a software driver's loops have rounds for, or in parts.
AttentionStep long_step(int64_t lines, int64_t width, uint32_t position) {
  return {.rows = 2,
          .lines = lines,
          .heads = 1,
          .kv_heads = 1,
          .head_width = width,
          .value_width = width,
          .position = position,
          .slot_rows = {1}};
}

void add_step_tests(OperatorCases& cases) {
  const auto add = [&](const std::string& name, const AttentionStep& c) {
    cases.test("step-" + name, [=] { return whole_case(c); });
  };
  for (const uint32_t position : {0u, 1u, 7u, 8u, 62u, 63u, 64u, 69u}) {
    add("position/" + std::to_string(position), {.position = position});
  }
  for (const int64_t width : {1, 8, 40, 64, 80, 128, 256}) {
    add("width/" + std::to_string(width),
        {.head_width = width, .value_width = width == 40 ? 24 : width});
  }
  add("long/4099", long_step(4099, 128, 4097));
  add("long/15000", long_step(15000, 64, 14998));
  for (const CacheFormat format : kPackedCaches) {
    const std::string how = cache_name(format);
    for (const int64_t width : {1, 6, 7, 12, 16, 40, 64, 80}) {
      add(how + "width/" + std::to_string(width), {.kv_heads = width == 12 ? 4 : 2,
                                                   .head_width = width,
                                                   .value_width = width == 40 ? 24 : width,
                                                   .cache = format});
    }
    add(how + "beams/3", {.beams = 3, .cache = format});
    AttentionStep parts = long_step(2500, 16, 2490);
    parts.cache = format;
    add(how + "parts/2500", parts);
  }
  for (const auto& [rotary, rank] :
       {std::pair{int64_t{4}, int64_t{10}}, {0, 16}, {3, 7}, {32, 224}, {64, 512}}) {
    const std::string size = size_text({rotary, rank});
    for (const uint32_t position : {0u, 66u, 300u}) {
      add("latent/" + size + "-at-" + std::to_string(position),
          latent_step(rotary, rank, position));
    }
    for (const CacheFormat format : kPackedCaches) {
      AttentionStep packed = latent_step(rotary, rank, 66);
      packed.beams = 3;
      packed.cache = format;
      add(std::string(cache_name(format)) + "latent/" + size, packed);
    }
  }
  for (const uint32_t window : {1u, 3u, 64u, 66u, 67u, 68u, 1000u}) {
    add("window/" + std::to_string(window), {.window = window});
  }
  for (const uint32_t start : {1u, 13u, 66u}) {
    add("start/" + std::to_string(start), {.beams = 2, .start = start, .window = 40});
  }
  add("slopes/0", {.start = 3, .sloped = true});
  for (const int64_t reach : {4, 500}) {
    add("slopes/" + std::to_string(reach), {.start = 3, .sloped = true, .reach = reach});
  }
  add("distance/500", {.start = 3, .reach = 500});
  add("sinks/0", {.start = 3, .sinks = true});
  add("sinks/4", {.beams = 2, .start = 3, .window = 9, .reach = 4, .sinks = true});
  AttentionStep sink_parts = long_step(2500, 16, 2490);
  sink_parts.sinks = true;
  add("sinks/parts", sink_parts);
  add("beams/3", {.beams = 3});
  for (const bool masked : {false, true}) {
    add(masked ? "cross-masked" : "cross-beams",
        {.beams = 2, .source = AttentionStepAttrs::Source::kCross, .masked = masked});
  }
  for (const int64_t kv_heads : {1, 3}) {
    for (const uint32_t position : {0u, 255u, 256u, 257u, 511u, 699u}) {
      add("parts-" + std::to_string(kv_heads) + "/" + std::to_string(position),
          {.lines = 700, .heads = 3, .kv_heads = kv_heads, .position = position});
    }
  }
}

}  // namespace

void add_attention_step_checks(OperatorCases& cases) {
  add_position_checks(cases);
  add_step_tests(cases);
}

}  // namespace vkformer::conformance
