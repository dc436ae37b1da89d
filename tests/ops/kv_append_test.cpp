#include "ops/kv_append.h"

#include "ops/step_run.h"
#include "support/packed_cache.h"

namespace vkformer::testing {
namespace {

constexpr KvAppendAttrs kAttrs{.k_offset = 5, .v_offset = 20, .k_width = 8, .v_width = 6};

Graph make_graph(const KvAppendAttrs& attrs = kAttrs) {
  Graph graph;
  graph.set_step(4);
  const TensorId x = graph.add_external("x", DType::kF32, {4, 31});
  const TensorId state = graph.add_external("state", DType::kU32, {kStateWords});
  const TensorId cache = graph.add_external("cache", DType::kF32, {4, 9, 14});
  const Status added = add_kv_append(graph, x, state, cache, attrs);
  REQUIRE_MESSAGE(added.ok(), added.error().message);
  return graph;
}

// The largest magnitude of the run of 32 that element i of a line lies in.
double largest_of_run(const std::vector<double>& line, size_t i) {
  double most = 0;
  for (size_t j = i / 32 * 32; j < std::min(i / 32 * 32 + 32, line.size()); ++j) {
    most = std::max(most, std::fabs(line[j]));
  }
  return most;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("kv_append packs lines of any width, and nothing else") {
    for (CacheFormat format : kPackedCaches) {
      for (uint32_t half : {1u, 15u, 16u, 17u, 32u, 80u}) {
        CAPTURE(half);
        const auto width = static_cast<int64_t>(2 * half);
        const Array x = random_array({4, width}, half, 3);
        const int64_t words = cache_line_words(format, 2 * half);
        Graph graph;
        graph.set_step(4);
        const TensorId from = graph.add_external("x", DType::kF32, x.shape);
        const TensorId state = graph.add_external("state", DType::kU32, {kStateWords});
        const TensorId cache = graph.add_external("cache", DType::kU32, {4, 9, words});
        const KvAppendAttrs attrs{
            .k_offset = 0, .v_offset = half, .k_width = half, .v_width = half};
        REQUIRE(add_kv_append(graph, from, state, cache, attrs).ok());
        const TensorMap given = {{"x", reference::to_tensor(x)},
                                 {"state", make_state({3, 0, 2}, 7)}};
        for (const TierDevice& device : tier_devices()) {
          const Tensor out = run_step(device, graph, given, 3).at("cache");
          const std::vector<float> got = *unpacked_cache(out, format, width).to_floats();
          const int64_t rows[] = {3, 0, 2};
          for (int64_t slot = 0; slot < 3; ++slot) {
            const std::vector<double> line(x.data.begin() + slot * width,
                                           x.data.begin() + (slot + 1) * width);
            for (size_t i = 0; i < line.size(); ++i) {
              const float value = got[static_cast<size_t>((rows[slot] * 9 + 7) * width) + i];
              CHECK(std::fabs(value - line[i]) <=
                    packing_error(format, line[i], largest_of_run(line, i)));
            }
          }
          // All other lines are as they were.
          uint32_t untouched = 0;
          for (size_t i = 0; i < out.bytes.size() / 4; ++i) {
            uint32_t word = 0;
            std::memcpy(&word, out.bytes.data() + 4 * i, 4);
            if (word == 0x7fc0deadu) ++untouched;
          }
          CHECK(untouched == 33u * words);
        }
      }
    }
  }

  TEST_CASE("kv_append keeps large values finite, and what is not a number visible") {
    std::vector<float> values(64, 1.0f);
    values[0] = 70000.0f;
    values[1] = -1e30f;
    values[33] = std::numeric_limits<float>::quiet_NaN();
    values[34] = std::numeric_limits<float>::infinity();
    for (CacheFormat format : kPackedCaches) {
      Graph graph;
      graph.set_step(1);
      const TensorId from = graph.add_external("x", DType::kF32, {1, 64});
      const TensorId state = graph.add_external("state", DType::kU32, {kStateWords});
      const TensorId cache =
          graph.add_external("cache", DType::kU32, {1, 1, cache_line_words(format, 64)});
      REQUIRE(add_kv_append(graph, from, state, cache,
                            {.k_offset = 0, .v_offset = 32, .k_width = 32, .v_width = 32})
                  .ok());
      const TensorMap given = {{"x", Tensor::from_floats({1, 64}, values)},
                               {"state", make_state({0}, 0)}};
      for (const TierDevice& device : tier_devices()) {
        const Tensor out = run_step(device, graph, given, 1).at("cache");
        const std::vector<float> got = *unpacked_cache(out, format, 64).to_floats();
        CHECK(std::isnan(got[33]));
        CHECK_FALSE(std::isfinite(got[34]));
        for (size_t i = 0; i < 32; ++i) CHECK(std::isfinite(got[i]));
        if (format == CacheFormat::kF16) {
          CHECK(got[0] == 65504.0f);
          CHECK(got[1] == -65504.0f);
          CHECK(got[32] == 1.0f);
        } else {
          CHECK(got[1] == doctest::Approx(-1e30f));
          CHECK(got[2] == 0.0f);
          CHECK(std::isnan(got[32]));
        }
      }
    }
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("kv_append writes the line of every live slot and nothing else") {
    const Array x = random_array({4, 31}, 1);
    const Array before = random_array({4, 9, 14}, 2);
    const std::vector<uint32_t> rows = {3, 0, 2};
    for (uint32_t position : {0u, 8u, 9u}) {
      Array expected = before;
      for (int64_t slot = 0; slot < 3 && position < 9; ++slot) {
        for (int64_t i = 0; i < 14; ++i) {
          const int64_t column = i < 8 ? 5 + i : 20 + i - 8;
          expected[(rows[static_cast<size_t>(slot)] * 9 + position) * 14 + i] =
              x[slot * 31 + column];
        }
      }
      for (const TierDevice& device : tier_devices()) {
        const TensorMap given = {{"x", reference::to_tensor(x)},
                                 {"cache", reference::to_tensor(before)},
                                 {"state", make_state(rows, position)}};
        check_close(run_step(device, make_graph(), given, 3).at("cache"), expected, {});
      }
    }
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("kv_append rolls over the lines behind the sinks") {
    const Array x = random_array({4, 31}, 5);
    const Array before = random_array({4, 9, 14}, 6);
    struct Turn {
      uint32_t sinks, position, line;
    };
    for (const Turn& t : {Turn{0, 8, 8}, Turn{0, 9, 0}, Turn{0, 31, 4}, Turn{2, 1, 1},
                          Turn{2, 8, 8}, Turn{2, 9, 2}, Turn{2, 15, 8}, Turn{8, 29, 8}}) {
      CAPTURE(t.position);
      KvAppendAttrs attrs = kAttrs;
      attrs.positions = 32;
      attrs.sinks = t.sinks;
      Array expected = before;
      for (int64_t i = 0; i < 14; ++i) {
        expected[(1 * 9 + t.line) * 14 + i] = x[i < 8 ? 5 + i : 20 + i - 8];
      }
      for (const TierDevice& device : tier_devices()) {
        const TensorMap given = {{"x", reference::to_tensor(x)},
                                 {"cache", reference::to_tensor(before)},
                                 {"state", make_state({1}, t.position)}};
        check_close(run_step(device, make_graph(attrs), given, 1).at("cache"), expected, {});
      }
    }
  }

  TEST_CASE("kv_append writes a prompt into the first row of every item, without its padding") {
    const Array x = random_array({3, 5, 31}, 3);
    const Array before = random_array({6, 9, 14}, 4);
    // Prompts of 6, 5 and 2 tokens, whose last ones are their first steps'.
    const std::vector<uint32_t> starts = {0, 0, 1, 1, 4, 4};
    for (uint32_t sinks : {0u, 1u, 2u}) {
      for (int64_t lines : {9, 4, 3}) {
        CAPTURE(sinks);
        CAPTURE(lines);
        const Array cache{{6, lines, 14}, {before.data.begin(), before.data.begin() + 84 * lines}};
        Array expected = cache;
        for (int64_t item = 0; item < 3; ++item) {
          const int64_t tokens = 5 - static_cast<int64_t>(starts[static_cast<size_t>(2 * item)]);
          for (int64_t at = 0; at < tokens * 14; ++at) {  // later tokens overwrite earlier ones
            const int64_t t = at / 14;
            const int64_t line = t < sinks ? t : sinks + (t - sinks) % (lines - sinks);
            const int64_t column = at % 14 < 8 ? 5 + at % 14 : 20 + at % 14 - 8;
            expected[(item * 2 * lines + line) * 14 + at % 14] = x[(item * 5 + t) * 31 + column];
          }
        }
        Graph graph;
        const TensorId tokens = graph.add_external("x", DType::kF32, x.shape);
        const TensorId state = graph.add_external("state", DType::kU32, {kStateWords});
        const TensorId kept = graph.add_external("cache", DType::kF32, cache.shape);
        KvAppendAttrs attrs = kAttrs;
        attrs.beams = 2;
        attrs.positions = 9;
        attrs.sinks = sinks;
        REQUIRE(add_kv_append(graph, tokens, state, kept, attrs).ok());
        std::vector<uint32_t> entries;
        for (uint32_t row = 0; row < 6; ++row) {
          entries.push_back(row | starts[row] << VKF_SLOT_ROW_BITS);
        }
        for (const TierDevice& device : tier_devices()) {
          const TensorMap given = {{"x", reference::to_tensor(x)},
                                   {"cache", reference::to_tensor(cache)},
                                   {"state", make_state(entries, 5)}};
          check_close(run_step(device, graph, given, 0).at("cache"), expected, {});
        }
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("kv_append says what is wrong with its inputs") {
    const TensorDesc x = floats_desc({4, 31});
    const TensorDesc cache = floats_desc({4, 9, 14});
    const TensorDesc state{"state", DType::kU32, {kStateWords}};
    CHECK(check_kv_append(x, state, cache, kAttrs).ok());
    check_error(check_kv_append(floats_desc({4, 25}), state, cache, kAttrs), "kv_append",
                "at least 26");
    check_error(check_kv_append(x, state, floats_desc({4, 9, 15}), kAttrs), "kv_append", "14");
    check_error(check_kv_append(x, x, cache, kAttrs), "kv_append", "state");
    KvAppendAttrs sinks = kAttrs;
    sinks.sinks = 9;
    check_error(check_kv_append(x, state, cache, sinks), "kv_append", "9 sinks");
    Graph graph;
    const TensorId id = graph.add_external("x", DType::kF32, {4, 31});
    const TensorId kept = graph.add_external("cache", DType::kF32, {4, 9, 14});
    const TensorId words = graph.add_external("state", DType::kU32, {kStateWords});
    check_error(add_kv_append(graph, id, words, kept, kAttrs), "kv_append", "not a decoding step");
    const TensorId tokens = graph.add_external("tokens", DType::kF32, {4, 3, 31});
    CHECK(add_kv_append(graph, tokens, words, kept, kAttrs).ok());
    graph.set_step(4);
    check_error(add_kv_append(graph, tokens, words, kept, kAttrs), "kv_append", "a prompt");
    const TensorDesc prompt = floats_desc({3, 10, 31});
    check_error(check_kv_append(prompt, state, cache, kAttrs), "kv_append", "does not fit");
    CHECK(check_kv_append(floats_desc({4, 9, 31}), state, cache, kAttrs).ok());
  }

  TEST_CASE("kv_append's plan takes the live slots on x") {
    const Plan plan =
        plan_with_kernel(make_graph(), Tier::kBaseline, "kv_append_slot__f32_none_f32");
    REQUIRE(plan.dispatches.size() == 1);
    CHECK(plan.dispatches[0].groups == std::array<uint32_t, 3>{4, 1, 1});
    CHECK(plan.dispatches[0].live_axis == 0);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
