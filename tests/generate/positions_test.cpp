// Positions: those that a caller gives, and inputs beyond what a model knows, which are refused or
// clamped to the last.
#include <algorithm>
#include <cmath>
#include <numeric>

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

// The same token at each of these positions.
TensorMap placed(const std::vector<int64_t>& positions) {
  const auto tokens = static_cast<int64_t>(positions.size());
  TensorMap inputs = repeated(tokens);
  inputs["position_ids"] = Tensor::from_ints({1, tokens}, positions);
  return inputs;
}

std::vector<std::vector<float>> embedded_rows(Session& session, const TensorMap& inputs) {
  const auto outputs = session.run(inputs, {.hidden_states = true});
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  const Tensor& hidden = outputs->at("hidden_states.0");
  std::vector<std::vector<float>> rows;
  for (int64_t i = 0; i < hidden.shape[1]; ++i) rows.push_back(row(hidden, i));
  return rows;
}

std::string refusal(Session& session, const TensorMap& inputs) {
  const auto outputs = session.run(inputs);
  REQUIRE_FALSE(outputs.ok());
  return outputs.error().message;
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
      RunOptions options{.hidden_states = true};
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

  TEST_CASE("position_ids choose the rows of learned positions") {
    if (!have_test_device()) return;
    struct Case {
      const char* golden;
      int64_t first;  // position of the first token
      int64_t last;   // that the model knows
    };
    for (const Case& c : {Case{"bert-base", 0, 47}, Case{"gpt2-base", 0, 63},
                          Case{"electra-base", 0, 47}, Case{"roberta-base", 2, 47}}) {
      CAPTURE(c.golden);
      const auto model = Model::load(*test_device(), golden_case(c.golden).path("model"));
      REQUIRE_MESSAGE(model.ok(), model.error().message);
      auto session = Session::create(*model);
      REQUIRE(session.ok());
      std::vector<int64_t> counted(9);
      std::iota(counted.begin(), counted.end(), c.first);
      auto rows = embedded_rows(*session, repeated(9));
      CHECK(embedded_rows(*session, placed(counted)) == rows);
      std::reverse(counted.begin(), counted.end());
      std::reverse(rows.begin(), rows.end());
      CHECK(embedded_rows(*session, placed(counted)) == rows);
      // Any row of the table may be named, also one that no token would get by counting.
      counted[3] = c.last;
      counted[5] = 0;
      for (const std::vector<float>& row : embedded_rows(*session, placed(counted))) {
        for (float value : row) CHECK(std::isfinite(value));
      }
      counted[3] = c.last + 1;
      CHECK(refusal(*session, placed(counted)).find("0 to " + std::to_string(c.last)) !=
            std::string::npos);
      counted[3] = -1;
      CHECK(refusal(*session, placed(counted)).find("[position_ids] holds -1") !=
            std::string::npos);
      TensorMap short_row = repeated(9);
      short_row["position_ids"] = Tensor::from_ints({1, 2}, std::vector<int64_t>{0, 1});
      CHECK(refusal(*session, short_row).find("[position_ids] has shape") != std::string::npos);
    }
  }
}

}  // namespace vkformer::testing
