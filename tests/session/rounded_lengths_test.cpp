// Texts of near lengths share a pass (SessionOptions::round_lengths), and get the results of their
// own.
#include "session/rounded_lengths.h"

#include <set>

#include "support/golden.h"
#include "support/preparing.h"
#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

Session session_of(const GoldenCase& golden, bool rounds) {
  const auto model = Model::load(*test_device(), golden.path("model"));
  REQUIRE_MESSAGE(model.ok(), golden.name << ": " << model.error().message);
  auto session = Session::create(*model, {.round_lengths = rounds});
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  return std::move(session).value();
}

TensorMap text(int64_t batch, int64_t tokens) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < batch * tokens; ++i) ids.push_back(5 + i * 7 % 60);
  return {{"input_ids", Tensor::from_ints({batch, tokens}, ids)}};
}

// Whether the first slice of a text has to wait for its preparation.
bool waits(Session& session, const TensorMap& inputs) {
  REQUIRE(session.start(inputs).ok());
  const auto first = session.advance(1000);
  REQUIRE_MESSAGE(first.ok(), first.error().message);
  const bool prepares = first->progress == Advance::Progress::kPreparing;
  REQUIRE(session.cancel().ok());
  return prepares;
}

void check_near(const std::string& name, const Tensor& a, const Tensor& b) {
  INFO(name);
  REQUIRE(a.shape == b.shape);
  REQUIRE(a.dtype == b.dtype);
  if (a.dtype != DType::kF32) {
    CHECK(a.bytes == b.bytes);
    return;
  }
  const auto x = a.to_floats(), y = b.to_floats();
  REQUIRE((x.ok() && y.ok()));
  for (size_t i = 0; i < x->size(); ++i) {
    REQUIRE(std::abs((*x)[i] - (*y)[i]) <= 2e-5 * (1 + std::abs((*y)[i])));
  }
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("lengths are rounded to few, by a quarter or to 16 tokens") {
    std::set<int64_t> lengths;
    for (int64_t tokens = 1; tokens <= 512; ++tokens) {
      const int64_t rounded = rounded_length(tokens, 512);
      CHECK(rounded >= tokens);
      CHECK(rounded <= std::max<int64_t>(tokens + 15, tokens * 5 / 4));
      CHECK(rounded_length(rounded, 512) == rounded);
      lengths.insert(rounded);
    }
    CHECK(lengths.size() <= 16);
    CHECK(rounded_length(500, 510) == 510);
    CHECK(rounded_length(511, 510) == 511);
    CHECK(rounded_length(1, 8) == 8);
  }

  TEST_CASE("outputs are cut along the axes that grow with the length") {
    // (2,3,4) of the index, cut to (2,2,3): the axes are source, target and source.
    std::vector<int64_t> values(24);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i);
    TensorMap outputs{{"x", Tensor::from_ints({2, 3, 4}, values)},
                      {"y", Tensor::from_ints({4}, {1, 2, 3, 4})}};
    const OutputAxes axes{{"x", {OutputAxis::kOther, OutputAxis::kTarget, OutputAxis::kSource}},
                          {"y", {OutputAxis::kOther}}};
    cut_outputs(axes, {.source = 3, .target = 2}, outputs);
    CHECK(outputs.at("x").shape == Shape{2, 2, 3});
    const auto cut = outputs.at("x").to_ints();
    REQUIRE(cut.ok());
    CHECK(*cut == std::vector<int64_t>{0, 1, 2, 4, 5, 6, 12, 13, 14, 16, 17, 18});
    CHECK(outputs.at("y").shape == Shape{4});
    cut_outputs(axes, {.target = 1}, outputs);
    CHECK(outputs.at("x").shape == Shape{2, 1, 3});
  }
}

TEST_SUITE("model") {
  TEST_CASE("texts of near lengths share a pass, in one go and in slices") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("bert-base");
    Session exact = session_of(golden, false), rounded = session_of(golden, true);
    SessionSizes sizes;
    sizes.batch = 2;
    sizes.tokens = 20;
    REQUIRE(rounded.warm_up(sizes).ok());
    REQUIRE(rounded.finish_warm_up().ok());
    RunOptions taps;
    taps.attentions = taps.hidden_states = true;
    for (const int64_t tokens : {17, 20, 31, 32}) {
      CAPTURE(tokens);
      const TensorMap inputs = text(2, tokens);
      CHECK_FALSE(waits(rounded, inputs));
      REQUIRE(rounded.start(inputs).ok());
      Advance now;
      do {
        const auto advance = rounded.advance(1000);
        REQUIRE_MESSAGE(advance.ok(), advance.error().message);
        now = *advance;
      } while (still_prepares(now) || now.more_to_submit());
      const auto sliced = rounded.finish();
      REQUIRE_MESSAGE(sliced.ok(), sliced.error().message);
      const auto whole = rounded.run(inputs);
      REQUIRE_MESSAGE(whole.ok(), whole.error().message);
      REQUIRE(whole->size() == sliced->size());
      for (const auto& [name, tensor] : *whole) {
        CHECK(sliced->at(name).shape == tensor.shape);
        CHECK(sliced->at(name).bytes == tensor.bytes);
      }
      const auto with_taps = rounded.run(inputs, taps), wanted = exact.run(inputs, taps);
      REQUIRE((with_taps.ok() && wanted.ok()));
      REQUIRE(with_taps->size() == wanted->size());
      for (const auto& [name, tensor] : *wanted) check_near(name, with_taps->at(name), tensor);
    }
  }
}

}  // namespace vkformer::testing
