// Examples of tasks over texts.
#include <vkformer/embed.h>
#include <vkformer/rerank.h>
#include <vkformer/tasks.h>

#include <cstdio>

#include "examples.h"

using vkformer::ModelSource;

namespace {

vkformer::Status show_classifying(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  const auto source = ModelSource::directory(setting.tasks + "/labels");
  //! [TextClassifier::load TextClassifier::classify Task::info]
  // Prints the likeliest label of two texts.
  auto classifier = vkformer::TextClassifier::load(device, source);
  if (!classifier) return classifier.error();
  std::printf("%zu labels\n", classifier->info().labels.size());
  const std::vector<vkformer::ClassifyInput> inputs = {{"a good film"}, {"a bad film"}};
  const auto labels = classifier->classify(inputs, 1);
  if (!labels) return labels.error();
  for (const auto& best : *labels) {
    std::printf("%s %.3f\n", best.front().label.c_str(), best.front().score);
  }
  //! [end]

  //! [model_tasks]
  // Lists the tasks that a model can do.
  for (const vkformer::TaskKind task : vkformer::model_tasks(classifier->info())) {
    std::puts(vkformer::choice_name(task));
  }
  //! [end]

  const auto entity_source = ModelSource::directory(setting.tasks + "/entities");
  //! [TextClassifier::entities TextClassifier::finds_entities]
  // Finds names in a text, where the model labels tokens.
  auto finder = vkformer::TextClassifier::load(device, entity_source);
  if (!finder) return finder.error();
  if (finder->finds_entities()) {
    const auto entities = finder->entities(std::vector<std::string>{"the cat sat"});
    if (!entities) return entities.error();
    for (const vkformer::Entity& found : entities->front()) {
      std::printf("%s: %s\n", found.label.c_str(), found.text.c_str());
    }
  }
  //! [end]

  const auto named_source = ModelSource::directory(setting.tasks + "/named-entities");
  //! [TextClassifier::zero_shot_entities]
  // Finds what the program names in a text, by a GLiNER.
  auto reader = vkformer::TextClassifier::load(device, named_source);
  if (!reader) return reader.error();
  vkformer::EntityOptions wishes;
  wishes.threshold = 0.4;
  const auto named = reader->zero_shot_entities(std::vector<std::string>{"Ada lived in Rome."},
                                                std::vector<std::string>{"person", "city"}, wishes);
  if (!named) return named.error();
  for (const vkformer::Entity& found : named->front()) {
    std::printf("%s: %s %.2f\n", found.label.c_str(), found.text.c_str(), found.score);
  }
  //! [end]

  const auto inference = ModelSource::directory(setting.tasks + "/zero-shot");
  //! [TextClassifier::zero_shot]
  // Chooses between labels that the model was not trained on.
  auto judge = vkformer::TextClassifier::load(device, inference);
  if (!judge) return judge.error();
  const auto chosen = judge->zero_shot(std::vector<std::string>{"The fox jumps over the dog."},
                                       std::vector<std::string>{"animals", "politics"});
  if (!chosen) return chosen.error();
  std::printf("%s\n", chosen->front().front().label.c_str());
  //! [end]
  return expect(finder->finds_entities() && labels->size() == 2, "labels of texts and tokens");
}

vkformer::Status show_vectors(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  const auto source = ModelSource::directory(setting.tasks + "/embed");
  //! [Embedder::load Embedder::embed]
  // Two texts to vectors of length 1: a tensor (2,D).
  auto embedder = vkformer::Embedder::load(device, source);
  if (!embedder) return embedder.error();
  vkformer::EmbedOptions options;
  options.length = vkformer::EmbedOptions::Length::kUnit;
  const auto vectors = embedder->embed(std::vector<std::string>{"a cat", "a dog"}, options);
  if (!vectors) return vectors.error();
  std::printf("%s\n", vkformer::shape_text(vectors->shape).c_str());
  //! [end]

  const auto rank_source = ModelSource::directory(setting.tasks + "/rerank");
  //! [Reranker::load Reranker::rank]
  // Orders documents by how well they fit a query.
  auto reranker = vkformer::Reranker::load(device, rank_source);
  if (!reranker) return reranker.error();
  const auto ranked =
      reranker->rank("where is the cat", std::vector<std::string>{"a dog", "the cat is here"});
  if (!ranked) return ranked.error();
  for (const auto& document : *ranked) std::printf("%zu %.3f\n", document.index, document.score);
  //! [end]
  return expect(vectors->shape.front() == 2 && ranked->size() == 2, "two vectors, two documents");
}

vkformer::Status show_reading(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  const auto answer_source = ModelSource::directory(setting.tasks + "/answers");
  //! [Answerer::load Answerer::answer]
  // Finds the answer to a question in a text.
  auto answerer = vkformer::Answerer::load(device, answer_source);
  if (!answerer) return answerer.error();
  const std::vector<vkformer::Question> questions = {{"where is the cat", "the cat is here"}};
  const auto answers = answerer->answer(questions);
  if (!answers) return answers.error();
  for (const vkformer::Answer& answer : answers->front()) std::puts(answer.text.c_str());
  //! [end]

  const auto mask_source = ModelSource::directory(setting.tasks + "/masks");
  //! [MaskFiller::load MaskFiller::mask_token MaskFiller::fill]
  // The three likeliest words for a gap.
  auto filler = vkformer::MaskFiller::load(device, mask_source);
  if (!filler) return filler.error();
  const auto gaps = filler->fill(std::vector<std::string>{"the " + filler->mask_token()}, 3);
  if (!gaps) return gaps.error();
  for (const vkformer::MaskCandidate& word : gaps->front().front()) std::puts(word.text.c_str());
  //! [end]
  return expect(gaps->front().front().size() == 3, "three words");
}

vkformer::Status show_writing(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  const auto source = ModelSource::directory(setting.models + "/shakespeare");
  //! [TextGenerator::load TextGenerator::generate TextGenerator::counters]
  // Continues a prompt by 8 tokens.
  auto writer = vkformer::TextGenerator::load(device, source);
  if (!writer) return writer.error();
  vkformer::TextOptions options;
  options.max_new_tokens = 8;
  const auto texts = writer->generate(std::vector<std::string>{"JULIET:"}, options);
  if (!texts) return texts.error();
  std::printf("%s\n%lld steps\n", texts->front().front().text.c_str(),
              static_cast<long long>(writer->counters().steps));
  //! [end]

  //! [TextGenerator::score]
  // How likely a continuation is: the log-probability of each of its tokens.
  const auto scores =
      writer->score(std::vector<std::string>{"JULIET:"}, std::vector<std::string>{" O Romeo"});
  if (!scores) return scores.error();
  for (const float log_probability : scores->front()) std::printf("%.3f\n", log_probability);
  //! [end]
  return expect(!scores->front().empty(), "scores");
}

}  // namespace

vkformer::Status show_tasks(const Setting& setting) {
  for (const auto show : {show_classifying, show_vectors, show_reading, show_writing}) {
    const auto shown = show(setting);
    if (!shown) return shown;
  }
  return {};
}
