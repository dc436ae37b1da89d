// What every task holds: a model with its session, and what turns inputs into tensors and back.
#pragma once

#include <functional>
#include <optional>

#include "audio/log_mel.h"
#include "audio/utterance_mel.h"
#include "audio/waveform.h"
#include "image/document_pages.h"
#include "image/prompt_image_processor.h"
#include "session/session_state.h"
#include "tasks/ctc_vocabulary.h"
#include "tasks/letter_vocabulary.h"
#include "text/tokenizer_engine.h"
#include "vkformer/depth.h"
#include "vkformer/detect.h"
#include "vkformer/embed.h"
#include "vkformer/rerank.h"
#include "vkformer/segment.h"
#include "vkformer/speak.h"
#include "vkformer/transcribe.h"

namespace vkformer {

// What a language model is asked about a document, as tokens around it, and what it may answer.
struct JudgeTokens {
  std::vector<TokenId> before, after;
  TokenId yes = 0, no = 0;
};

struct TaskModel {
  size_t batch = 1;  // inputs that run together at most
  LongText long_text = LongText::kError;
  std::shared_ptr<const LoadedModel> model;
  std::unique_ptr<SessionState> session;
  std::unique_ptr<const TokenizerEngine> tokenizer;  // where texts go in or out
  std::optional<PictureProcessor> pictures;          // where the model reads pictures, but for
  std::optional<DocumentPages> pages;                // those that it describes as pages
  // Of a decoder that reads images; an error where its files describe no processor, for texts alone
  // need none.
  std::optional<Result<PromptImageProcessor>> images;
  std::optional<LogMel> sounds;  // where it reads features of audio
  // Where it reads features of whole recordings, and how many frames of them have one class.
  std::optional<UtteranceMel> utterances;
  int64_t frames_of_class = 1;
  std::optional<WaveformSettings> waveform;  // where it reads samples
  std::optional<CtcVocabulary> ctc;          // of a CTC head, where it has no tokenizer
  std::optional<LetterVocabulary> letters;   // where it speaks
  JsonConfig config;                         // config.json
  JsonConfig tokenizer_config;               // tokenizer_config.json, or without keys
  JsonConfig generation_config;              // generation_config.json, or without keys
  std::string mask_token;                    // of fill-mask
  std::optional<JudgeTokens> judge;          // of rerank with a language model
  int64_t sentence_tokens = 0;               // of embed: most tokens of a text, or 0
  JsonConfig sentence_config;                // config_sentence_transformers.json, or without keys
  // The tokens as grammars see them, made when the first one comes, and which of them end a text.
  std::optional<GrammarVocabulary> grammar_vocabulary;
  std::vector<TokenId> grammar_ends;

  const ModelFacts& facts() const { return model->family().facts(); }
  // Tokens that one input may have; `wanted` (0: no wish) can only lower it.
  int64_t token_limit(int64_t wanted = 0) const;
};

// Loads `source` for one task of model_tasks(). A model that cannot do it is kUnsupported, and the
// message says what it can do.
Result<std::unique_ptr<TaskModel>> load_task_model(const Device& device, const ModelSource& source,
                                                   TaskKind task, const TaskOptions& options);

// What turns prompts into tensors for a model that is loaded already: no session. `source` has its
// files.
Result<std::unique_ptr<TaskModel>> load_prompt_model(std::shared_ptr<const LoadedModel> model,
                                                     const ModelSource& source);

// What makes tensors of images and of audio, for load_task_model().
Result<PictureProcessor> load_task_pictures(const FileStore& files, const JsonConfig& config);
// Nothing where the files name another image processor.
Result<std::optional<DocumentPages>> load_task_pages(const FileStore& files);
Result<LogMel> load_task_sounds(const FileStore& files);
Result<UtteranceMel> load_task_utterances(const FileStore& files);
Result<WaveformSettings> load_task_waveform(const FileStore& files);
// The file `name`, or a configuration without keys.
Result<JsonConfig> optional_config(const FileStore& files, const std::string& name);
// A special token as text. Configurations have it as a string or as an object. It is of one
// configuration, or of tokenizer_config.json and else of special_tokens_map.json. Empty where none
// names it.
Result<std::string> special_token(const JsonConfig& config, const std::string& key);
Result<std::string> special_token(const TaskModel& task, const FileStore& files,
                                  const std::string& key);
// vocab.json with what tokenizer_config.json says of it.
Result<CtcVocabulary> load_ctc_vocabulary(const TaskModel& task, const FileStore& files);

// vocab.json of a model that speaks, with what tokenizer_config.json says of it.
Result<LetterVocabulary> load_letter_vocabulary(const TaskModel& task, const FileStore& files);

// The tasks of model_tasks() that a model can do.
std::vector<TaskKind> tasks_of(const ModelInfo& info);

// What to do with each batch: it gets the places of its inputs in the call.
using BatchRun = std::function<Status(std::span<const size_t>)>;

// Calls `run` for batches of at most `batch` inputs of near `lengths`, short ones first. Inputs of
// length 0 are in none.
Status run_batches(const std::vector<size_t>& lengths, size_t batch, const BatchRun& run);

// The tokens of text number `index` of a call, or of a pair. An error names the number, and the
// `limit` that a text of too many tokens exceeds.
Result<Encoding> encode_task_text(const TaskModel& task, std::span<const std::string_view> texts,
                                  size_t index, int64_t limit,
                                  SpecialTokens special_tokens = SpecialTokens::kInclude);
// The first text with the second, of a call over pairs; the `strategy` says which of them loses
// tokens where the task truncates.
Result<Encoding> encode_task_pair(const TaskModel& task, const std::string& first,
                                  const std::string& second, size_t index,
                                  TruncationStrategy strategy);
// The logits (classes) of every encoding.
Result<std::vector<std::vector<float>>> sequence_logits(TaskModel& task,
                                                        const std::vector<Encoding>& encodings);
// The same for every text.
Result<std::vector<Encoding>> encode_task_texts(const TaskModel& task,
                                                std::span<const std::string> texts, int64_t limit);

// The batch of a pass that hands out logits of the whole vocabulary for every token. It is as large
// as asked for, or what fits into a bounded memory.
size_t logits_batch(const TaskModel& task, const std::vector<size_t>& lengths);

std::vector<size_t> token_counts(const std::vector<Encoding>& encodings);

// input_ids, attention_mask and token_type_ids (B,S) of the encodings at `places`; S is rounded up,
// so that near lengths share a recording.
TensorMap token_inputs(const TaskModel& task, const std::vector<Encoding>& encodings,
                       std::span<const size_t> places);

// An output of a pass as floats, with its shape.
struct TaskOutput {
  std::vector<float> values;
  Shape shape;

  // The values of row `index` along the first axis.
  std::span<const float> row(size_t index) const;
};
Result<TaskOutput> task_output(const TensorMap& outputs, const std::string& name);

// e^(x - max) / sum, in double.
std::vector<double> softmax_of(std::span<const float> logits);
// The places of the `top` largest values (0: all), largest first, the first of equal ones first.
std::vector<size_t> largest(std::span<const double> values, size_t top);

// Labels of one row of logits, as TextClassifier describes it; best first.
Result<std::vector<LabelScore>> label_scores(const TaskModel& task, std::span<const float> logits,
                                             int top);
// "LABEL_3" where the model has no names.
std::string label_name(const TaskModel& task, size_t index);

// The code points `range` of a UTF-8 text.
std::string text_slice(const std::string& text, TextRange range);

// The settings of a run: the model's own, those of options.task, then `options`.
Result<GenerateOptions> generation_settings(const TaskModel& task, const TextOptions& options);
// New tokens that fit after a prompt of `prompt` tokens, where the caller asked for no number.
int fitting_tokens(const TaskModel& task, int tokens, size_t prompt);
// A hypothesis whose first `prompt` tokens were given.
Result<GeneratedText> generated_text(const TaskModel& task, const Hypothesis& found, size_t prompt);

// The tasks, as the public classes describe them.
Result<Tensor> embed_texts(TaskModel& task, std::span<const std::string> texts,
                           const EmbedOptions& options);
Result<std::vector<std::vector<LabelScore>>> classify_texts(TaskModel& task,
                                                            std::span<const ClassifyInput> inputs,
                                                            int top);
Result<std::vector<DepthMap>> estimate_depths(TaskModel& task, std::span<const Picture> pictures);
Result<std::vector<std::vector<PictureMask>>> segment_picture(TaskModel& task,
                                                              const Picture& picture,
                                                              std::span<const MaskPrompt> prompts,
                                                              const SegmentOptions& options);
Result<std::vector<std::vector<Detection>>> detect_objects(TaskModel& task,
                                                           std::span<const Picture> pictures,
                                                           const DetectOptions& options);
Result<std::vector<std::vector<LabelScore>>> zero_shot_labels(TaskModel& task,
                                                              std::span<const std::string> texts,
                                                              std::span<const std::string> labels,
                                                              const ZeroShotOptions& options);
// What a language model ranks documents by; an error names what the tokenizer lacks. `score` is the
// configuration of sentence-transformers' LogitScore, or without keys.
Result<JudgeTokens> read_judge(const TokenizerEngine& tokenizer, const JsonConfig& score);
Result<std::vector<std::vector<LabelScore>>> zero_shot_pictures(TaskModel& task,
                                                                std::span<const Picture> pictures,
                                                                std::span<const std::string> labels,
                                                                const ZeroShotOptions& options);
Result<std::vector<RankedDocument>> rank_documents(TaskModel& task, const std::string& query,
                                                   std::span<const std::string> documents,
                                                   const RerankOptions& options);
Result<std::vector<std::vector<Entity>>> find_entities(TaskModel& task,
                                                       std::span<const std::string> texts);
Result<std::vector<std::vector<Entity>>> zero_shot_entities_of(TaskModel& task,
                                                               std::span<const std::string> texts,
                                                               std::span<const std::string> labels,
                                                               const EntityOptions& options);
Result<std::vector<std::vector<LabelScore>>> classify_pictures(TaskModel& task,
                                                               std::span<const Picture> pictures,
                                                               int top);
Result<std::vector<std::vector<Answer>>> answer_questions(TaskModel& task,
                                                          std::span<const Question> questions,
                                                          const AnswerOptions& options);
Result<std::vector<std::vector<std::vector<MaskCandidate>>>> fill_masks(
    TaskModel& task, std::span<const std::string> texts, int top);
Result<std::vector<std::vector<GeneratedText>>> generate_texts(TaskModel& task,
                                                               std::span<const std::string> texts,
                                                               const TextOptions& options);
Result<std::vector<std::vector<GeneratedText>>> generate_from_pictures(
    TaskModel& task, std::span<const PromptWithPictures> prompts, const TextOptions& options);
Result<std::vector<std::vector<float>>> score_texts(TaskModel& task,
                                                    std::span<const std::string> texts,
                                                    std::span<const std::string> continuations);
enum class WordTimes : uint8_t { kNo, kYes };
Result<std::vector<Transcript>> transcribe_sounds(TaskModel& task, std::span<const Sound> sounds,
                                                  const TranscribeOptions& options,
                                                  WordTimes words);
Result<std::vector<Sound>> speak_texts(TaskModel& task, std::span<const std::string> texts,
                                       const SpeakOptions& options);
Result<std::vector<std::string>> caption_pictures(TaskModel& task,
                                                  std::span<const Picture> pictures,
                                                  const TextOptions& options);

}  // namespace vkformer
