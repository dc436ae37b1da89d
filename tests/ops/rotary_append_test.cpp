#include "ops/rotary_append.h"

#include <cmath>

#include "ops/step_run.h"
#include "reference/rotary.h"
#include "support/packed_cache.h"

namespace vkformer::testing {
namespace {

struct RotaryAppendCase {
  RotaryAppendAttrs attrs;
  int64_t table_rows = 64;
  int64_t lines = 64;
};

constexpr int64_t kSlots = 5;       // of which fewer are live
constexpr int64_t kAppendRows = 6;  // of the cache

int64_t row_width(const RotaryAppendCase& c) {
  return (int64_t{c.attrs.heads} + 2 * int64_t{c.attrs.kv_heads}) * c.attrs.head_width;
}

Array rotary_append_table(const RotaryAppendCase& c) {
  return random_array({c.table_rows, c.attrs.rotary_width}, 5);
}

Array cache_of(const RotaryAppendCase& c) {
  return random_array({kAppendRows, c.lines, 2 * int64_t{c.attrs.kv_heads} * c.attrs.head_width},
                      6);
}

Graph make_graph(const RotaryAppendCase& c, CacheFormat format = CacheFormat::kF32) {
  Graph graph;
  graph.set_step(kSlots);
  RotaryAppendInputs in;
  in.x = graph.add_external("x", DType::kF32, {kSlots, row_width(c)});
  in.table = graph.add_external("table", DType::kF32, {c.table_rows, c.attrs.rotary_width});
  in.state = graph.add_external("state", DType::kU32, {kStateWords});
  Shape shape = cache_of(c).shape;
  shape[2] = cache_line_words(format, static_cast<uint32_t>(shape[2]));
  in.cache =
      graph.add_external("cache", format == CacheFormat::kF32 ? DType::kF32 : DType::kU32, shape);
  const auto y = add_rotary_append(graph, in, c.attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  graph.tensor(*y).kind = TensorKind::kExternal;
  graph.tensor(*y).name = "y";
  return graph;
}

// Rows of x turned at these positions by the operator that this one is made of.
Array turned(const RotaryAppendCase& c, const Array& x, const std::vector<double>& positions) {
  reference::RotaryOptions options;
  options.heads = c.attrs.heads + c.attrs.kv_heads;
  options.head_width = c.attrs.head_width;
  if (c.attrs.pairs == RotaryPairs::kInterleaved) {
    options.pairing = reference::RotaryPairing::kInterleaved;
  }
  const Array at{{static_cast<int64_t>(positions.size())}, positions};
  return reference::rotary(x, rotary_append_table(c), at, options).value();
}

struct Live {
  std::vector<uint32_t> rows;  // of the cache, by slot
  std::vector<uint32_t> starts;
  uint32_t position = 0;
};

// What x's live slots become: (live, (H + again) E), and the cache.
struct Expected {
  Array queries, cache;
};

Expected expected_rotary_append(const RotaryAppendCase& c, const Array& x, const Live& live) {
  const auto slots = static_cast<int64_t>(live.rows.size());
  const int64_t width = row_width(c), line = 2 * int64_t{c.attrs.kv_heads} * c.attrs.head_width;
  const int64_t q = int64_t{c.attrs.heads} * c.attrs.head_width;
  std::vector<double> own(live.rows.size()), limited;
  for (size_t slot = 0; slot < own.size(); ++slot) {
    own[slot] = static_cast<double>(live.position) - live.starts[slot];
  }
  for (double p : own) limited.push_back(std::min<double>(p, c.attrs.again_limit));
  const Array given{{slots, width}, {x.data.begin(), x.data.begin() + slots * width}};
  const Array once = turned(c, given, own), again = turned(c, given, limited);
  Expected e{{{slots, q + int64_t{c.attrs.again_heads} * c.attrs.head_width}, {}}, cache_of(c)};
  const int64_t positions = c.attrs.positions > 0 ? c.attrs.positions : c.lines;
  for (int64_t slot = 0; slot < slots; ++slot) {
    const auto first = once.data.begin() + slot * width;
    e.queries.data.insert(e.queries.data.end(), first, first + q);
    if (c.attrs.again_heads > 0) {
      const auto second = again.data.begin() + slot * width;
      e.queries.data.insert(e.queries.data.end(), second, second + q);
    }
    const auto t = static_cast<int64_t>(own[static_cast<size_t>(slot)]);
    if (t < 0 || t >= positions) continue;
    const int64_t sinks = c.attrs.sinks;
    const int64_t at = t < c.lines ? t : sinks + (t - sinks) % (c.lines - sinks);
    const int64_t row = live.rows[static_cast<size_t>(slot)];
    std::copy_n(first + q, line, e.cache.data.begin() + (row * c.lines + at) * line);
  }
  return e;
}

void check_rotary_append_case(const RotaryAppendCase& c, const Live& live, const Array& x) {
  const Expected expected = expected_rotary_append(c, x, live);
  std::vector<uint32_t> entries;
  for (size_t slot = 0; slot < live.rows.size(); ++slot) {
    entries.push_back(live.rows[slot] | live.starts[slot] << VKF_SLOT_ROW_BITS);
  }
  const TensorMap given = {{"x", reference::to_tensor(x)},
                           {"table", reference::to_tensor(rotary_append_table(c))},
                           {"cache", reference::to_tensor(cache_of(c))},
                           {"state", make_state(entries, live.position)}};
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    const TensorMap out =
        run_step(device, make_graph(c), given, static_cast<uint32_t>(live.rows.size()));
    const std::vector<float> y = out.at("y").to_floats().value();
    const auto written = static_cast<size_t>(expected.queries.size());
    check_close(Tensor::from_floats(expected.queries.shape, std::span(y).first(written)),
                expected.queries, tolerance_for(DType::kF32, 2));
    for (size_t i = written; i < y.size(); ++i) CHECK(std::isnan(y[i]));  // not written
    check_close(out.at("cache"), expected.cache, tolerance_for(DType::kF32, 2));
  }
}

void check_rotary_append_case(const RotaryAppendCase& c, const Live& live) {
  check_rotary_append_case(c, live, random_array({kSlots, row_width(c)}, c.attrs.head_width));
}

// The same with a packed cache: queries as ever, every line within half a step of what it holds.
void check_packed(const RotaryAppendCase& c, const Live& live, CacheFormat format) {
  const Array x = random_array({kSlots, row_width(c)}, c.attrs.head_width);
  const Expected expected = expected_rotary_append(c, x, live);
  std::vector<uint32_t> entries;
  for (size_t slot = 0; slot < live.rows.size(); ++slot) {
    entries.push_back(live.rows[slot] | live.starts[slot] << VKF_SLOT_ROW_BITS);
  }
  const int64_t line = expected.cache.dim(-1);
  const TensorMap given = {{"x", reference::to_tensor(x)},
                           {"table", reference::to_tensor(rotary_append_table(c))},
                           {"cache", packed_cache(reference::to_tensor(cache_of(c)), format)},
                           {"state", make_state(entries, live.position)}};
  for (const TierDevice& device : tier_devices()) {
    const TensorMap out =
        run_step(device, make_graph(c, format), given, static_cast<uint32_t>(live.rows.size()));
    const std::vector<float> y = out.at("y").to_floats().value();
    check_close(Tensor::from_floats(expected.queries.shape,
                                    std::span(y).first(expected.queries.data.size())),
                expected.queries, tolerance_for(DType::kF32, 2));
    const std::vector<float> got = *unpacked_cache(out.at("cache"), format, line).to_floats();
    for (int64_t i = 0; i < expected.cache.size(); ++i) {
      const int64_t begin = i / line * line, run = i % line / 32 * 32;
      double largest = 0;
      for (int64_t j = run; j < std::min(run + 32, line); ++j) {
        largest = std::max(largest, std::fabs(expected.cache[begin + j]));
      }
      CHECK(std::fabs(got[static_cast<size_t>(i)] - expected.cache[i]) <=
            packing_error(format, expected.cache[i], largest * 1.0001));
    }
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("rotary_append fills packed caches, rolling ones too") {
    for (CacheFormat format : kPackedCaches) {
      for (uint32_t width : {2u, 6u, 17u, 32u, 64u}) {
        CAPTURE(width);
        RotaryAppendCase c{
            {.heads = 4, .kv_heads = 2, .head_width = width, .rotary_width = width / 2 * 2}};
        check_packed(c, {{3, 0, 5}, {0, 4, 13}, 13}, format);
      }
      RotaryAppendCase rolls{
          {.heads = 3, .kv_heads = 1, .head_width = 6, .rotary_width = 4}, 64, 9};
      rolls.attrs.positions = 32;
      rolls.attrs.sinks = 2;
      rolls.attrs.again_heads = 3;
      rolls.attrs.again_limit = 5;
      for (uint32_t position : {1u, 8u, 9u, 31u}) {
        check_packed(rolls, {{1, 4}, {0, 1}, position}, format);
      }
    }
  }

  TEST_CASE("rotary_append rolls over the lines, and lets queries follow for the sinks") {
    for (uint32_t sinks : {0u, 2u, 8u}) {
      for (uint32_t position : {1u, 8u, 9u, 15u, 31u, 32u}) {
        CAPTURE(sinks);
        CAPTURE(position);
        RotaryAppendCase c{{.heads = 3, .kv_heads = 1, .head_width = 6, .rotary_width = 4}, 64, 9};
        c.attrs.positions = 32;  // a token beyond them has no line
        c.attrs.sinks = sinks;
        if (sinks > 0) c.attrs.again_heads = 3;
        c.attrs.again_limit = 5;
        check_rotary_append_case(c, {{1, 4}, {0, 1}, position});
      }
    }
  }

  TEST_CASE("rotary_append gives NaN beyond the table, and for a slot that has not begun") {
    const RotaryAppendCase c{{.heads = 2, .kv_heads = 2, .head_width = 8, .rotary_width = 6}, 4};
    check_rotary_append_case(c, {{2, 1, 0}, {0, 1, 5}, 4});
  }

  TEST_CASE("rotary_append passes NaN and infinity on within their pair only") {
    const RotaryAppendCase c{{.heads = 2, .kv_heads = 1, .head_width = 16, .rotary_width = 8}};
    Array x = random_array({kSlots, row_width(c)}, 1);
    x[1] = kNan;
    x[32 + 7] = kInfinity;
    x[64 + 48 + 3] = kNan;
    x[64 + 15] = kNan;  // a column that is copied
    check_rotary_append_case(c, {{0, 1}, {0, 0}, 3}, x);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("rotary_append says what is wrong with its inputs") {
    const RotaryAppendAttrs attrs{.heads = 2, .kv_heads = 1, .head_width = 8, .rotary_width = 8};
    const TensorDesc x = floats_desc({4, 32}), table = floats_desc({9, 8});
    const TensorDesc cache = floats_desc({4, 9, 16});
    const TensorDesc state{"state", DType::kU32, {kStateWords}};
    const auto with = [&](RotaryAppendAttrs a) {
      return check_rotary_append(x, table, state, cache, a);
    };
    CHECK(with(attrs).ok());
    check_error(check_rotary_append(floats_desc({4, 31}), table, state, cache, attrs),
                "rotary_append", "(4, 31)");
    check_error(check_rotary_append(floats_desc({2, 4, 32}), table, state, cache, attrs),
                "rotary_append", "(2, 4, 32)");
    check_error(check_rotary_append(floats_desc({4081, 32}), table, state, cache, attrs),
                "rotary_append", "4080");
    check_error(check_rotary_append(x, floats_desc({9, 6}), state, cache, attrs), "rotary",
                "(9, 6)");
    check_error(check_rotary_append(x, table, x, cache, attrs), "kv_append", "state");
    check_error(check_rotary_append(x, table, state, floats_desc({4, 9, 15}), attrs), "kv_append",
                "16");
    RotaryAppendAttrs wrong = attrs;
    wrong.again_heads = 1;
    check_error(with(wrong), "rotary_append", "all 2 or none");
    wrong = attrs;
    wrong.sinks = 9;
    check_error(with(wrong), "kv_append", "9 sinks");
    wrong = attrs;
    wrong.kv_heads = 0;
    check_error(with(wrong), "rotary_append", "at least one");
    wrong = attrs;
    wrong.rotary_width = 0;
    check_error(with(wrong), "rotary_append", "above 0");
    Graph graph;
    RotaryAppendInputs in;
    in.x = graph.add_external("x", DType::kF32, {4, 32});
    in.table = graph.add_external("table", DType::kF32, {9, 8});
    in.state = graph.add_external("state", DType::kU32, {kStateWords});
    in.cache = graph.add_external("cache", DType::kF32, {4, 9, 16});
    check_error(add_rotary_append(graph, in, attrs), "rotary_append", "not a decoding step");
  }

  TEST_CASE("rotary_append plans one dispatch that takes the live slots on x") {
    const RotaryAppendCase c{{.heads = 2, .kv_heads = 1, .head_width = 8, .rotary_width = 8}};
    const Plan plan =
        plan_with_kernel(make_graph(c), Tier::kBaseline, "rotary_append__f32_f32_f32");
    REQUIRE(plan.dispatches.size() == 1);
    CHECK(plan.dispatches[0].live_axis == 0);
    CHECK(plan.dispatches[0].groups[0] == 5);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
