// The parts of tasks that need no model: batches by length, scores, slices of texts.
#include <doctest/doctest.h>

#include <cmath>

#include "tasks/task_model.h"

namespace vkformer {
namespace {

TEST_SUITE("cpu") {
  TEST_CASE("batches hold every input once, short ones first") {
    const std::vector<size_t> lengths = {5, 0, 3, 9, 3, 1};
    std::vector<std::vector<size_t>> batches;
    const Status done = run_batches(lengths, 2, [&](std::span<const size_t> places) {
      batches.emplace_back(places.begin(), places.end());
      return Status();
    });
    CHECK(done.ok());
    CHECK(batches == std::vector<std::vector<size_t>>{{5, 2}, {4, 0}, {3}});
  }

  TEST_CASE("a batch that fails ends the run") {
    int calls = 0;
    const Status done = run_batches({1, 2, 3}, 1, [&](std::span<const size_t>) -> Status {
      return ++calls == 2 ? Status(Error{ErrorCode::kDriver, "second"}) : Status();
    });
    REQUIRE_FALSE(done.ok());
    CHECK(done.error().message == "second");
    CHECK(calls == 2);
    CHECK(run_batches({}, 4, [](std::span<const size_t>) { return Status(); }).ok());
  }

  TEST_CASE("softmax of large logits") {
    const float logits[] = {1000.0f, 1000.0f, -1000.0f};
    const std::vector<double> scores = softmax_of(logits);
    CHECK(scores[0] == doctest::Approx(0.5));
    CHECK(scores[2] == doctest::Approx(0.0));
    CHECK(softmax_of({}).empty());
  }

  TEST_CASE("the largest values, equal ones by place, NaN last") {
    const double values[] = {0.5, NAN, 2.0, 0.5, -1.0};
    CHECK(largest(values, 3) == std::vector<size_t>{2, 0, 3});
    CHECK(largest(values, 0) == std::vector<size_t>{2, 0, 3, 4, 1});
    CHECK(largest(values, 9).size() == 5);
    CHECK(largest({}, 2).empty());
  }

  TEST_CASE("slices count code points") {
    const std::string text = "a\xC3\xBC\xE2\x82\xAC\xF0\x9F\x8C\x8Dz";
    CHECK(text_slice(text, {0, 5}) == text);
    CHECK(text_slice(text, {1, 3}) == "\xC3\xBC\xE2\x82\xAC");
    CHECK(text_slice(text, {3, 4}) == "\xF0\x9F\x8C\x8D");
    CHECK(text_slice(text, {2, 2}).empty());
    CHECK(text_slice(text, {4, 99}) == "z");
  }

  TEST_CASE("what a model can do") {
    const auto tasks = [](const char* kind, const char* source, const char* head) {
      ModelInfo info;
      info.kind = kind;
      info.source = source;
      info.head = head;
      return model_tasks(info);
    };
    using Names = std::vector<std::string>;
    CHECK(tasks("encoder", "tokens", "none") == Names{"embed"});
    CHECK(tasks("encoder", "tokens", "sequence") == Names{"embed", "classify"});
    CHECK(tasks("encoder", "tokens", "tokens") == Names{"embed", "classify"});
    CHECK(tasks("encoder", "tokens", "spans") == Names{"embed", "answer"});
    CHECK(tasks("encoder", "tokens", "masked") == Names{"embed", "fill-mask"});
    CHECK(tasks("decoder", "tokens", "language") == Names{"embed", "generate"});
    CHECK(tasks("encoder", "pictures", "sequence") == Names{"classify"});
    CHECK(tasks("encoder", "pictures", "none").empty());
    CHECK(tasks("encoder-decoder", "features", "language") == Names{"transcribe"});
    CHECK(tasks("encoder-decoder", "pictures", "language") == Names{"caption"});
  }
}

}  // namespace
}  // namespace vkformer
