// Decoders that classify texts and rank documents: the golden language model of the rerank task
// with a head of classes. tests/golden has the numbers of every family; here are the tasks.
#include <cmath>

#include "tasks/task_cases.h"
#include "vkformer/rerank.h"
#include "vkformer/session.h"
#include "vkformer/tokenizer.h"

namespace vkformer::testing {
namespace {

constexpr int64_t kWidth = 32;

// The model with `labels` classes, whose matrix is made of a formula.
struct ClassifyingDecoder : TaskCopy {
  explicit ClassifyingDecoder(int64_t labels) : TaskCopy("judge") {
    change("config.json", "architectures", Json::array({"Qwen3ForSequenceClassification"}));
    Json names = Json::object();
    for (int64_t i = 0; i < labels; ++i) names[std::to_string(i)] = "class " + std::to_string(i);
    change("config.json", "id2label", names);
    TensorMap tensors = value_of(read_tensor_file(folder.file("model.safetensors")));
    std::vector<float> values;
    for (int64_t i = 0; i < labels * kWidth; ++i) {
      values.push_back(std::sin(0.7f * static_cast<float>(i)) * 0.4f);
    }
    tensors["score.weight"] = Tensor::from_floats({labels, kWidth}, values);
    const Status written = write_tensor_file(folder.file("model.safetensors"), tensors);
    REQUIRE_MESSAGE(written.ok(), written.error().message);
  }

  // Logits of one text, alone in its pass.
  std::vector<float> logits(std::string_view text) const {
    const auto model = value_of(Model::load(*test_device(), folder.path()));
    Session session = value_of(Session::create(model));
    const Tokenizer tokenizer = value_of(Tokenizer::load(folder.file("tokenizer.json")));
    const Encoding encoding = value_of(tokenizer.encode(text));
    const auto tokens = static_cast<int64_t>(encoding.ids.size());
    const TensorMap outputs =
        value_of(session.run({{"input_ids", Tensor::from_ints({1, tokens}, encoding.ids)}}));
    return value_of(outputs.at("logits").to_floats());
  }
};

TEST_SUITE("model") {
  TEST_CASE("a decoder classifies texts of any lengths as it does each alone") {
    if (!have_test_device()) return;
    const ClassifyingDecoder model(3);
    const std::vector<ClassifyInput> texts = {
        {"one last goal"}, {"plants eat light and water"}, {"no"}};
    for (const int batch : {1, 3}) {
      TaskOptions options;
      options.batch = batch;
      auto task = load_task<TextClassifier>(model.folder.path(), options);
      const auto labels = value_of(task.classify(texts, 0));
      REQUIRE(labels.size() == texts.size());
      for (size_t i = 0; i < texts.size(); ++i) {
        const std::vector<float> logits = model.logits(texts[i].text);
        REQUIRE(labels[i].size() == logits.size());
        double sum = 0;
        for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
        for (const LabelScore& label : labels[i]) {
          const auto index = static_cast<size_t>(label.label.back() - '0');
          const double wanted = std::exp(static_cast<double>(logits[index])) / sum;
          CHECK(label.score == doctest::Approx(wanted).epsilon(1e-4));
        }
      }
    }
    const auto generated = TextGenerator::load(
        *test_device(), ModelSource::directory(model.folder.path()), TaskOptions());
    REQUIRE_FALSE(generated.ok());
    CHECK(test::contains(generated.error().message, "Qwen3ForSequenceClassification"));
  }

  TEST_CASE("a decoder with one class ranks documents by it") {
    if (!have_test_device()) return;
    const ClassifyingDecoder model(1);
    const std::vector<std::string> documents = {"light and water", "a goal", "rome in the sun"};
    RerankOptions options;
    options.score = RerankOptions::Score::kLogit;
    std::vector<RankedDocument> first;
    for (const int batch : {1, 3}) {
      TaskOptions tasks;
      tasks.batch = batch;
      auto task = load_task<Reranker>(model.folder.path(), tasks);
      const auto ranking = value_of(task.rank("how do plants eat", documents, options));
      REQUIRE(ranking.size() == documents.size());
      if (first.empty()) first = ranking;
      for (size_t i = 0; i < ranking.size(); ++i) {
        CHECK(ranking[i].index == first[i].index);
        CHECK(ranking[i].score == doctest::Approx(first[i].score).epsilon(1e-4));
        if (i > 0) CHECK(ranking[i].score <= ranking[i - 1].score);
      }
    }
  }
}

}  // namespace
}  // namespace vkformer::testing
