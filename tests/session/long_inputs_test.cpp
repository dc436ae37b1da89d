// Inputs beyond the positions that a model knows: refused, or clamped to the last.
#include <cmath>

#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

// `tokens` times the same token, so that rows of hidden_states.0 differ by their position only.
TensorMap repeated(int64_t tokens) {
  const std::vector<int64_t> ids(static_cast<size_t>(tokens), 7);
  TensorMap inputs;
  inputs["input_ids"] = Tensor::from_ints({1, tokens}, ids);
  return inputs;
}

std::vector<float> row(const Tensor& hidden, int64_t index) {
  const std::vector<float> all = hidden.to_floats().value();
  const auto width = hidden.shape.back();
  return {all.begin() + index * width, all.begin() + (index + 1) * width};
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("tokens beyond the last learned position take the last one, where that is asked for") {
    if (!have_test_device()) return;
    for (const auto& [bound_name, most] : {std::pair{"bert-base", 48},
                                           {"gpt2-base", 64},
                                           {"roberta-base", 46},
                                           {"opt-base", 32},
                                           {"electra-base", 48}}) {
      const auto& name = bound_name;
      CAPTURE(name);
      const GoldenCase golden = golden_case(name);
      const auto model = Model::load(*test_device(), golden.path("model"));
      REQUIRE_MESSAGE(model.ok(), model.error().message);
      auto session = Session::create(*model);
      REQUIRE(session.ok());
      const auto refused = session->run(repeated(most + 9));
      REQUIRE_FALSE(refused.ok());
      const std::string limit = "at most " + std::to_string(most);
      CHECK_MESSAGE(refused.error().message.find(limit) != std::string::npos,
                    refused.error().message);
      RunOptions options{.hidden_states = RunOptions::HiddenStates::kOn};
      const auto exact = session->run(repeated(most), options);
      REQUIRE_MESSAGE(exact.ok(), exact.error().message);
      options.long_inputs = RunOptions::LongInputs::kClamp;
      const auto clamped = session->run(repeated(most + 9), options);
      REQUIRE_MESSAGE(clamped.ok(), clamped.error().message);
      const Tensor& known = exact->at("hidden_states.0");
      const Tensor& hidden = clamped->at("hidden_states.0");
      for (int64_t i = 0; i < most; ++i) CHECK(row(hidden, i) == row(known, i));
      for (int64_t i = most; i < most + 9; ++i) CHECK(row(hidden, i) == row(known, most - 1));
      CHECK(row(known, most - 1) != row(known, most - 2));
    }
  }

  TEST_CASE("the decoder's positions of an encoder-decoder are not clamped") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("bart-base");
    const auto model = Model::load(*test_device(), golden.path("model"));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    auto session = Session::create(*model);
    REQUIRE(session.ok());
    const RunOptions options{.long_inputs = RunOptions::LongInputs::kClamp};
    CHECK_FALSE(session->run(repeated(4096), options).ok());
  }
}

}  // namespace vkformer::testing
