// lsh_attention by name: hash, sort, chunks and rounds together, against the plain loops of each.
#include "operators/operator_runner.h"
#include "reference/chunk_attention.h"
#include "reference/lsh_hash.h"
#include "reference/lsh_sort.h"
#include "reference/mix_rounds.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

struct Sizes {
  int64_t batch, heads, tokens, width, value_width, rounds, half_buckets, chunk;
  bool causal;
};

OperatorCall call_of(const Sizes& s, const Array& qk, const Array& v, const Array& rotations) {
  const auto tensor = [](const Array& a) {
    return Tensor::from_floats(a.shape, std::vector<float>(a.data.begin(), a.data.end()));
  };
  return {"lsh_attention",
          R"({"chunk_length": )" + std::to_string(s.chunk) + R"(, "causal": )" +
              (s.causal ? "true}" : "false}"),
          {{"QK", tensor(qk)}, {"V", tensor(v)}, {"rotations", tensor(rotations)}}};
}

// (B, S, H, Ev).
Array expected_of(const Sizes& s, const Array& qk, const Array& v, const Array& rotations) {
  const auto hashed = reference::lsh_hash(qk, rotations, {.factors = {2 * s.half_buckets}});
  REQUIRE(hashed.ok());
  const auto order = reference::lsh_sort(*hashed);
  REQUIRE(order.ok());
  const auto rounds = reference::chunk_attention(
      qk, qk, v,
      {.chunk = s.chunk, .before = 1, .causal = s.causal, .shared = true, .order = &*order});
  REQUIRE(rounds.ok());
  const auto mixed = reference::mix_rounds(*rounds);
  REQUIRE(mixed.ok());
  return *mixed;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("lsh_attention is its parts in order") {
    uint32_t seed = 5;
    for (const Sizes& s :
         {Sizes{1, 2, 64, 8, 8, 1, 2, 16, false}, Sizes{2, 1, 96, 16, 4, 3, 4, 32, false},
          Sizes{1, 3, 60, 7, 5, 2, 3, 12, true}}) {
      CAPTURE(s.tokens);
      const Array qk = random_array({s.batch, s.heads, s.tokens, s.width}, seed++);
      const Array v = random_array({s.batch, s.heads, s.tokens, s.value_width}, seed++);
      const Array rotations = random_array({s.heads, s.width, s.rounds, s.half_buckets}, seed++);
      const Array expected = expected_of(s, qk, v, rotations);
      for (const TierDevice& device : tier_devices()) {
        const auto result =
            run_operator_call(device.device, call_of(s, qk, v, rotations), {.repeats = 2});
        REQUIRE_MESSAGE(result.ok(), result.error().message);
        const Tensor& y = result->outputs.at("output");
        CHECK(y.shape == Shape{s.batch, s.tokens, s.heads * s.value_width});
        const std::vector<float> values = y.to_floats().value();
        double worst = 0;
        for (size_t i = 0; i < values.size(); ++i) {
          worst = std::max(worst, std::abs(values[i] - expected.data[i]));
        }
        CHECK(worst < 1e-5);
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("lsh_attention refuses what does not fit, with both numbers") {
    const Sizes s{1, 2, 64, 8, 8, 1, 2, 16, false};
    const Array qk = reference::filled({1, 2, 64, 8}, 0.5);
    OperatorCall call = call_of(s, qk, qk, reference::filled({2, 8, 1, 2}, 0.5));
    call.attributes_json = R"({"chunk_length": 24})";
    check_error(run_operator_call(nullptr, call, {}), call.name,
                "24, which does not divide the 64");
    call.attributes_json = R"({"chunk_length": 0})";
    check_error(run_operator_call(nullptr, call, {}), call.name, "chunk_length");
    call.attributes_json = "{}";
    call.inputs["V"] = Tensor::zeros(DType::kF32, {1, 2, 63, 8});
    check_error(run_operator_call(nullptr, call, {}), call.name, "(1, 2, 63, 8)");
    call.inputs["rotations"] = Tensor::zeros(DType::kF32, {2, 7, 1, 2});
    check_error(run_operator_call(nullptr, call, {}), call.name, "(2, 7, 1, 2)");
  }
}

}  // namespace vkformer::testing
