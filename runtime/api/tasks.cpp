#include "vkformer/tasks.h"

#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "base/message.h"
#include "tasks/image_prompts.h"
#include "tasks/task_model.h"

namespace vkformer {
namespace {

constexpr const char* kInputsTooLarge =
    "The [inputs] of a task do not fit into memory; give fewer, or smaller batches.";

template <class T>
Result<T> load_task(const Device& device, const ModelSource& source, TaskKind task,
                    const TaskOptions& options) {
  VKF_ASSIGN(std::unique_ptr<TaskModel> model, load_task_model(device, source, task, options));
  return HandleAccess::make<T>(std::move(model));
}

}  // namespace

std::vector<TaskKind> model_tasks(const ModelInfo& info) {
  return if_present([&] { return tasks_of(info); });
}

Task::Task(std::unique_ptr<TaskModel> impl) : impl_(std::move(impl)) {}
Task::Task(Task&&) noexcept = default;
Task& Task::operator=(Task&&) noexcept = default;
Task::~Task() = default;

const ModelInfo& Task::info() const {
  return impl_->model->info();
}

Result<Embedder> Embedder::load(const Device& device, const ModelSource& source,
                                const TaskOptions& options) {
  return guarded([&]() -> Result<Embedder> {
    return load_task<Embedder>(device, source, TaskKind::kEmbed, options);
  });
}

Result<Tensor> Embedder::embed(std::span<const std::string> texts, const EmbedOptions& options) {
  return guarded(kInputsTooLarge, [&] { return embed_texts(*impl_, texts, options); });
}

Result<TextClassifier> TextClassifier::load(const Device& device, const ModelSource& source,
                                            const TaskOptions& options) {
  return guarded([&]() -> Result<TextClassifier> {
    VKF_ASSIGN(TextClassifier made,
               load_task<TextClassifier>(device, source, TaskKind::kClassify, options));
    if (made.info().source == SourceKind::kTokens) return made;
    return unsupported(
        message({"[classify] a ", made.info().architecture, " reads ",
                 choice_name(made.info().source), ", no texts; load it as a PictureClassifier"}));
  });
}

bool TextClassifier::finds_entities() const {
  return impl_->facts().head == HeadKind::kTokens;
}

Result<std::vector<std::vector<LabelScore>>> TextClassifier::classify(
    std::span<const ClassifyInput> inputs, int top) {
  return guarded(kInputsTooLarge, [&] { return classify_texts(*impl_, inputs, top); });
}

Result<std::vector<std::vector<LabelScore>>> TextClassifier::zero_shot(
    std::span<const std::string> texts, std::span<const std::string> labels,
    const ZeroShotOptions& options) {
  return guarded(kInputsTooLarge, [&] { return zero_shot_labels(*impl_, texts, labels, options); });
}

Result<std::vector<std::vector<Entity>>> TextClassifier::entities(
    std::span<const std::string> texts) {
  return guarded(kInputsTooLarge, [&] { return find_entities(*impl_, texts); });
}

Result<std::vector<std::vector<Entity>>> TextClassifier::zero_shot_entities(
    std::span<const std::string> texts, std::span<const std::string> labels,
    const EntityOptions& options) {
  return guarded(kInputsTooLarge,
                 [&] { return zero_shot_entities_of(*impl_, texts, labels, options); });
}

Result<PictureClassifier> PictureClassifier::load(const Device& device, const ModelSource& source,
                                                  const TaskOptions& options) {
  return guarded([&]() -> Result<PictureClassifier> {
    VKF_ASSIGN(PictureClassifier made,
               load_task<PictureClassifier>(device, source, TaskKind::kClassify, options));
    const bool compares = made.info().head == HeadKind::kSimilarity;
    if (made.info().source == SourceKind::kPictures || compares) return made;
    return unsupported(
        message({"[classify] a ", made.info().architecture, " reads ",
                 choice_name(made.info().source), ", no pictures; load it as a TextClassifier"}));
  });
}

Result<std::vector<std::vector<LabelScore>>> PictureClassifier::classify(
    std::span<const Picture> pictures, int top) {
  return guarded(kInputsTooLarge, [&] { return classify_pictures(*impl_, pictures, top); });
}

Result<std::vector<std::vector<LabelScore>>> PictureClassifier::zero_shot(
    std::span<const Picture> pictures, std::span<const std::string> labels,
    const ZeroShotOptions& options) {
  return guarded(kInputsTooLarge,
                 [&] { return zero_shot_pictures(*impl_, pictures, labels, options); });
}

Result<Answerer> Answerer::load(const Device& device, const ModelSource& source,
                                const TaskOptions& options) {
  return guarded([&]() -> Result<Answerer> {
    return load_task<Answerer>(device, source, TaskKind::kAnswer, options);
  });
}

Result<std::vector<std::vector<Answer>>> Answerer::answer(std::span<const Question> questions,
                                                          const AnswerOptions& options) {
  return guarded(kInputsTooLarge, [&] { return answer_questions(*impl_, questions, options); });
}

Result<MaskFiller> MaskFiller::load(const Device& device, const ModelSource& source,
                                    const TaskOptions& options) {
  return guarded([&]() -> Result<MaskFiller> {
    return load_task<MaskFiller>(device, source, TaskKind::kFillMask, options);
  });
}

const std::string& MaskFiller::mask_token() const {
  return impl_->mask_token;
}

Result<std::vector<std::vector<std::vector<MaskCandidate>>>> MaskFiller::fill(
    std::span<const std::string> texts, int top) {
  return guarded(kInputsTooLarge, [&] { return fill_masks(*impl_, texts, top); });
}

Result<TextGenerator> TextGenerator::load(const Device& device, const ModelSource& source,
                                          const TaskOptions& options) {
  return guarded([&]() -> Result<TextGenerator> {
    return load_task<TextGenerator>(device, source, TaskKind::kGenerate, options);
  });
}

Result<std::vector<std::vector<GeneratedText>>> TextGenerator::generate(
    std::span<const std::string> texts, const TextOptions& options) {
  return guarded(kInputsTooLarge, [&] { return generate_texts(*impl_, texts, options); });
}

Result<std::vector<std::vector<GeneratedText>>> TextGenerator::generate_with_pictures(
    std::span<const PromptWithPictures> prompts, const TextOptions& options) {
  return guarded(kInputsTooLarge, [&] { return generate_from_pictures(*impl_, prompts, options); });
}

Result<std::string> TextGenerator::picture_placeholder() const {
  return guarded([&] { return image_placeholder(*impl_); });
}

Result<std::vector<std::vector<float>>> TextGenerator::score(
    std::span<const std::string> texts, std::span<const std::string> continuations) {
  return guarded(kInputsTooLarge, [&] { return score_texts(*impl_, texts, continuations); });
}

const GenerationCounters& TextGenerator::counters() const {
  return impl_->session->counters();
}

Result<Captioner> Captioner::load(const Device& device, const ModelSource& source,
                                  const TaskOptions& options) {
  return guarded([&]() -> Result<Captioner> {
    return load_task<Captioner>(device, source, TaskKind::kCaption, options);
  });
}

Result<std::vector<std::string>> Captioner::caption(std::span<const Picture> pictures,
                                                    const TextOptions& options) {
  return guarded(kInputsTooLarge, [&] { return caption_pictures(*impl_, pictures, options); });
}

}  // namespace vkformer
