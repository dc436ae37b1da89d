// What reads texts in pairs: documents ranked for a query, and texts and pictures classified by
// labels that the caller names. Both are compared with float64 (tools/golden/tasks_golden.py).
#include "tasks/task_cases.h"
#include "vkformer/rerank.h"
#include "vkformer/tokenizer.h"

namespace vkformer::testing {
namespace {

std::vector<LabelScore> named(const Json& list) {
  std::vector<LabelScore> labels;
  for (const Json& one : list) {
    labels.push_back({one["label"].get<std::string>(), one["score"].get<double>()});
  }
  return labels;
}

double first_score(const TaskCopy& copy, RerankOptions::Score score) {
  auto task = load_task<Reranker>(copy.folder.path());
  const Json expected = task_expected("rerank");
  RerankOptions options;
  options.score = score;
  const auto ranking =
      value_of(task.rank(expected["runs"][0]["query"], strings(expected["documents"]), options));
  return ranking[0].score;
}

TEST_SUITE("model") {
  TEST_CASE("rerank: documents by their scores, best first, in batches of any size") {
    if (!have_test_device()) return;
    const Json expected = task_expected("rerank");
    const std::vector<std::string> documents = strings(expected["documents"]);
    for (const int batch : {1, 4, 32}) {
      auto task = load_golden<Reranker>("rerank", batch);
      for (const Json& run : expected["runs"]) {
        const std::string query = run["query"];
        const auto ranking = value_of(task.rank(query, documents));
        REQUIRE(ranking.size() == documents.size());
        RerankOptions logits;
        logits.score = RerankOptions::Score::kLogit;
        logits.top = 2;
        const auto best = value_of(task.rank(query, documents, logits));
        REQUIRE(best.size() == 2);
        for (size_t i = 0; i < ranking.size(); ++i) {
          const Json& wanted = run["ranking"][i];
          CHECK(ranking[i].index == wanted["index"].get<size_t>());
          CHECK(ranking[i].score == near_score(wanted["score"]));
          if (i < 2) CHECK(best[i].index == ranking[i].index);
          if (i < 2) CHECK(best[i].score == near_score(wanted["logit"]));
        }
      }
      CHECK(value_of(task.rank("nothing", {})).empty());
      RerankOptions wrong;
      wrong.top = -1;
      const auto refused = task.rank("q", documents, wrong);
      REQUIRE_FALSE(refused.ok());
      CHECK(test::contains(refused.error().message, "[top] is -1"));
    }
  }

  TEST_CASE("rerank: config.json says whether scores are probabilities") {
    if (!have_test_device()) return;
    using Score = RerankOptions::Score;
    const TaskCopy copy("rerank");
    const Json best = task_expected("rerank")["runs"][0]["ranking"][0];
    const std::string old_key = "sbert_ce_default_activation_function";
    copy.change("config.json", old_key, "torch.nn.modules.linear.Identity");
    CHECK(first_score(copy, Score::kModel) == near_score(best["logit"]));
    CHECK(first_score(copy, Score::kProbability) == near_score(best["score"]));
    copy.change("config.json", "sentence_transformers",
                {{"activation_fn", "torch.nn.modules.activation.Sigmoid"}});
    CHECK(first_score(copy, Score::kModel) == near_score(best["score"]));
    copy.change("config.json", "sentence_transformers", {{"activation_fn", "torch.nn.Tanh"}});
    auto task = load_task<Reranker>(copy.folder.path());
    const std::vector<std::string> documents = {"a"};
    const auto refused = task.rank("q", documents);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kUnsupported);
    CHECK(test::contains(refused.error().message, "[activation_fn]"));
    CHECK(test::contains(refused.error().message, "torch.nn.Tanh"));
  }

  TEST_CASE("rerank: models with several classes or none are refused") {
    if (!have_test_device()) return;
    for (const char* name : {"labels", "embed"}) {
      const auto task = Reranker::load(*test_device(), ModelSource::directory(task_path(name)));
      REQUIRE_FALSE(task.ok());
      CHECK(task.error().code == ErrorCode::kUnsupported);
      CHECK(test::contains(task.error().message, "[rerank]"));
    }
  }

  TEST_CASE("rerank: long documents are an error, or lose their end") {
    if (!have_test_device()) return;
    std::string text;
    for (int i = 0; i < 200; ++i) text += "fox ";
    const std::vector<std::string> documents = {"hello", text};
    auto strict = load_golden<Reranker>("rerank");
    const auto refused = strict.rank("what", documents);
    REQUIRE_FALSE(refused.ok());
    CHECK(test::contains(refused.error().message, "[text 2]"));
    TaskOptions options;
    options.long_text = LongText::kTruncate;
    auto cut = load_task<Reranker>(task_path("rerank"), options);
    CHECK(value_of(cut.rank("what", documents)).size() == 2);
  }

  TEST_CASE("rerank: a language model says yes or no, in batches of any size") {
    if (!have_test_device()) return;
    const Json expected = task_expected("judge");
    const std::vector<std::string> documents = strings(expected["documents"]);
    for (const int batch : {1, 4, 32}) {
      auto task = load_golden<Reranker>("judge", batch);
      for (const Json& run : expected["runs"]) {
        RerankOptions options;
        options.instruction = run["instruction"];
        const auto ranking = value_of(task.rank(run["query"], documents, options));
        options.score = RerankOptions::Score::kLogit;
        const auto logits = value_of(task.rank(run["query"], documents, options));
        REQUIRE(ranking.size() == documents.size());
        REQUIRE(logits.size() == documents.size());
        for (size_t i = 0; i < ranking.size(); ++i) {
          const Json& wanted = run["ranking"][i];
          CHECK(ranking[i].index == wanted["index"].get<size_t>());
          CHECK(ranking[i].score == near_score(wanted["score"]));
          CHECK(logits[i].index == ranking[i].index);
          CHECK(logits[i].score == near_score(wanted["logit"]));
        }
      }
      CHECK(value_of(task.rank("nothing", {})).empty());
    }
  }

  TEST_CASE("rerank: what a language model cannot be asked is refused by name") {
    if (!have_test_device()) return;
    const auto plain = Reranker::load(*test_device(), ModelSource::directory(task_path("texts")));
    REQUIRE_FALSE(plain.ok());
    CHECK(plain.error().code == ErrorCode::kUnsupported);
    CHECK(test::contains(plain.error().message, "'<|im_start|>'"));
    const std::vector<std::string> documents = {"hello"};
    RerankOptions options;
    options.instruction = "Find animals";
    auto pairs = load_golden<Reranker>("rerank");
    const auto refused = pairs.rank("what", documents, options);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kInvalidArgument);
    CHECK(test::contains(refused.error().message, "[instruction]"));
    const TaskCopy copy("judge");
    copy.change("config.json", "max_position_embeddings", 40);
    auto narrow = load_task<Reranker>(copy.folder.path());
    const auto no_room = narrow.rank("what", documents);
    REQUIRE_FALSE(no_room.ok());
    CHECK(no_room.error().code == ErrorCode::kUnsupported);
    CHECK(test::contains(no_room.error().message, "at most 40"));
  }

  TEST_CASE("rerank: a language model with sentence-transformers' LogitScore") {
    if (!have_test_device()) return;
    const TaskCopy copy("judge");
    copy.folder.write("modules.json",
                      Json({{{"path", ""}, {"type", "sentence_transformers.base.Transformer"}},
                            {{"path", "1_LogitScore"}, {"type", "cross_encoder.LogitScore"}}})
                          .dump());
    std::filesystem::create_directory(copy.folder.file("1_LogitScore"));
    const auto tokenizer = value_of(Tokenizer::load(task_path("judge")));
    const std::string file = "1_LogitScore/config.json";
    copy.change(file, "true_token_id", tokenizer.token_to_id("yes").value());
    copy.change(file, "false_token_id", tokenizer.token_to_id("no").value());
    copy.change("config_sentence_transformers.json", "activation_fn",
                "torch.nn.modules.linear.Identity");
    const Json expected = task_expected("judge");
    const Json run = expected["runs"][0];
    const std::vector<std::string> documents = strings(expected["documents"]);
    auto task = load_task<Reranker>(copy.folder.path());
    const auto ranking = value_of(task.rank(run["query"], documents));
    CHECK(ranking[0].index == run["ranking"][0]["index"].get<size_t>());
    CHECK(ranking[0].score == near_score(run["ranking"][0]["logit"]));
    copy.change(file, "false_token_id", nullptr);
    const auto refused = Reranker::load(*test_device(), ModelSource::directory(copy.folder.path()));
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kUnsupported);
    CHECK(test::contains(refused.error().message, "[false_token_id]"));
    CHECK(test::contains(refused.error().message, "is null"));
  }

  TEST_CASE("rerank: a document that a language model reads loses its end, never the question") {
    if (!have_test_device()) return;
    std::string text = "a quick fox";
    for (int i = 0; i < 400; ++i) text += " jumps over";
    const std::vector<std::string> documents = {text + " it", text + " the lazy dog"};
    auto strict = load_golden<Reranker>("judge");
    const auto refused = strict.rank("what", documents);
    REQUIRE_FALSE(refused.ok());
    CHECK(test::contains(refused.error().message, "[text 1]"));
    TaskOptions options;
    options.long_text = LongText::kTruncate;
    auto cut = load_task<Reranker>(task_path("judge"), options);
    const auto ranking = value_of(cut.rank("what", documents));
    REQUIRE(ranking.size() == 2);
    CHECK(ranking[0].score == ranking[1].score);
    CHECK(ranking[0].index == 0);
  }

  TEST_CASE("zero-shot: labels of the caller, together or each on its own") {
    if (!have_test_device()) return;
    const Json expected = task_expected("zero-shot");
    const std::vector<std::string> texts = strings(expected["texts"]);
    for (const int batch : {1, 5}) {
      auto task = load_golden<TextClassifier>("zero-shot", batch);
      for (const Json& run : expected["runs"]) {
        ZeroShotOptions options;
        options.hypothesis = run["hypothesis"];
        options.multi_label = run["multi_label"];
        const auto found = value_of(task.zero_shot(texts, strings(run["labels"]), options));
        REQUIRE(found.size() == texts.size());
        for (size_t i = 0; i < found.size(); ++i) {
          const std::vector<LabelScore> wanted = named(run["found"][i]);
          REQUIRE(found[i].size() == wanted.size());
          for (size_t k = 0; k < wanted.size(); ++k) {
            CHECK(found[i][k].label == wanted[k].label);
            CHECK(found[i][k].score == near_score(wanted[k].score));
          }
        }
      }
    }
  }

  TEST_CASE("zero-shot: what cannot be done is refused by name") {
    if (!have_test_device()) return;
    const std::vector<std::string> texts = {"hello"};
    const std::vector<std::string> labels = {"a", "b"};
    const auto check = [&](const char* model, std::span<const std::string> given,
                           const std::string& hypothesis, ErrorCode code, const char* part) {
      auto task = load_golden<TextClassifier>(model);
      ZeroShotOptions options;
      options.hypothesis = hypothesis;
      const auto refused = task.zero_shot(texts, given, options);
      REQUIRE_FALSE(refused.ok());
      CHECK(refused.error().code == code);
      CHECK(test::contains(refused.error().message, part));
    };
    check("labels", labels, "{}", ErrorCode::kUnsupported, "bad, so so, good");
    check("entities", labels, "{}", ErrorCode::kUnsupported, "[zero_shot]");
    check("zero-shot", {}, "{}", ErrorCode::kInvalidArgument, "[labels]");
    check("zero-shot", labels, "no gap", ErrorCode::kInvalidArgument, "[hypothesis]");
    check("zero-shot", labels, "{} or {}", ErrorCode::kInvalidArgument, "[hypothesis]");
  }

  TEST_CASE("zero-shot: pictures by texts, which a CLIP weighs and a SigLIP judges one by one") {
    if (!have_test_device()) return;
    for (const char* model : {"picture-texts", "picture-texts-sigmoid"}) {
      CAPTURE(model);
      const Json expected = task_expected(model);
      std::vector<Picture> pictures;
      for (const Json& file : expected["pictures"]) {
        pictures.push_back(value_of(Picture::load(task_path(file.get<std::string>()))));
      }
      for (const int batch : {1, 2, 8}) {
        auto task = load_golden<PictureClassifier>(model, batch);
        for (const Json& run : expected["runs"]) {
          ZeroShotOptions options;
          options.hypothesis = run["hypothesis"];
          const std::vector<std::string> labels = strings(run["labels"]);
          const auto found = value_of(task.zero_shot(pictures, labels, options));
          REQUIRE(found.size() == pictures.size());
          for (size_t i = 0; i < found.size(); ++i) {
            const std::vector<LabelScore> wanted = named(run["found"][i]);
            REQUIRE(found[i].size() == wanted.size());
            for (size_t k = 0; k < wanted.size(); ++k) {
              CHECK(found[i][k].label == wanted[k].label);
              CHECK(found[i][k].score == doctest::Approx(wanted[k].score).epsilon(1e-4));
            }
          }
        }
      }
      auto task = load_golden<PictureClassifier>(model);
      const std::vector<std::string> labels = strings(expected["runs"][0]["labels"]);
      const auto usual = value_of(task.zero_shot(pictures, labels));
      CHECK(usual[0][0].label == named(expected["runs"][0]["found"][0])[0].label);
      const auto refused = task.classify(pictures);
      REQUIRE_FALSE(refused.ok());
      CHECK(refused.error().code == ErrorCode::kUnsupported);
      CHECK_FALSE(task.zero_shot(pictures, {}).ok());
    }
  }

  TEST_CASE("zero-shot: pictures of models with classes, and labels of their own, are refused") {
    if (!have_test_device()) return;
    std::vector<Picture> pictures;
    pictures.push_back(value_of(Picture::load(task_path("picture-0.png"))));
    const std::vector<std::string> labels = {"a", "b"};
    auto classes = load_golden<PictureClassifier>("picture-labels");
    const auto refused = classes.zero_shot(pictures, labels);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kUnsupported);
    CHECK(test::contains(refused.error().message, "ViTForImageClassification"));
    auto clip = load_golden<PictureClassifier>("picture-texts");
    ZeroShotOptions each;
    each.multi_label = true;
    const auto summed = clip.zero_shot(pictures, labels, each);
    REQUIRE_FALSE(summed.ok());
    CHECK(test::contains(summed.error().message, "[multi_label]"));
    CHECK(load_golden<PictureClassifier>("picture-texts-sigmoid")
              .zero_shot(pictures, labels, each)
              .ok());
    const auto texts = TextClassifier::load(*test_device(),
                                            ModelSource::directory(task_path("picture-texts")), {});
    REQUIRE_FALSE(texts.ok());
    CHECK(test::contains(texts.error().message, "PictureClassifier"));
  }
}

}  // namespace
}  // namespace vkformer::testing
