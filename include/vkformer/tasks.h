// Tasks: what one does with a model in one call, from texts, images and audio to vectors,
// labels, answers and texts.
//
// Threading: one thread at a time per task object; several objects may share a Device.
// Lifetime: each owns its model, session and tokenizer, and keeps the Device alive. Move-only; the
// files it was loaded from are not read again. Calls give their results in the order of the inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vkformer/picture.h"
#include "vkformer/session.h"
#include "vkformer/text_options.h"
#include "vkformer/tokenizer.h"

namespace vkformer {

struct TaskModel;
// What happens to a text of more tokens than the model takes.
enum class LongText : uint8_t {
  kError,     // the call fails and says which text it is and how long it may be
  kTruncate,  // its end is cut off
};

struct TaskOptions {
  ModelOptions model;
  SessionOptions session;
  // Inputs that run together at most. Those of one call are sorted by length before, so that a
  // batch has little padding. It does not change results.
  int batch = 32;
  LongText long_text = LongText::kError;
};

// The tasks that a model can do.
VKFORMER_API std::vector<TaskKind> model_tasks(const ModelInfo& info);

// What all tasks have.
class VKFORMER_API Task {
 public:
  Task(Task&&) noexcept;
  Task& operator=(Task&&) noexcept;
  ~Task();
  const ModelInfo& info() const;

 protected:
  friend struct HandleAccess;
  explicit Task(std::unique_ptr<TaskModel> impl);
  std::unique_ptr<TaskModel> impl_;
};

struct LabelScore {
  std::string label;
  double score = 0;  // probability
};
struct ClassifyInput {
  std::string text;
  std::optional<std::string> pair = std::nullopt;  // a second text, classified together with it
};

// A stretch of a text that a token classifier found: neighboring tokens of one class. B- and I-
// before class names keep stretches apart and are omitted; the class "O" is no entity. Or words
// that a GLiNER found.
struct Entity {
  std::string label;
  double score = 0;  // mean of its tokens' probabilities; of words their probability
  std::string text;
  TextRange range;
};

// Texts to labels with probabilities. These are a softmax, or a sigmoid per label where config.json
// says multi_label_classification or there is one label. A "regression" is handed out as it is.
class VKFORMER_API TextClassifier : public Task {
 public:
  using Task::Task;
  static Result<TextClassifier> load(const Device& device, const ModelSource& source,
                                     const TaskOptions& options = {});
  // Whether the model labels tokens: entities() instead of classify(). A GLiNER does not: its
  // ModelInfo::head is HeadKind::kEntities, for zero_shot_entities().
  bool finds_entities() const;
  // The `top` likeliest labels (0: all) of each text, best first.
  Result<std::vector<std::vector<LabelScore>>> classify(std::span<const ClassifyInput> inputs,
                                                        int top = 0);
  // The `labels` with probabilities for each text, best first, as zero-shot classification of
  // transformers. kUnsupported: no class of the model has a name that begins with "entail".
  Result<std::vector<std::vector<LabelScore>>> zero_shot(std::span<const std::string> texts,
                                                         std::span<const std::string> labels,
                                                         const ZeroShotOptions& options = {});
  // The entities of each text in text order.
  Result<std::vector<std::vector<Entity>>> entities(std::span<const std::string> texts);
  // The entities of each text with one of the `labels`, in text order, by a GLiNER. Where they
  // overlap, the likelier one is kept. A text without words has none.
  Result<std::vector<std::vector<Entity>>> zero_shot_entities(std::span<const std::string> texts,
                                                              std::span<const std::string> labels,
                                                              const EntityOptions& options = {});
};

// Pictures to labels with probabilities.
class VKFORMER_API PictureClassifier : public Task {
 public:
  using Task::Task;
  static Result<PictureClassifier> load(const Device& device, const ModelSource& source,
                                        const TaskOptions& options = {});
  // The `top` likeliest labels (0: all) of each picture, best first.
  Result<std::vector<std::vector<LabelScore>>> classify(std::span<const Picture> pictures,
                                                        int top = 5);
  // The `labels` of the caller, by a CLIP or a SigLIP.
  Result<std::vector<std::vector<LabelScore>>> zero_shot(std::span<const Picture> pictures,
                                                         std::span<const std::string> labels,
                                                         const ZeroShotOptions& options = {});
};

struct Question {
  std::string question;
  std::string context;  // where the answer is looked for
};
struct Answer {
  std::string text;  // as it stands in the context; empty: the question has no answer there
  double score = 0;
  TextRange range;  // in the context
};

struct AnswerOptions {
  // Tokens of an answer at most.
  int max_answer_tokens = 15;
  // Tokens of a window, question included; 0: 384 or the model's limit. A context that does not
  // fit is read in several.
  int window = 0;
  // Tokens by which windows overlap; -1: 128, or half a window where that is less.
  int overlap = -1;
  // Answers per question at most.
  int top = 1;
  // Whether the model may say that there is no answer: an empty text.
  bool allow_no_answer = false;
};

// Questions about a context to a stretch of that context.
class VKFORMER_API Answerer : public Task {
 public:
  using Task::Task;
  static Result<Answerer> load(const Device& device, const ModelSource& source,
                               const TaskOptions& options = {});
  // Per question the best answers, best first.
  Result<std::vector<std::vector<Answer>>> answer(std::span<const Question> questions,
                                                  const AnswerOptions& options = {});
};

struct MaskCandidate {
  TokenId token = 0;  // for a gap
  std::string token_text;
  double score = 0;
  std::string text;  // the whole text with the gap filled
};

// Texts with mask tokens to what may stand there.
class VKFORMER_API MaskFiller : public Task {
 public:
  using Task::Task;
  static Result<MaskFiller> load(const Device& device, const ModelSource& source,
                                 const TaskOptions& options = {});
  // What a gap is written as, such as "[MASK]".
  const std::string& mask_token() const;
  // Per text and gap the `top` likeliest tokens, best first.
  Result<std::vector<std::vector<std::vector<MaskCandidate>>>> fill(
      std::span<const std::string> texts, int top = 5);
};

struct GeneratedText {
  std::string text;          // without special tokens, and without the prompt
  std::vector<TokenId> ids;  // what followed the prompt or start token, end token included
  double score = 0;          // as Hypothesis::score
  std::vector<float> log_probabilities;  // of `ids`, as Hypothesis::log_probabilities
};

// A prompt that speaks of pictures, for a model that reads images (ModelInfo::reads_images).
struct PromptWithPictures {
  // Has a placeholder for each picture, in their order, as the model's chat template writes them:
  // TextGenerator::picture_placeholder. Without any, the pictures come before the text, as the
  // model's family has them.
  std::string text;
  std::vector<const Picture*> pictures;  // need to stay until the call returns
};

// Prompts to their continuations, or source texts to translations and summaries.
class VKFORMER_API TextGenerator : public Task {
 public:
  using Task::Task;
  static Result<TextGenerator> load(const Device& device, const ModelSource& source,
                                    const TaskOptions& options = {});
  // Per text its sequences, best first. Of a model that translates, an empty text gives none; as a
  // prompt it is an error.
  Result<std::vector<std::vector<GeneratedText>>> generate(std::span<const std::string> texts,
                                                           const TextOptions& options = {});
  // The same of prompts with pictures, which run one at a time. Where a text begins with the start
  // token, no special tokens are added. A picture becomes tokens of the prompt, and all of them
  // must fit.
  Result<std::vector<std::vector<GeneratedText>>> generate_with_pictures(
      std::span<const PromptWithPictures> prompts, const TextOptions& options = {});
  // What stands for a picture in a prompt, such as "<image>"; kUnsupported where the model reads
  // none.
  Result<std::string> picture_placeholder() const;
  // Per text the log-probabilities of the tokens that its continuation adds.
  Result<std::vector<std::vector<float>>> score(std::span<const std::string> texts,
                                                std::span<const std::string> continuations);
  // Of the last batch of the last generate().
  const GenerationCounters& counters() const;
};

// Pictures to descriptions.
class VKFORMER_API Captioner : public Task {
 public:
  using Task::Task;
  static Result<Captioner> load(const Device& device, const ModelSource& source,
                                const TaskOptions& options = {});
  // Of `options` the search settings count, and the prefix: every caption begins with it.
  Result<std::vector<std::string>> caption(std::span<const Picture> pictures,
                                           const TextOptions& options = {});
};

}  // namespace vkformer
