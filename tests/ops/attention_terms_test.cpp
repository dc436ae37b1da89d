// Score terms that sessions make themselves. These are a bias by distance, ALiBi by the positions
// that a mask leaves, and a bias that repeats over the batch. The reference gets the same as a
// plain bias.
#include <algorithm>
#include <bit>

#include "ops/attention_cases.h"

namespace vkformer::testing {
namespace {

// Runs a case whose terms are `words`; the reference sees `bias` (any broadcast of B, H, T, S) and
// the masks of `c`.
void check_terms_case(const AttentionCase& c, const std::vector<uint32_t>& words,
                      const ScoreTermsParams& params, const Tensor& bias,
                      std::optional<Tensor> key_mask = std::nullopt) {
  AttentionProblem p = make_problem(c);
  PreparedOperator op;
  AttentionInputs inputs;
  inputs.q = op.bind("q", p.q);
  inputs.kv = op.bind("kv", join_kv(p.k, p.v));
  inputs.terms = op.bind("terms", word_tensor(words, {static_cast<int64_t>(words.size())}));
  const Result<TensorId> y = add_attention(op.graph, inputs, make_attrs(c, params));
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  p.bias = bias;
  p.key_mask = std::move(key_mask);
  const Array expected = reference_outputs(c, p).output;
  for (const TierDevice& device : tier_devices()) {
    INFO(device.tier, ", ", c.text());
    check_close(run_poisoned(device, op).at("y"), expected,
                tolerance_for(DType::kF32, c.keys + c.head_width));
  }
}

int64_t clamped(int64_t distance, int64_t reach) {
  return std::clamp(distance, -reach, reach);
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("attention adds a bias by distance, farther keys counting as the farthest") {
    for (int64_t reach : {1, 5, 200}) {
      for (bool causal : {false, true}) {
        AttentionCase c{.batch = 2, .heads = 3, .kv_heads = 3, .queries = 21, .keys = 70};
        c.masks.causal = causal;
        c.masks.causal_offset = causal ? 49 : 0;
        Noise noise;
        const int64_t columns = 2 * reach + 1;
        const std::vector<float> table = *noise.tensor({c.heads, columns}, 2.0f).to_floats();
        std::vector<uint32_t> words = {7, static_cast<uint32_t>(reach)};
        for (float value : table) words.push_back(std::bit_cast<uint32_t>(value));
        std::vector<float> bias;
        for (int64_t h = 0; h < c.heads; ++h) {
          for (int64_t i = 0; i < c.queries; ++i) {
            for (int64_t j = 0; j < c.keys; ++j) {
              const int64_t distance = clamped(j - i - c.masks.causal_offset, reach);
              bias.push_back(table[static_cast<size_t>(h * columns + distance + reach)]);
            }
          }
        }
        ScoreTermsParams params = no_score_terms();
        params.slopes_offset = 1;
        params.flags = VKF_TERM_DISTANCE | (causal ? VKF_TERM_CAUSAL : 0u);
        params.causal_offset = static_cast<int32_t>(c.masks.causal_offset);
        check_terms_case(c, words, params,
                         Tensor::from_floats({1, c.heads, c.queries, c.keys}, bias));
      }
    }
  }

  TEST_CASE("ALiBi counts the positions that a mask leaves") {
    AttentionCase c{.batch = 2, .heads = 4, .kv_heads = 4, .queries = 37, .keys = 37};
    c.masks.causal = true;
    Noise noise;
    const Tensor mask = noise.mask({c.batch, c.keys}, 0.3f);
    const auto* kept = reinterpret_cast<const uint8_t*>(mask.bytes.data());
    std::vector<uint32_t> words = pack_key_mask({kept, mask.bytes.size()}, c.batch, c.keys);
    ScoreTermsParams params = no_score_terms();
    params.key_mask_offset = 0;
    params.slopes_offset = static_cast<uint32_t>(words.size());
    params.flags = VKF_TERM_CAUSAL | VKF_TERM_KEY_POSITIONS;
    const std::vector<float> slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
    for (float slope : slopes) words.push_back(std::bit_cast<uint32_t>(slope));
    std::vector<float> positions;
    for (int64_t at = 0; at < c.batch * c.keys; ++at) {
      if (at % c.keys == 0) positions.push_back(0);
      if (at % c.keys != 0) positions.push_back(positions.back() + kept[at - 1]);
    }
    for (float position : positions) words.push_back(static_cast<uint32_t>(position));
    // slope * position: softmax takes off what a row has in common.
    std::vector<float> bias;
    for (int64_t b = 0; b < c.batch; ++b) {
      for (float slope : slopes) {
        for (int64_t j = 0; j < c.keys; ++j) {
          bias.push_back(slope * positions[static_cast<size_t>(b * c.keys + j)]);
        }
      }
    }
    check_terms_case(c, words, params, Tensor::from_floats({c.batch, c.heads, 1, c.keys}, bias),
                     mask);
  }

  TEST_CASE("a bias repeats over the batch") {
    const int64_t slices = 3;
    AttentionCase c{.batch = 7, .heads = 2, .kv_heads = 2, .queries = 9, .keys = 9};
    Noise noise;
    const std::vector<float> table =
        *noise.tensor({slices, c.heads, c.queries, c.keys}, 2.0f).to_floats();
    std::vector<uint32_t> words = {static_cast<uint32_t>(slices)};
    for (float value : table) words.push_back(std::bit_cast<uint32_t>(value));
    const size_t slice = table.size() / static_cast<size_t>(slices);
    std::vector<float> bias;
    for (int64_t b = 0; b < c.batch; ++b) {
      const auto begin = table.begin() + static_cast<ptrdiff_t>(slice) * (b % slices);
      bias.insert(bias.end(), begin, begin + static_cast<ptrdiff_t>(slice));
    }
    ScoreTermsParams params = no_score_terms();
    params.bias_offset = 0;
    params.flags = VKF_TERM_BIAS_PERIODIC;
    check_terms_case(c, words, params,
                     Tensor::from_floats({c.batch, c.heads, c.queries, c.keys}, bias));
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("terms that do not fit into their words are refused") {
    const std::array<uint32_t, 4> dims = {2, 3, 4, 5};
    const TensorDesc words{"terms", DType::kU32, {12}};
    ScoreTermsParams params = no_score_terms();
    params.slopes_offset = 0;
    CHECK(check_terms(OpId::k_attention, &words, params, dims).ok());
    params.flags = VKF_TERM_KEY_POSITIONS;  // 3 slopes and 10 positions
    const Status positions = check_terms(OpId::k_attention, &words, params, dims);
    REQUIRE_FALSE(positions.ok());
    CHECK(positions.error().message.find("needs 13 words, but terms has 12") != std::string::npos);
    params = no_score_terms();
    params.bias_offset = 0;
    params.flags = VKF_TERM_BIAS_PERIODIC;  // 1 word and one slice of 60
    const Status bias = check_terms(OpId::k_attention, &words, params, dims);
    REQUIRE_FALSE(bias.ok());
    CHECK(bias.error().message.find("needs 61 words, but terms has 12") != std::string::npos);
  }
}

}  // namespace vkformer::testing
