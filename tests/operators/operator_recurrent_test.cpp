// The adaptors of recurrent operators; the goldens hold whole examples.
#include "operators/operator_runner.h"
#include "reference/recurrence.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

Tensor recurrent_floats(Shape shape) {
  return Tensor::zeros(DType::kF32, std::move(shape));
}

// A layer of 2 units over rows of 3 tokens with 4 columns.
OperatorCall layer(const char* op, int64_t gates) {
  return {op,
          "{}",
          {{"X", recurrent_floats({2, 3, 4})},
           {"weight_ih", recurrent_floats({gates * 2, 4})},
           {"weight_hh", recurrent_floats({gates * 2, 2})}}};
}

void check_recurrent_refused(OperatorCall call, const std::string& name, Tensor tensor,
                             const std::string& part) {
  call.inputs[name] = std::move(tensor);
  check_error(run_operator_call(nullptr, call, {}), call.name, part);
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a layer whose rows are all padding keeps its initial state") {
    OperatorCall call = layer("lstm", 4);
    call.inputs["h0"] = Tensor::from_floats({2, 2}, std::vector<float>{1, 2, 3, 4});
    call.inputs["c0"] = Tensor::from_floats({2, 2}, std::vector<float>{5, 6, 7, 8});
    call.inputs["mask"] = Tensor::from_ints({2, 3}, std::vector<int64_t>{0, 0, 0, 0, 1, 0});
    for (const TierDevice& device : tier_devices()) {
      const auto result = run_operator_call(device.device, call, {});
      REQUIRE_MESSAGE(result.ok(), result.error().message);
      const std::vector<float> h = result->outputs.at("h").to_floats().value();
      const std::vector<float> c = result->outputs.at("c").to_floats().value();
      CHECK(h[0] == 1);
      CHECK(h[1] == 2);
      CHECK(c[0] == 5);
      CHECK(c[1] == 6);
      CHECK(std::abs(c[2] - 3.5f) < 1e-5f);  // all weights are 0: half of what it was
      const std::vector<float> y = result->outputs.at("Y").to_floats().value();
      for (size_t i = 0; i < 12; ++i) CHECK((y[i] != 0) == (i == 8 || i == 9));
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("gru, lstm and additive_attention refuse inputs that do not fit") {
    const OperatorCall gru = layer("gru", 3);
    check_recurrent_refused(gru, "X", recurrent_floats({2, 3}), "(2, 3)");
    check_recurrent_refused(gru, "X", recurrent_floats({2, 3, 5}), "(6, 5)");
    check_recurrent_refused(gru, "weight_hh", recurrent_floats({8, 2}), "(6, 2)");
    check_recurrent_refused(gru, "weight_hh", recurrent_floats({6}), "(3 Hd, Hd)");
    check_recurrent_refused(gru, "bias_hh", recurrent_floats({5}), "(6)");
    check_recurrent_refused(gru, "h0", recurrent_floats({2, 3}), "(2, 2)");
    check_recurrent_refused(gru, "mask", recurrent_floats({3, 2}), "(2, 3)");
    check_recurrent_refused(gru, "c0", recurrent_floats({2, 2}), "c0");
    check_recurrent_refused(layer("lstm", 3), "h0", recurrent_floats({2, 2}), "(8, 4)");
    const OperatorCall attention{"additive_attention",
                                 "{}",
                                 {{"Q", recurrent_floats({2, 3, 4})},
                                  {"K", recurrent_floats({2, 5, 4})},
                                  {"V", recurrent_floats({2, 5, 6})},
                                  {"v", recurrent_floats({4})}}};
    check_recurrent_refused(attention, "v", recurrent_floats({5}), "(4)");
    check_recurrent_refused(attention, "K", recurrent_floats({2, 5, 3}), "(B, S, A)");
    check_recurrent_refused(attention, "V", recurrent_floats({2, 4, 6}), "(B, S, C)");
    check_recurrent_refused(attention, "key_mask", recurrent_floats({2, 4}), "(2, 5)");
    OperatorCall window = attention;
    window.attributes_json = R"({"window": 0})";
    check_error(run_operator_call(nullptr, window, {}), "additive_attention", "window");
  }
}

}  // namespace vkformer::testing
