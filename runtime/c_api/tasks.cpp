#include <optional>
#include <variant>

#include "base/message.h"
#include "c_api/enums.h"
#include "vkformer/depth.h"
#include "vkformer/detect.h"
#include "vkformer/embed.h"
#include "vkformer/image_prompt_reader.h"
#include "vkformer/rerank.h"
#include "vkformer/segment.h"
#include "vkformer/speak.h"
#include "vkformer/transcribe.h"

struct vkf_task {
  std::variant<vkformer::Embedder, vkformer::TextClassifier, vkformer::PictureClassifier,
               vkformer::Answerer, vkformer::MaskFiller, vkformer::TextGenerator,
               vkformer::Transcriber, vkformer::Captioner, vkformer::Reranker,
               vkformer::ObjectDetector, vkformer::Speaker, vkformer::DepthEstimator,
               vkformer::Segmenter>
      task;
  std::string placeholder;  // of a generator whose model reads images
};

struct vkf_image_prompts {
  vkformer::ImagePromptReader reader;
};

struct vkf_findings {
  // One finding with its own texts.
  struct Finding {
    int gap = 0;
    std::optional<std::string> label;
    std::optional<std::string> text;
    double score = 0;
    vkformer::TextRange range;
    vkformer::TokenId token = 0;
    std::vector<vkformer::TokenId> ids;
    size_t index = 0;
    std::array<double, 4> box = {};
    double begin_seconds = 0;
    double end_seconds = 0;
  };

  std::vector<std::vector<Finding>> rows;
};

namespace vkformer {
namespace {

using TaskHandle = std::unique_ptr<vkf_task>;
using Finding = vkf_findings::Finding;
using FindingsHandle = std::unique_ptr<vkf_findings>;

template <class T>
TaskHandle load(const Device& device, const ModelSource& source, const TaskOptions& options) {
  T made = take(T::load(device, source, options));
  return handle(vkf_task{std::move(made), ""});
}

TaskHandle load_generator(const Device& device, const ModelSource& source,
                          const TaskOptions& options) {
  TaskHandle made = load<TextGenerator>(device, source, options);
  const Result<std::string> found = std::get<TextGenerator>(made->task).picture_placeholder();
  if (found) made->placeholder = *found;
  return made;
}

// A classifier of what its model reads: texts, or else pictures.
TaskHandle load_classifier(const Device& device, const ModelSource& source,
                           const TaskOptions& options) {
  Result<TextClassifier> texts = TextClassifier::load(device, source, options);
  if (texts) return handle(vkf_task{std::move(*texts), ""});
  if (texts.error().code == ErrorCode::kUnsupported) {
    Result<PictureClassifier> pictures = PictureClassifier::load(device, source, options);
    if (pictures) return handle(vkf_task{std::move(*pictures), ""});
  }
  refuse(texts.error());
}

TaskOptions task_options(const vkf_task_options* options) {
  const vkf_task_options given = read_struct(options, "task options");
  TaskOptions made;
  made.model = model_options(given.model);
  made.session = session_options(given.session);
  if (given.batch != 0) made.batch = given.batch;
  if (given.truncate != 0) made.long_text = LongText::kTruncate;
  return made;
}

TaskHandle load_task(const Device& device, const ModelSource& source, const char* name,
                     const vkf_task_options* given) {
  const TaskOptions options = task_options(given);
  switch (take(choice_from_name<TaskKind>(name))) {
    case TaskKind::kEmbed:
      return load<Embedder>(device, source, options);
    case TaskKind::kClassify:
      return load_classifier(device, source, options);
    case TaskKind::kAnswer:
      return load<Answerer>(device, source, options);
    case TaskKind::kFillMask:
      return load<MaskFiller>(device, source, options);
    case TaskKind::kGenerate:
      return load_generator(device, source, options);
    case TaskKind::kTranscribe:
      return load<Transcriber>(device, source, options);
    case TaskKind::kCaption:
      return load<Captioner>(device, source, options);
    case TaskKind::kRerank:
      return load<Reranker>(device, source, options);
    case TaskKind::kDetect:
      return load<ObjectDetector>(device, source, options);
    case TaskKind::kSpeak:
      return load<Speaker>(device, source, options);
    case TaskKind::kDepth:
      return load<DepthEstimator>(device, source, options);
    case TaskKind::kSegment:
      return load<Segmenter>(device, source, options);
  }
  refuse(internal_error("[task] has a kind that no loader is for."));
}

SpeakOptions speak_options(const vkf_speak_options& given) {
  constexpr uint32_t kBits =
      VKF_SPEAK_RATE | VKF_SPEAK_NOISE | VKF_SPEAK_DURATION_NOISE | VKF_SPEAK_SPEAKER;
  check_bits(given.set, kBits, "set");
  SpeakOptions made;
  if ((given.set & VKF_SPEAK_RATE) != 0) made.speaking_rate = given.speaking_rate;
  if ((given.set & VKF_SPEAK_NOISE) != 0) made.noise = given.noise;
  if ((given.set & VKF_SPEAK_DURATION_NOISE) != 0) made.duration_noise = given.duration_noise;
  if ((given.set & VKF_SPEAK_SPEAKER) != 0) made.speaker = given.speaker;
  made.seed = given.seed;
  made.phonemes = given.phonemes != 0;
  return made;
}

// The task as the C++ class that has the call, or an error that says so.
template <class T>
T* task_as(vkf_task* task, const char* name) {
  need(task, "task");
  if (T* found = std::get_if<T>(&task->task)) return found;
  refuse(invalid_argument(
      message({"[task] this one was loaded for something else; ", name, " can do this."})));
}

void set_text_choice(const vkf_choice_options& c, TextOptions& made) {
  const auto set = [&](uint32_t bit, auto& to, auto value) {
    if ((c.set & bit) != 0) to = value;
  };
  set(VKF_CHOICE_TEMPERATURE, made.temperature, c.temperature);
  set(VKF_CHOICE_TOP_K, made.top_k, c.top_k);
  set(VKF_CHOICE_TOP_P, made.top_p, c.top_p);
  set(VKF_CHOICE_MIN_P, made.min_p, c.min_p);
  set(VKF_CHOICE_TYPICAL_P, made.typical_p, c.typical_p);
  set(VKF_CHOICE_SEED, made.seed, c.seed);
  set(VKF_CHOICE_REPETITION, made.repetition_penalty, c.repetition_penalty);
  set(VKF_CHOICE_PRESENCE, made.presence_penalty, c.presence_penalty);
  set(VKF_CHOICE_FREQUENCY, made.frequency_penalty, c.frequency_penalty);
  set(VKF_CHOICE_NO_REPEAT, made.no_repeat_ngram, c.no_repeat_ngram);
  set(VKF_CHOICE_BEAM_GROUPS, made.beam_groups, c.beam_groups);
  set(VKF_CHOICE_DIVERSITY, made.diversity, c.diversity);
  set(VKF_CHOICE_CONTRASTIVE, made.contrastive_tokens, c.contrastive_tokens);
  set(VKF_CHOICE_CONTRAST, made.contrast, c.contrast);
  if ((c.set & VKF_CHOICE_SAMPLE) == 0) return;
  made.choice = c.sample != 0 ? TokenChoice::kSampled : TokenChoice::kBest;
}

TextOptions text_options(const vkf_text_options* options) {
  constexpr uint32_t kBits = 2 * VKF_SET_EARLY_STOPPING - 1;
  const vkf_text_options given = read_struct(options, "text options");
  check_bits(given.set, kBits | VKF_SET_CONTEXT | VKF_SET_SINKS, "set");
  const auto has = [&](uint32_t bit) { return (given.set & bit) != 0; };
  TextOptions made;
  made.prefix = text_or(given.prefix, "");
  made.task = text_or(given.task, "");
  made.source_language = text_or(given.source_language, "");
  made.target_language = text_or(given.target_language, "");
  if (has(VKF_SET_BEAMS)) made.beams = given.beams;
  if (has(VKF_SET_MAX_NEW_TOKENS)) made.max_new_tokens = given.max_new_tokens;
  if (has(VKF_SET_MIN_NEW_TOKENS)) made.min_new_tokens = given.min_new_tokens;
  if (has(VKF_SET_RETURN_SEQUENCES)) made.return_sequences = given.return_sequences;
  if (has(VKF_SET_LENGTH_PENALTY)) made.length_penalty = given.length_penalty;
  if (has(VKF_SET_EARLY_STOPPING)) {
    made.early_stopping = take(choice_from_name<EarlyStopping>(text_or(given.early_stopping, "")));
  }
  if (has(VKF_SET_CONTEXT)) made.context = given.context;
  if (has(VKF_SET_SINKS)) made.sinks = given.sinks;
  if (given.has_special_tokens != 0) made.special_tokens = SpecialTokens::kExclude;
  set_text_choice(choice_options(given.choice), made);
  made.stop = read_texts(given.stop, given.stop_count, "stop");
  made.bad_words = read_texts(given.bad_words, given.bad_word_count, "bad_words");
  if (given.grammar != nullptr) made.grammar = given.grammar->grammar;
  if (given.on_text == nullptr) return made;
  made.on_text = [on_text = given.on_text, user = given.on_text_user](const TextPiece& piece) {
    const std::string text(piece.text);
    return read_verdict(on_text(user, piece.input, piece.sequence, text.c_str()));
  };
  return made;
}

TranscribeOptions transcribe_options(const vkf_transcribe_options* options) {
  const vkf_transcribe_options given = read_struct(options, "transcribe options");
  check_bits(given.set, VKF_SET_BEAMS | VKF_SET_MAX_NEW_TOKENS, "set");
  TranscribeOptions made;
  made.language = text_or(given.language, "");
  if (const std::string task = text_or(given.task, ""); !task.empty()) {
    made.task = take(choice_from_name<SpeechTask>(task));
  }
  if ((given.set & VKF_SET_BEAMS) != 0) made.beams = given.beams;
  if ((given.set & VKF_SET_MAX_NEW_TOKENS) != 0) made.max_new_tokens = given.max_new_tokens;
  return made;
}

AnswerOptions answer_options(const vkf_answer_options* options) {
  const vkf_answer_options given = read_struct(options, "answer options");
  check_bits(given.flags, VKF_ANSWER_OVERLAP | VKF_ANSWER_NONE_POSSIBLE, "flags");
  AnswerOptions made;
  if (given.max_answer_tokens != 0) made.max_answer_tokens = given.max_answer_tokens;
  made.window = given.window;
  if ((given.flags & VKF_ANSWER_OVERLAP) != 0) made.overlap = given.overlap;
  if (given.top != 0) made.top = given.top;
  made.allow_no_answer = (given.flags & VKF_ANSWER_NONE_POSSIBLE) != 0;
  return made;
}

Finding finding_of(LabelScore& from) {
  Finding made;
  made.label = std::move(from.label);
  made.score = from.score;
  return made;
}

Finding finding_of(Entity& from) {
  Finding made;
  made.label = std::move(from.label);
  made.text = std::move(from.text);
  made.score = from.score;
  made.range = from.range;
  return made;
}

Finding finding_of(Answer& from) {
  Finding made;
  made.text = std::move(from.text);
  made.score = from.score;
  made.range = from.range;
  return made;
}

Finding finding_of(GeneratedText& from) {
  Finding made;
  made.text = std::move(from.text);
  made.score = from.score;
  made.ids = std::move(from.ids);
  return made;
}

Finding finding_of(MaskCandidate& from) {
  Finding made;
  made.label = std::move(from.token_text);
  made.text = std::move(from.text);
  made.score = from.score;
  made.token = from.token;
  return made;
}

Finding finding_of(Detection& from) {
  Finding made;
  made.label = std::move(from.label);
  made.score = from.score;
  made.box = {from.left, from.top, from.right, from.bottom};
  return made;
}

Finding finding_of(SpokenWord& from) {
  Finding made;
  made.text = std::move(from.text);
  made.begin_seconds = from.begin;
  made.end_seconds = from.end;
  return made;
}

template <class T>
FindingsHandle findings_of(Result<std::vector<std::vector<T>>> made) {
  std::vector<std::vector<T>> rows = take(std::move(made));
  auto self = std::make_unique<vkf_findings>();
  for (std::vector<T>& row : rows) {
    std::vector<Finding>& out = self->rows.emplace_back();
    for (T& item : row) out.push_back(finding_of(item));
  }
  return self;
}

// One text an input.
FindingsHandle findings_of(Result<std::vector<std::string>> made) {
  std::vector<std::string> texts = take(std::move(made));
  auto self = std::make_unique<vkf_findings>();
  for (std::string& text : texts) self->rows.emplace_back(1).front().text = std::move(text);
  return self;
}

// A text and its words.
FindingsHandle findings_of(Result<std::vector<Transcript>> made) {
  std::vector<Transcript> transcripts = take(std::move(made));
  auto self = std::make_unique<vkf_findings>();
  for (Transcript& transcript : transcripts) {
    std::vector<Finding>& out = self->rows.emplace_back(1);
    out.front().text = std::move(transcript.text);
    for (SpokenWord& word : transcript.words) out.push_back(finding_of(word));
  }
  return self;
}

// Gaps of a text one after the other.
FindingsHandle findings_of(std::vector<std::vector<std::vector<MaskCandidate>>> made) {
  auto self = std::make_unique<vkf_findings>();
  for (auto& gaps : made) {
    std::vector<Finding>& out = self->rows.emplace_back();
    for (size_t gap = 0; gap < gaps.size(); ++gap) {
      for (MaskCandidate& candidate : gaps[gap]) {
        out.push_back(finding_of(candidate));
        out.back().gap = static_cast<int>(gap);
      }
    }
  }
  return self;
}

// Labels that the caller names, and what goes with them.
struct NamedLabels {
  std::vector<std::string> labels;
  ZeroShotOptions options;
};

NamedLabels read_labels(const vkf_zero_shot_options* options) {
  const vkf_zero_shot_options given = read_needed(options, "zero-shot options");
  NamedLabels read;
  read.labels = read_texts(given.labels, given.label_count, "labels");
  read.options.hypothesis = text_or(given.hypothesis, "");
  read.options.multi_label = given.multi_label != 0;
  return read;
}

std::vector<MaskPrompt> mask_prompts(const vkf_mask_prompt* prompts, size_t count) {
  if (count != 0) need(prompts, "prompts");
  std::vector<MaskPrompt> read(count);
  for (size_t i = 0; i < count; ++i) {
    const vkf_mask_prompt& from = prompts[i];
    if (from.point_count != 0) need(from.points, "points");
    for (size_t k = 0; k < from.point_count; ++k) {
      const auto side =
          from.points[k].outside != 0 ? PromptPoint::Side::kOutside : PromptPoint::Side::kInside;
      read[i].points.push_back({from.points[k].x, from.points[k].y, side});
    }
    if (from.box != nullptr) read[i].box = {from.box[0], from.box[1], from.box[2], from.box[3]};
  }
  return read;
}

// Precondition: there is a prompt, and all have as many masks of one size.
TensorMap mask_tensors(const std::vector<std::vector<PictureMask>>& found) {
  const auto prompts = static_cast<int64_t>(found.size());
  const auto masks = static_cast<int64_t>(found[0].size());
  TensorMap made;
  Tensor& all = made["masks"];
  all = Tensor::zeros(DType::kU8, {prompts, masks, found[0][0].height, found[0][0].width});
  std::vector<float> scores;
  std::byte* to = all.bytes.data();
  for (const std::vector<PictureMask>& of_prompt : found) {
    for (const PictureMask& mask : of_prompt) {
      for (const uint8_t inside : mask.inside) *to++ = std::byte{inside};
      scores.push_back(static_cast<float>(mask.score));
    }
  }
  made["scores"] = Tensor::from_floats({prompts, masks}, scores);
  return made;
}

PromptWithPictures prompt_with_pictures(const vkf_prompt& given) {
  need(given.text, "text");
  PromptWithPictures prompt{given.text, {}};
  if (given.picture_count != 0) need(given.pictures, "pictures");
  for (size_t i = 0; i < given.picture_count; ++i) {
    need(given.pictures[i], "picture");
    prompt.pictures.push_back(&given.pictures[i]->picture);
  }
  return prompt;
}

}  // namespace
}  // namespace vkformer

using namespace vkformer;

vkf_status vkf_task_load(const vkf_device* device, const char* directory, const char* name,
                         const vkf_task_options* options, vkf_task** task, vkf_error* error) {
  return make_handle(task, error, [&] {
    need_all({{device, "device"}, {directory, "directory"}, {name, "name"}});
    return load_task(device->device, ModelSource::directory(directory), name, options);
  });
}

vkf_status vkf_task_load_from(const vkf_device* device, const vkf_source* source, const char* name,
                              const vkf_task_options* options, vkf_task** task, vkf_error* error) {
  return make_handle(task, error, [&] {
    need_all({{device, "device"}, {source, "source"}, {name, "name"}});
    return load_task(device->device, source->source, name, options);
  });
}

void vkf_task_free(vkf_task* task) {
  delete task;
}

vkf_status vkf_task_describe(const vkf_task* task, vkf_description** description,
                             vkf_error* error) {
  return make_handle(description, error, [&] {
    need(task, "task");
    return std::visit([](const auto& which) { return describe(which.info()); }, task->task);
  });
}

const char* vkf_task_mask_token(const vkf_task* task) {
  const auto* filler = task != nullptr ? std::get_if<MaskFiller>(&task->task) : nullptr;
  return filler != nullptr ? filler->mask_token().c_str() : nullptr;
}

int vkf_task_finds_entities(const vkf_task* task) {
  const auto* classifier = task != nullptr ? std::get_if<TextClassifier>(&task->task) : nullptr;
  return classifier != nullptr && classifier->finds_entities() ? 1 : 0;
}

vkf_status vkf_task_embed(vkf_task* task, const char* const* texts, size_t count,
                          const vkf_embed_options* options, vkf_tensors** tensors,
                          vkf_error* error) {
  return make_handle(tensors, error, [&] {
    Embedder* embedder = task_as<Embedder>(task, "one loaded as 'embed'");
    const std::vector<std::string> copies = read_texts(texts, count, "texts");
    const vkf_embed_options given = read_struct(options, "embed options");
    EmbedOptions read;
    read.pooling = value_of<Pooling>(given.pooling, "pooling");
    if (given.unit_length != 0) read.length = EmbedOptions::Length::kUnit;
    if (given.prompt != nullptr) read.prompt = given.prompt;
    if (given.prompt_name != nullptr) read.prompt_name = given.prompt_name;
    read.dimensions = given.dimensions;
    read.values = value_of<VectorValues>(given.values, "values");
    Tensor made = take(embedder->embed(copies, read));
    TensorMap map;
    map["embeddings"] = std::move(made);
    return tensors_of(std::move(map));
  });
}

vkf_status vkf_task_classify(vkf_task* task, const vkf_text_pair* texts, size_t count, int32_t top,
                             vkf_findings** findings, vkf_error* error) {
  return make_handle(findings, error, [&] {
    TextClassifier* classifier =
        task_as<TextClassifier>(task, "one loaded as 'classify' from a model of texts");
    if (count != 0) need(texts, "texts");
    std::vector<ClassifyInput> inputs(count);
    for (size_t i = 0; i < count; ++i) {
      need(texts[i].text, "text");
      inputs[i].text = texts[i].text;
      if (texts[i].pair != nullptr) inputs[i].pair = texts[i].pair;
    }
    return findings_of(classifier->classify(inputs, top));
  });
}

vkf_status vkf_task_zero_shot(vkf_task* task, const char* const* texts, size_t count,
                              const vkf_zero_shot_options* options, vkf_findings** findings,
                              vkf_error* error) {
  return make_handle(findings, error, [&] {
    TextClassifier* classifier =
        task_as<TextClassifier>(task, "one loaded as 'classify' from a model of texts");
    const std::vector<std::string> inputs = read_texts(texts, count, "texts");
    const NamedLabels given = read_labels(options);
    return findings_of(classifier->zero_shot(inputs, given.labels, given.options));
  });
}

vkf_status vkf_task_zero_shot_entities(vkf_task* task, const char* const* texts, size_t count,
                                       const vkf_entity_options* options, vkf_findings** findings,
                                       vkf_error* error) {
  return make_handle(findings, error, [&] {
    TextClassifier* classifier =
        task_as<TextClassifier>(task, "one loaded as 'classify' from a model of texts");
    const std::vector<std::string> inputs = read_texts(texts, count, "texts");
    const vkf_entity_options given = read_needed(options, "entity options");
    const std::vector<std::string> labels = read_texts(given.labels, given.label_count, "labels");
    check_bits(given.flags, VKF_ENTITY_NESTED | VKF_ENTITY_MULTI_LABEL, "flags");
    EntityOptions read;
    read.nested = (given.flags & VKF_ENTITY_NESTED) != 0;
    read.multi_label = (given.flags & VKF_ENTITY_MULTI_LABEL) != 0;
    if (given.threshold != 0) read.threshold = given.threshold;
    return findings_of(classifier->zero_shot_entities(inputs, labels, read));
  });
}

vkf_status vkf_task_zero_shot_pictures(vkf_task* task, const vkf_picture* const* pictures,
                                       size_t count, const vkf_zero_shot_options* options,
                                       vkf_findings** findings, vkf_error* error) {
  return make_handle(findings, error, [&] {
    PictureClassifier* classifier =
        task_as<PictureClassifier>(task, "one loaded as 'classify' from a model of pictures");
    const std::vector<Picture> copies = copy_pictures(pictures, count);
    const NamedLabels given = read_labels(options);
    return findings_of(classifier->zero_shot(copies, given.labels, given.options));
  });
}

vkf_status vkf_task_rerank(vkf_task* task, const char* query, const char* const* documents,
                           size_t count, const vkf_rerank_options* options, vkf_findings** findings,
                           vkf_error* error) {
  return make_handle(findings, error, [&] {
    Reranker* reranker = task_as<Reranker>(task, "one loaded as 'rerank'");
    need(query, "query");
    const std::vector<std::string> copies = read_texts(documents, count, "documents");
    const vkf_rerank_options given = read_struct(options, "rerank options");
    RerankOptions read;
    read.top = given.top;
    read.score = value_of<RerankOptions::Score>(given.score, "score");
    if (given.instruction != nullptr) read.instruction = given.instruction;
    auto self = std::make_unique<vkf_findings>();
    std::vector<Finding>& out = self->rows.emplace_back();
    for (const RankedDocument& one : take(reranker->rank(query, copies, read))) {
      Finding& finding = out.emplace_back();
      finding.index = one.index;
      finding.score = one.score;
    }
    return self;
  });
}

vkf_status vkf_task_classify_pictures(vkf_task* task, const vkf_picture* const* pictures,
                                      size_t count, int32_t top, vkf_findings** findings,
                                      vkf_error* error) {
  return make_handle(findings, error, [&] {
    PictureClassifier* classifier =
        task_as<PictureClassifier>(task, "one loaded as 'classify' from a model of pictures");
    const std::vector<Picture> copies = copy_pictures(pictures, count);
    return findings_of(classifier->classify(copies, top));
  });
}

vkf_status vkf_task_find_entities(vkf_task* task, const char* const* texts, size_t count,
                                  vkf_findings** findings, vkf_error* error) {
  return make_handle(findings, error, [&] {
    TextClassifier* classifier =
        task_as<TextClassifier>(task, "one loaded as 'classify' from a model of texts");
    const std::vector<std::string> copies = read_texts(texts, count, "texts");
    return findings_of(classifier->entities(copies));
  });
}

vkf_status vkf_task_answer(vkf_task* task, const vkf_question* questions, size_t count,
                           const vkf_answer_options* options, vkf_findings** findings,
                           vkf_error* error) {
  return make_handle(findings, error, [&] {
    Answerer* answerer = task_as<Answerer>(task, "one loaded as 'answer'");
    if (count != 0) need(questions, "questions");
    std::vector<Question> inputs(count);
    for (size_t i = 0; i < count; ++i) {
      need_all({{questions[i].question, "question"}, {questions[i].context, "context"}});
      inputs[i] = {questions[i].question, questions[i].context};
    }
    const AnswerOptions read = answer_options(options);
    return findings_of(answerer->answer(inputs, read));
  });
}

vkf_status vkf_task_fill(vkf_task* task, const char* const* texts, size_t count, int32_t top,
                         vkf_findings** findings, vkf_error* error) {
  return make_handle(findings, error, [&] {
    MaskFiller* filler = task_as<MaskFiller>(task, "one loaded as 'fill-mask'");
    const std::vector<std::string> copies = read_texts(texts, count, "texts");
    auto made = take(filler->fill(copies, top != 0 ? top : 5));
    return findings_of(std::move(made));
  });
}

vkf_status vkf_task_generate(vkf_task* task, const char* const* texts, size_t count,
                             const vkf_text_options* options, vkf_findings** findings,
                             vkf_error* error) {
  return make_handle(findings, error, [&] {
    TextGenerator* generator = task_as<TextGenerator>(task, "one loaded as 'generate'");
    const std::vector<std::string> copies = read_texts(texts, count, "texts");
    const TextOptions read = text_options(options);
    return findings_of(generator->generate(copies, read));
  });
}

vkf_status vkf_task_generate_with_pictures(vkf_task* task, const vkf_prompt* prompts, size_t count,
                                           const vkf_text_options* options, vkf_findings** findings,
                                           vkf_error* error) {
  return make_handle(findings, error, [&] {
    TextGenerator* generator = task_as<TextGenerator>(task, "one loaded as 'generate'");
    if (count != 0) need(prompts, "prompts");
    std::vector<PromptWithPictures> read;
    for (size_t i = 0; i < count; ++i) read.push_back(prompt_with_pictures(prompts[i]));
    const TextOptions settings = text_options(options);
    return findings_of(generator->generate_with_pictures(read, settings));
  });
}

const char* vkf_task_picture_placeholder(const vkf_task* task) {
  return task != nullptr && !task->placeholder.empty() ? task->placeholder.c_str() : nullptr;
}

vkf_status vkf_task_transcribe(vkf_task* task, const vkf_sound* const* sounds, size_t count,
                               const vkf_transcribe_options* options, vkf_findings** findings,
                               vkf_error* error) {
  return make_handle(findings, error, [&] {
    Transcriber* transcriber = task_as<Transcriber>(task, "one loaded as 'transcribe'");
    const std::vector<Sound> copies = copy_sounds(sounds, count);
    const TranscribeOptions read = transcribe_options(options);
    const bool words = options != nullptr && read_struct(options, "transcribe options").words != 0;
    return words ? findings_of(transcriber->transcribe_words(copies, read))
                 : findings_of(transcriber->transcribe(copies, read));
  });
}

vkf_status vkf_task_caption(vkf_task* task, const vkf_picture* const* pictures, size_t count,
                            const vkf_text_options* options, vkf_findings** findings,
                            vkf_error* error) {
  return make_handle(findings, error, [&] {
    Captioner* captioner = task_as<Captioner>(task, "one loaded as 'caption'");
    const std::vector<Picture> copies = copy_pictures(pictures, count);
    const TextOptions read = text_options(options);
    return findings_of(captioner->caption(copies, read));
  });
}

vkf_status vkf_task_speak(vkf_task* task, const char* text, const vkf_speak_options* options,
                          vkf_sound** sound, vkf_error* error) {
  return make_handle(sound, error, [&] {
    Speaker* speaker = task_as<Speaker>(task, "one loaded as 'speak'");
    need(text, "text");
    const vkf_speak_options given = read_struct(options, "speak options");
    const std::string copy = text;
    std::vector<Sound> made = take(speaker->speak({&copy, 1}, speak_options(given)));
    return handle(vkf_sound{std::move(made[0])});
  });
}

vkf_status vkf_task_detect(vkf_task* task, const vkf_picture* const* pictures, size_t count,
                           double threshold, int32_t top, vkf_findings** findings,
                           vkf_error* error) {
  return make_handle(findings, error, [&] {
    ObjectDetector* detector = task_as<ObjectDetector>(task, "one loaded as 'detect'");
    const std::vector<Picture> copies = copy_pictures(pictures, count);
    return findings_of(detector->detect(copies, {.threshold = threshold, .top = top}));
  });
}

vkf_status vkf_task_depth(vkf_task* task, const vkf_picture* picture, vkf_tensors** tensors,
                          vkf_error* error) {
  return make_handle(tensors, error, [&] {
    DepthEstimator* estimator = task_as<DepthEstimator>(task, "one loaded as 'depth'");
    const std::vector<Picture> copies = copy_pictures(&picture, 1);
    const std::vector<DepthMap> maps = take(estimator->estimate(copies));
    const DepthMap& map = maps.front();
    TensorMap made;
    made["depth"] = Tensor::from_floats({map.height, map.width}, map.values);
    return tensors_of(std::move(made));
  });
}

vkf_status vkf_task_segment(vkf_task* task, const vkf_picture* picture,
                            const vkf_mask_prompt* prompts, size_t count, int32_t top,
                            vkf_tensors** tensors, vkf_error* error) {
  return make_handle(tensors, error, [&] {
    Segmenter* segmenter = task_as<Segmenter>(task, "one loaded as 'segment'");
    const std::vector<Picture> copies = copy_pictures(&picture, 1);
    const std::vector<MaskPrompt> wanted = mask_prompts(prompts, count);
    const auto found = take(segmenter->segment(copies.front(), wanted, {.top = top}));
    return tensors_of(mask_tensors(found));
  });
}

vkf_status vkf_image_prompts_load(const vkf_model* model, const vkf_source* source,
                                  vkf_image_prompts** reader, vkf_error* error) {
  return make_handle(reader, error, [&] {
    need_all({{model, "model"}, {source, "source"}});
    return handle(vkf_image_prompts{take(ImagePromptReader::load(model->model, source->source))});
  });
}

void vkf_image_prompts_free(vkf_image_prompts* reader) {
  delete reader;
}

const char* vkf_image_prompts_placeholder(const vkf_image_prompts* reader) {
  return reader != nullptr ? reader->reader.placeholder().c_str() : nullptr;
}

vkf_status vkf_image_prompts_read(const vkf_image_prompts* reader, const vkf_prompt* prompt,
                                  vkf_tensors** tensors, vkf_error* error) {
  return make_handle(tensors, error, [&] {
    need_all({{reader, "reader"}, {prompt, "prompt"}});
    ImagePromptInputs made = take(reader->reader.read(prompt_with_pictures(*prompt)));
    const auto tokens = static_cast<int64_t>(made.ids.size());
    // A description often begins with nothing.
    if (tokens > 0) made.inputs["input_ids"] = Tensor::from_ints({1, tokens}, made.ids);
    return tensors_of(std::move(made.inputs));
  });
}

size_t vkf_findings_inputs(const vkf_findings* findings) {
  return findings != nullptr ? findings->rows.size() : 0;
}

size_t vkf_findings_count(const vkf_findings* findings, size_t input) {
  if (findings == nullptr || input >= findings->rows.size()) return 0;
  return findings->rows[input].size();
}

vkf_status vkf_findings_get(const vkf_findings* findings, size_t input, size_t index,
                            vkf_finding* finding, vkf_error* error) {
  return guard(error, [&] {
    need(findings, "findings");
    check_index(input, findings->rows.size(), "input");
    check_index(index, findings->rows[input].size(), "finding");
    const Finding& from = findings->rows[input][index];
    vkf_finding c{};
    c.gap = from.gap;
    c.label = from.label ? from.label->c_str() : nullptr;
    c.text = from.text ? from.text->c_str() : nullptr;
    c.score = from.score;
    c.begin = from.range.begin;
    c.end = from.range.end;
    c.token = from.token;
    c.ids = {from.ids.data(), from.ids.size()};
    c.index = from.index;
    std::copy(from.box.begin(), from.box.end(), c.box);
    c.begin_seconds = from.begin_seconds;
    c.end_seconds = from.end_seconds;
    return write_struct(finding, c, "finding");
  });
}

void vkf_findings_free(vkf_findings* findings) {
  delete findings;
}
