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
    using Tasks = std::vector<TaskKind>;
    const auto tasks = [](ModelKind kind, SourceKind source, HeadKind head) {
      ModelInfo info;
      info.kind = kind;
      info.source = source;
      info.head = head;
      return model_tasks(info);
    };
    const auto encoder = [&](HeadKind head) {
      return tasks(ModelKind::kEncoder, SourceKind::kTokens, head);
    };
    CHECK(encoder(HeadKind::kNone) == Tasks{TaskKind::kEmbed});
    CHECK(encoder(HeadKind::kSentence) == Tasks{TaskKind::kEmbed});
    CHECK(encoder(HeadKind::kSequence) == Tasks{TaskKind::kEmbed, TaskKind::kClassify});
    CHECK(encoder(HeadKind::kTokens) == Tasks{TaskKind::kEmbed, TaskKind::kClassify});
    CHECK(encoder(HeadKind::kSpans) == Tasks{TaskKind::kEmbed, TaskKind::kAnswer});
    CHECK(encoder(HeadKind::kMasked) == Tasks{TaskKind::kEmbed, TaskKind::kFillMask});
    CHECK(tasks(ModelKind::kDecoder, SourceKind::kTokens, HeadKind::kLanguage) ==
          Tasks{TaskKind::kEmbed, TaskKind::kGenerate});
    CHECK(tasks(ModelKind::kEncoder, SourceKind::kPictures, HeadKind::kSequence) ==
          Tasks{TaskKind::kClassify});
    CHECK(tasks(ModelKind::kEncoder, SourceKind::kPictures, HeadKind::kNone).empty());
    CHECK(tasks(ModelKind::kEncoderDecoder, SourceKind::kFeatures, HeadKind::kLanguage) ==
          Tasks{TaskKind::kTranscribe});
    CHECK(tasks(ModelKind::kEncoderDecoder, SourceKind::kPictures, HeadKind::kLanguage) ==
          Tasks{TaskKind::kCaption});
  }
}

}  // namespace
}  // namespace vkformer
