// Attention by blocks of queries and keys: every share of an invocation and of shared memory,
// forced, against the double-precision reference; and its table.
#include "ops/attention_blocks.h"

#include "ops/attention_cases.h"
#include "ops/blocks_run.h"

namespace vkformer::testing {
namespace {

constexpr KernelId kBlocksKernel = KernelId::attention_blocks__f32_f32_f32;

void check_attention_blocks_problem(const AttentionCase& c, const AttentionProblem& p) {
  const Array expected = reference_outputs(c, p).output;
  const Tolerance tolerance = tolerance_for(DType::kF32, c.keys + c.head_width);
  for (const TierDevice& on : tier_devices()) {
    for (const DeviceCaps& caps : gpus_of(*on.device)) {
      INFO(on.tier, ", ", c.text(), ", ", text_of(caps));
      check_close(run_kernel(on.device, caps, prepare_attention(c, p), kBlocksKernel), expected,
                  tolerance);
    }
  }
}

void check_attention_blocks_case(const AttentionCase& c) {
  check_attention_blocks_problem(c, make_problem(c));
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("attention by blocks over lengths around tiles and workgroups") {
    for (const int64_t queries : {1, 8, 9, 31, 33}) {
      for (const int64_t keys : {1, 31, 32, 33, 97}) {
        check_attention_blocks_case(
            {.queries = queries, .keys = keys, .head_width = 16, .value_width = 16});
      }
    }
  }

  TEST_CASE("attention by blocks over head widths, which may differ for values") {
    constexpr int64_t kHeadWidths[][2] = {{1, 1},    {3, 5},   {33, 47},   {64, 64},  {100, 36},
                                          {32, 128}, {128, 7}, {160, 160}, {256, 256}};
    for (const auto& [head_width, value_width] : kHeadWidths) {
      check_attention_blocks_case({.batch = 2,
                                   .heads = 4,
                                   .kv_heads = 2,
                                   .queries = 19,
                                   .keys = 37,
                                   .head_width = head_width,
                                   .value_width = value_width});
    }
  }

  TEST_CASE("attention by blocks with every mask and bias, alone and together") {
    for (const uint32_t terms : {0u, 1u, 2u, 4u, 8u, 15u}) {
      AttentionCase c{.batch = 2,
                      .heads = 2,
                      .kv_heads = 1,
                      .queries = 37,
                      .keys = 70,
                      .head_width = 12,
                      .value_width = 20,
                      .terms = terms};
      check_attention_blocks_case(c);
      c.masks.causal = true;
      c.masks.causal_offset = 33;
      c.masks.window_left = 5;
      check_attention_blocks_case(c);
    }
  }

  TEST_CASE("attention by blocks with windows that leave tiles and rows empty") {
    AttentionCase c{.queries = 133, .keys = 133, .head_width = 8, .value_width = 8};
    c.masks.causal = true;
    c.masks.window_left = 3;
    for (const int64_t offset : {0, -100, 5000, -5000}) {
      c.masks.causal_offset = offset;
      check_attention_blocks_case(c);
    }
    c.masks.causal = false;
    c.masks.causal_offset = 0;
    c.masks.window_right = 40;
    check_attention_blocks_case(c);
  }

  TEST_CASE("attention by blocks: a query without an allowed key gives zeros") {
    const AttentionCase c{.queries = 11,
                          .keys = 40,
                          .head_width = 8,
                          .value_width = 8,
                          .terms = AttentionCase::kKeyMask};
    AttentionProblem p = make_problem(c);
    std::fill(p.key_mask->bytes.begin(), p.key_mask->bytes.end(), std::byte{0});
    set_element(p.v, 3, kNan);
    set_element(p.k, 5, kInfinity);
    check_attention_blocks_problem(c, p);
  }

  TEST_CASE("attention by blocks: NaN and infinity reach the rows that see them only") {
    for (const float special : {kNan, kInfinity, -kInfinity}) {
      for (const int place : {0, 1, 2}) {
        AttentionCase c{.queries = 50, .keys = 50, .head_width = 8, .value_width = 8};
        c.masks.causal = true;
        AttentionProblem p = make_problem(c);
        // Element 2 of token 37 of q, k or v.
        set_element(place == 0 ? p.q : place == 1 ? p.k : p.v, 37 * 8 + 2, special);
        INFO("special ", special, " in ", place);
        check_attention_blocks_problem(c, p);
      }
    }
  }

  TEST_CASE("attention by blocks with temperatures and large scores") {
    for (const float temperature : {1e-3f, 1e3f}) {
      check_attention_blocks_case({.queries = 9, .keys = 66, .temperature = temperature});
    }
    check_attention_blocks_case({.queries = 9, .keys = 66, .spread = 30.0f});
  }

  TEST_CASE("a row of attention by blocks has the same bits whatever an invocation's share is") {
    AttentionCase c{.queries = 70, .keys = 70, .head_width = 24, .value_width = 40};
    c.masks.causal = true;
    const AttentionProblem p = make_problem(c);
    for (const TierDevice& on : tier_devices()) {
      std::optional<std::vector<uint32_t>> first;
      for (const DeviceCaps& caps : gpus_of(*on.device)) {
        INFO(on.tier, ", ", text_of(caps));
        const auto words =
            words_of(run_kernel(on.device, caps, prepare_attention(c, p), kBlocksKernel));
        if (first) CHECK(words == *first);
        if (!first) first = words;
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("attention takes blocks on GPUs, of as many queries as fit and fill the device") {
    DeviceCaps caps;
    caps.device_class = DeviceClass::kIntegrated;
    caps.limits.max_shared_bytes = 32768;
    const auto pick = [&](const DeviceCaps& on, auto change) {
      AttentionCase c{.heads = 8, .queries = 200, .keys = 200, .head_width = 64, .value_width = 64};
      c.kv_heads = 8;
      AttentionAttrs a = make_attrs(c, no_score_terms());
      change(a);
      return attention_blocks(on, a);
    };
    using A = AttentionAttrs;
    const auto same = [](A&) {};
    CHECK(pick(caps, same) == AttentionBlocks{64, 4, 16, 32});
    CHECK(pick(caps, [](A& a) { a.batch = 8, a.queries = 9; })->rows() == 16);
    CHECK(pick(caps, [](A& a) { a.batch = 8, a.queries = 8; })->rows() == 8);
    // Wider heads leave registers for fewer queries, and shared memory for parts of a tile.
    CHECK(pick(caps, [](A& a) { a.head_width = a.value_width = 128; })->tile_m == 2);
    CHECK(pick(caps, [](A& a) { a.head_width = a.value_width = 256; })->tile_m == 1);
    DeviceCaps other = caps;
    other.limits.max_shared_bytes = 16384;
    const auto staged = pick(other, same);
    REQUIRE(staged);
    CHECK(staged->stage_keys < 32);
    CHECK(staged->stage_depth < 16);
    // A discrete GPU wants more workgroups than 8 heads give at 32 queries each.
    other = caps;
    other.device_class = DeviceClass::kDiscrete;
    CHECK(pick(other, same)->tile_m == 2);
    other = caps;
    other.gpu.attention_queries = 2;
    CHECK(pick(other, same) == AttentionBlocks{128, 2, 16, 32});
    other.gpu.attention_queries = 1;
    CHECK(pick(other, same)->rows() == 16);
    CHECK_FALSE(pick(caps, [](A& a) { a.relative.kinds = VKF_RELATIVE_KEYS; }));
    CHECK_FALSE(pick(caps, [](A& a) { a.report = A::Report::kVisitedKeys; }));
    CHECK_FALSE(pick(caps, [](A& a) { a.terms.flags |= VKF_TERM_DOCUMENTS; }));
    other = caps;
    other.device_class = DeviceClass::kSoftware;
    CHECK_FALSE(pick(other, same));
    other = caps;
    other.limits.max_shared_bytes = 1024;
    CHECK_FALSE(pick(other, same));
  }
}

}  // namespace vkformer::testing
