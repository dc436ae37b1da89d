// Positions that a caller gives: counted as each family counts, checked against its table.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

constexpr int64_t kTokens = 9;

// The same token in every place, so that rows of hidden_states.0 differ by their position only.
TensorMap inputs_at(const std::vector<int64_t>& positions) {
  TensorMap inputs;
  inputs["input_ids"] = Tensor::from_ints({1, kTokens}, std::vector<int64_t>(kTokens, 7));
  if (!positions.empty()) {
    inputs["position_ids"] = Tensor::from_ints({1, kTokens}, positions);
  }
  return inputs;
}

std::vector<std::vector<float>> embedded_rows(Session& session, const TensorMap& inputs) {
  const auto outputs = session.run(inputs, {.hidden_states = RunOptions::HiddenStates::kOn});
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  const std::vector<float> all = outputs->at("hidden_states.0").to_floats().value();
  const size_t width = all.size() / kTokens;
  std::vector<std::vector<float>> rows;
  for (size_t i = 0; i < kTokens; ++i) {
    rows.emplace_back(all.begin() + i * width, all.begin() + (i + 1) * width);
  }
  return rows;
}

std::string refusal(Session& session, const TensorMap& inputs) {
  const auto outputs = session.run(inputs);
  REQUIRE_FALSE(outputs.ok());
  return outputs.error().message;
}

}  // namespace

TEST_SUITE("model") {
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
      std::vector<int64_t> counted(kTokens);
      std::iota(counted.begin(), counted.end(), c.first);
      auto rows = embedded_rows(*session, inputs_at({}));
      CHECK(embedded_rows(*session, inputs_at(counted)) == rows);
      std::reverse(counted.begin(), counted.end());
      std::reverse(rows.begin(), rows.end());
      CHECK(embedded_rows(*session, inputs_at(counted)) == rows);
      // Any row of the table may be named, also one that no token would get by counting.
      counted[3] = c.last;
      counted[5] = 0;
      for (const std::vector<float>& row : embedded_rows(*session, inputs_at(counted))) {
        for (float value : row) CHECK(std::isfinite(value));
      }
      counted[3] = c.last + 1;
      CHECK(refusal(*session, inputs_at(counted)).find("0 to " + std::to_string(c.last)) !=
            std::string::npos);
      counted[3] = -1;
      CHECK(refusal(*session, inputs_at(counted)).find("[position_ids] holds -1") !=
            std::string::npos);
      TensorMap short_row = inputs_at({});
      short_row["position_ids"] = Tensor::from_ints({1, 2}, std::vector<int64_t>{0, 1});
      CHECK(refusal(*session, short_row).find("[position_ids] has shape") != std::string::npos);
    }
  }
}

}  // namespace vkformer::testing
