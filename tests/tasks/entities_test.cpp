// Entities of labels that the caller names, against float64 (tools/golden/tasks_golden.py).
#include "tasks/task_cases.h"

namespace vkformer::testing {
namespace {

EntityOptions options_of(const Json& run) {
  EntityOptions options;
  options.threshold = run.value("threshold", options.threshold);
  options.nested = run.value("nested", false);
  options.multi_label = run.value("multi_label", false);
  return options;
}

void check_found(const std::vector<Entity>& found, const Json& wanted, const std::string& text) {
  REQUIRE(found.size() == wanted.size());
  for (size_t k = 0; k < found.size(); ++k) {
    CHECK(found[k].label == wanted[k]["label"].get<std::string>());
    CHECK(found[k].range == TextRange{wanted[k]["begin"], wanted[k]["end"]});
    CHECK(found[k].score == near_score(wanted[k]["score"]));
    CHECK(test::contains(text, found[k].text));
  }
}

void check_refused(const Result<std::vector<std::vector<Entity>>>& result, ErrorCode code,
                   const std::vector<std::string>& parts) {
  REQUIRE_FALSE(result.ok());
  CAPTURE(result.error().message);
  CHECK(result.error().code == code);
  for (const std::string& part : parts) {
    CHECK_MESSAGE(test::contains(result.error().message, part), part);
  }
}

TEST_SUITE("model") {
  TEST_CASE("named entities are the library's, in batches of any size, again and again") {
    if (!have_test_device()) return;
    const Json expected = task_expected("named-entities");
    const std::vector<std::string> texts = strings(expected["texts"]);
    for (const int batch : {1, 3, 32}) {
      auto task = load_golden<TextClassifier>("named-entities", batch);
      CHECK(task.info().head == HeadKind::kEntities);
      CHECK_FALSE(task.finds_entities());
      for (const Json& run : expected["runs"]) {
        const std::vector<std::string> labels = strings(run["labels"]);
        const auto found = value_of(task.zero_shot_entities(texts, labels, options_of(run)));
        const auto again = value_of(task.zero_shot_entities(texts, labels, options_of(run)));
        REQUIRE(found.size() == texts.size());
        for (size_t i = 0; i < texts.size(); ++i) {
          CAPTURE(texts[i]);
          check_found(found[i], run["entities"][i], texts[i]);
          REQUIRE(again[i].size() == found[i].size());
          for (size_t k = 0; k < found[i].size(); ++k) {
            CHECK(again[i][k].score == found[i][k].score);
          }
        }
      }
      CHECK(value_of(task.zero_shot_entities({}, std::vector<std::string>{"a"})).empty());
    }
  }

  TEST_CASE("named entities: a label counts once, and the tokenizer may lack the markers") {
    if (!have_test_device()) return;
    const Json expected = task_expected("named-entities");
    const std::vector<std::string> texts = strings(expected["texts"]);
    const Json& run = expected["runs"][0];
    std::vector<std::string> labels = strings(run["labels"]);
    labels.push_back(labels[0]);
    const TaskCopy copy("named-entities");
    Json tokenizer = read_json(copy.folder.file("tokenizer.json"));
    Json added = Json::array();
    for (const Json& token : tokenizer["added_tokens"]) {
      if (token["content"] != "<<ENT>>" && token["content"] != "<<SEP>>") added.push_back(token);
    }
    tokenizer["added_tokens"] = added;
    copy.folder.write("tokenizer.json", tokenizer.dump());
    auto task = load_task<TextClassifier>(copy.folder.path());
    const auto found = value_of(task.zero_shot_entities(texts, labels, options_of(run)));
    for (size_t i = 0; i < texts.size(); ++i) check_found(found[i], run["entities"][i], texts[i]);
  }

  TEST_CASE("named entities: what cannot be done is said") {
    if (!have_test_device()) return;
    auto task = load_golden<TextClassifier>("named-entities");
    const std::vector<std::string> texts = {"Ada met Bob."}, labels = {"person"};
    const auto invalid = ErrorCode::kInvalidArgument;
    check_refused(task.zero_shot_entities(texts, {}), invalid, {"[labels]"});
    for (const char* label : {"", "a <<ENT>> b"}) {
      check_refused(task.zero_shot_entities(texts, std::vector<std::string>{"person", label}),
                    invalid, {"[label]", label});
    }
    for (const double threshold : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
      EntityOptions options;
      options.threshold = threshold;
      check_refused(task.zero_shot_entities(texts, labels, options), invalid, {"[threshold]"});
    }
    check_refused(task.zero_shot_entities(std::vector<std::string>{"\xff"}, labels), invalid,
                  {"[text 1]"});
    check_refused(task.entities(texts), ErrorCode::kUnsupported, {"zero_shot_entities"});
    const ClassifyInput input = {"hello"};
    const auto classes = task.classify({&input, 1});
    REQUIRE_FALSE(classes.ok());
    CHECK(test::contains(classes.error().message, "zero_shot_entities"));
    const auto chosen = task.zero_shot(texts, labels);
    REQUIRE_FALSE(chosen.ok());
    CHECK(test::contains(chosen.error().message, "zero_shot_entities"));
    auto other = load_golden<TextClassifier>("labels");
    check_refused(other.zero_shot_entities(texts, labels), ErrorCode::kUnsupported,
                  {"[zero_shot_entities]", "GLiNER"});
  }

  TEST_CASE("named entities: too many words are an error or are cut") {
    if (!have_test_device()) return;
    const TaskCopy copy("named-entities");
    copy.change("gliner_config.json", "max_len", 5);
    const std::vector<std::string> labels = {"person", "so"};
    const std::vector<std::string> long_text = {"The quick brown fox jumps over the lazy dog."};
    const std::vector<std::string> short_text = {"The quick brown fox jumps"};
    TaskOptions options;
    auto strict = load_task<TextClassifier>(copy.folder.path(), options);
    check_refused(strict.zero_shot_entities(long_text, labels), ErrorCode::kInvalidArgument,
                  {"[text 1]", "10 words", "5"});
    options.long_text = LongText::kTruncate;
    auto cutting = load_task<TextClassifier>(copy.folder.path(), options);
    EntityOptions all;
    all.threshold = 0;
    const auto cut = value_of(cutting.zero_shot_entities(long_text, labels, all));
    const auto whole = value_of(strict.zero_shot_entities(short_text, labels, all));
    REQUIRE(cut[0].size() == whole[0].size());
    REQUIRE_FALSE(cut[0].empty());
    for (size_t k = 0; k < cut[0].size(); ++k) {
      CHECK(cut[0][k].range == whole[0][k].range);
      CHECK(cut[0][k].score == whole[0][k].score);
    }
  }

  TEST_CASE("named entities: a tokenizer of another model is refused") {
    if (!have_test_device()) return;
    const TaskCopy copy("named-entities");
    const int64_t index = read_json(copy.folder.file("gliner_config.json"))["class_token_index"];
    copy.change("gliner_config.json", "class_token_index", index - 1);
    auto task = load_task<TextClassifier>(copy.folder.path());
    const std::vector<std::string> texts = {"Ada met Bob."}, labels = {"person"};
    check_refused(task.zero_shot_entities(texts, labels), ErrorCode::kInvalidFile,
                  {"[ent_token]", "class_token_index"});
  }
}

}  // namespace
}  // namespace vkformer::testing
