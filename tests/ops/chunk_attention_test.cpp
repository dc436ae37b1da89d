#include "ops/chunk_attention.h"

#include <optional>

#include "ops/attention.h"
#include "ops/blocks_run.h"
#include "ops/lsh_sort.h"
#include "ops/score_terms.h"
#include "reference/chunk_attention.h"
#include "reference/lsh_sort.h"
#include "reference/mix_rounds.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

constexpr KernelId kChunkBlocksKernel = KernelId::chunk_attention_blocks__f32_none_f32;

struct ChunkAttentionCase {
  Array q, k, v;  // (B, H, S, E), (B, H, S, E), (B, H, S, Ev); k is q where keys are queries
  reference::ChunkAttentionOptions options;
  std::optional<Array> order;  // (B, H, R, S)
  std::optional<Tensor> mask;  // (B, S)
};

ChunkAttentionCase make_chunk_attention_case(const Shape& q, int64_t values, int64_t chunk,
                                             uint32_t seed) {
  ChunkAttentionCase c;
  c.q = random_array(q, seed);
  c.k = random_array(q, seed + 1);
  c.v = random_array({q[0], q[1], q[2], values}, seed + 2);
  c.options.chunk = chunk;
  c.options.before = 1;
  return c;
}

// Positions sorted by random buckets.
ChunkAttentionCase make_sorted(const Shape& q, int64_t rounds, int64_t chunk, uint32_t seed) {
  ChunkAttentionCase c = make_chunk_attention_case(q, q[3], chunk, seed);
  c.k = c.q;
  c.options.shared = true;
  Array buckets = reference::filled({q[0], q[1], rounds, q[2]}, 0.0);
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int> bucket(0, 5);
  for (double& value : buckets.data) value = bucket(engine);
  c.order = reference::lsh_sort(buckets).value();
  return c;
}

ChunkAttentionAttrs chunk_attention_attrs(const ChunkAttentionCase& c) {
  const auto u = [](int64_t size) { return static_cast<uint32_t>(size); };
  ChunkAttentionAttrs a;
  a.batch = u(c.q.dim(0));
  a.heads = u(c.q.dim(1));
  a.tokens = u(c.q.dim(2));
  a.head_width = u(c.q.dim(3));
  a.value_width = u(c.v.dim(3));
  a.rounds = c.order ? u(c.order->dim(2)) : 1;
  a.chunk = u(c.options.chunk);
  a.before = u(c.options.before);
  a.after = u(c.options.after);
  const uint32_t size = u(c.q.size());
  a.q = separate_heads(a.heads, a.tokens, a.head_width, 0);
  a.k = separate_heads(a.heads, a.tokens, a.head_width, c.options.shared ? 0 : size);
  a.v = separate_heads(a.heads, a.tokens, a.value_width, 2 * size);
  if (c.options.causal) a.causal = ChunkAttentionAttrs::Causal::kYes;
  if (c.options.shared) a.keys = ChunkAttentionAttrs::Keys::kQueries;
  return a;
}

PreparedOperator prepare_chunk_attention(const ChunkAttentionCase& c) {
  PreparedOperator op;
  Array joined{{c.q.size() + c.k.size() + c.v.size()}, c.q.data};
  joined.data.insert(joined.data.end(), c.k.data.begin(), c.k.data.end());
  joined.data.insert(joined.data.end(), c.v.data.begin(), c.v.data.end());
  ChunkAttentionInputs inputs;
  inputs.x = op.bind("x", reference::to_tensor(joined));
  if (c.order) {
    const std::vector<uint32_t> words(c.order->data.begin(), c.order->data.end());
    inputs.order = op.bind("order", word_tensor(words, c.order->shape));
  }
  if (c.mask) {
    const int64_t batch = c.q.dim(0), tokens = c.q.dim(2);
    std::vector<uint8_t> kept(c.mask->bytes.size());
    std::memcpy(kept.data(), c.mask->bytes.data(), kept.size());
    inputs.mask = op.bind(
        "mask", word_tensor(pack_key_mask(kept, batch, tokens), {batch, (tokens + 31) / 32}));
  }
  const auto y = add_chunk_attention(op.graph, inputs, chunk_attention_attrs(c));
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

Array expected_chunk_attention(const ChunkAttentionCase& c) {
  reference::ChunkAttentionOptions options = c.options;
  Array mask;
  if (c.order) options.order = &*c.order;
  if (c.mask) {
    mask = reference::from_tensor(*c.mask).value();
    options.mask = &mask;
  }
  const Array rows = reference::chunk_attention(c.q, c.k, c.v, options).value();
  if (rows.dim(2) > 1) return rows;
  // One round leaves plain rows (B, S, H * Ev), which is what mixing one round gives.
  Array y = reference::mix_rounds(rows).value();
  y.shape = {c.q.dim(0), c.q.dim(2), c.q.dim(1) * c.v.dim(3)};
  return y;
}

void check_chunk_attention_case(const ChunkAttentionCase& c) {
  const Array expected = expected_chunk_attention(c);
  const int64_t keys = c.options.chunk * (1 + c.options.before + c.options.after);
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    const Tolerance tolerance = tolerance_for(DType::kF32, std::max(keys, 65 + c.q.dim(3)));
    check_close(run_poisoned(device, prepare_chunk_attention(c)).at("y"), expected, tolerance);
    for (const DeviceCaps& caps : gpus_of(*device.device)) {
      INFO("by blocks, ", text_of(caps));
      check_close(run_kernel(device.device, caps, prepare_chunk_attention(c), kChunkBlocksKernel),
                  expected, tolerance);
    }
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("chunk_attention agrees with the reference for every chunk, width and neighbourhood") {
    for (int64_t chunk : {1, 7, 31, 32, 33, 65}) {
      check_chunk_attention_case(
          make_chunk_attention_case({2, 2, 3 * chunk, 8}, 8, chunk, static_cast<uint32_t>(chunk)));
    }
    for (int64_t width : {1, 5, 64, 129}) {
      check_chunk_attention_case(
          make_chunk_attention_case({1, 2, 12, width}, width, 4, static_cast<uint32_t>(width)));
    }
    check_chunk_attention_case(make_chunk_attention_case({1, 2, 12, 6}, 9, 4, 3));
    check_chunk_attention_case(make_sorted({1, 1, 72, 64}, 2, 36, 10));
    for (int64_t before : {0, 1, 2, 3, 5}) {
      ChunkAttentionCase c = make_chunk_attention_case({1, 2, 12, 8}, 8, 4, 4);
      c.options.before = before;
      c.options.after = 5 - before;
      check_chunk_attention_case(c);
    }
  }

  TEST_CASE("chunk_attention masks keys and the future; a query without any key gives zeros") {
    ChunkAttentionCase c = make_chunk_attention_case({2, 2, 24, 8}, 8, 6, 5);
    c.mask = random_mask({2, 24}, 6, 0.4);
    for (size_t t = 0; t < 12; ++t) c.mask->bytes[t] = std::byte{0};
    check_chunk_attention_case(c);
    c.options.causal = true;
    check_chunk_attention_case(c);
  }

  TEST_CASE("chunk_attention sorts into rounds and shares queries and keys") {
    for (int64_t rounds : {1, 2, 3}) {
      ChunkAttentionCase c = make_sorted({2, 2, 24, 8}, rounds, 6, static_cast<uint32_t>(rounds));
      check_chunk_attention_case(c);
      c.options.causal = true;
      check_chunk_attention_case(c);
      c.mask = random_mask({2, 24}, 7, 0.3);
      c.options.after = 1;
      check_chunk_attention_case(c);
    }
    // One chunk: every token sees all others, and itself where it is alone.
    ChunkAttentionCase alone = make_chunk_attention_case({1, 2, 1, 4}, 4, 1, 8);
    alone.k = alone.q;
    alone.options.before = 0;
    alone.options.shared = true;
    check_chunk_attention_case(alone);
  }

  TEST_CASE("chunk_attention keeps NaN to the queries that see it") {
    ChunkAttentionCase c = make_chunk_attention_case({1, 1, 12, 4}, 4, 3, 9);
    c.k[4 * 5] = kNan;
    c.v[4 * 10] = kNan;
    check_chunk_attention_case(c);
    c.v[4 * 2] = kInfinity;
    c.v[4 * 7 + 1] = -kInfinity;
    c.options.causal = true;
    c.mask = random_mask({1, 12}, 3, 0.4);
    check_chunk_attention_case(c);
    c.options.before = 0;
    c.q[0] = kNan;
    check_chunk_attention_case(c);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("chunk_attention refuses what does not divide or fit, with both numbers") {
    const ChunkAttentionCase c = make_chunk_attention_case({1, 2, 12, 4}, 4, 4, 1);
    const TensorDesc x = floats_desc({3 * 96});
    ChunkAttentionAttrs attrs = chunk_attention_attrs(c);
    attrs.chunk = 5;
    check_error(check_chunk_attention(x, nullptr, attrs), "chunk_attention", "12 tokens");
    check_error(check_chunk_attention(x, nullptr, attrs), "chunk_attention", "chunks of 5");
    attrs.chunk = 0;
    check_error(check_chunk_attention(x, nullptr, attrs), "chunk_attention", "chunk is 0");
    attrs = chunk_attention_attrs(c);
    attrs.head_width = 257;
    check_error(check_chunk_attention(x, nullptr, attrs), "chunk_attention", "257");
    attrs = chunk_attention_attrs(c);
    attrs.before = 5000;
    check_error(check_chunk_attention(x, nullptr, attrs), "chunk_attention", "5000");
    attrs = chunk_attention_attrs(c);
    attrs.v.offset += 1;
    check_error(check_chunk_attention(x, nullptr, attrs), "chunk_attention", "v reaches");
    const TensorDesc order{"order", DType::kU32, {1, 2, 2, 12}};
    check_error(check_chunk_attention(x, &order, chunk_attention_attrs(c)), "chunk_attention",
                "(1, 2, 1, 12)");
  }

  TEST_CASE("chunk_attention plans one dispatch, without aliasing") {
    const PreparedOperator op = prepare_chunk_attention(make_sorted({1, 2, 12, 4}, 2, 4, 1));
    const Plan plan =
        plan_with_kernel(op.graph, Tier::kBaseline, "chunk_attention_blocks__f32_none_f32");
    CHECK(plan.dispatches.size() == 1);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
