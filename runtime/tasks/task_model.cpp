#include "tasks/task_model.h"

#include "base/check.h"
#include "base/handle_access.h"
#include "base/message.h"
#include "session/model_loading.h"

namespace vkformer {
namespace {

Result<std::unique_ptr<const TokenizerEngine>> load_tokenizer(const FileStore& files) {
  const std::string name = "tokenizer.json";
  VKF_ASSIGN(const MappedFile file, files.open(name));
  const auto bytes = file.bytes();
  return TokenizerEngine::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                files.label_of(name));
}

Status check_options(const TaskOptions& options) {
  if (options.batch >= 1) return {};
  return invalid_argument(
      message({"[batch] is ", options.batch, ", but at least one input must run at a time"}));
}

Status check_task(const ModelInfo& info, TaskKind task) {
  std::string known;
  for (const TaskKind possible : tasks_of(info)) {
    if (possible == task) return {};
    known += std::string(known.empty() ? "" : ", ") + choice_name(possible);
  }
  return unsupported(message(
      {"[", choice_name(task), "] is nothing that a ", info.architecture, " can do (",
       choice_name(info.kind), " of ", choice_name(info.source), ", head: ", choice_name(info.head),
       "); ", (known.empty() ? "run its passes with Session::run" : "it can " + known)}));
}

Result<std::string> find_mask_token(const TaskModel& task, const FileStore& files) {
  VKF_ASSIGN(const std::string named, special_token(task, files, "mask_token"));
  if (!named.empty()) {
    if (task.tokenizer->token_to_id(named)) return named;
    return invalid_file(message({"[mask_token] in the configuration of ", files.label(), " is '",
                                 named, "', which the tokenizer does not have"}));
  }
  for (const char* usual : {"[MASK]", "<mask>"}) {
    if (task.tokenizer->token_to_id(usual)) return std::string(usual);
  }
  return unsupported(
      message({"[mask_token] is in neither tokenizer_config.json nor the tokenizer of ",
               files.label(), "; name it in tokenizer_config.json"}));
}

// A decoder of texts, which can be asked about a document. It is none of tasks_of(): whether it
// knows what to answer is a matter of its training.
bool is_language_model(const ModelInfo& info) {
  return info.kind == ModelKind::kDecoder && info.source == SourceKind::kTokens &&
         info.head == HeadKind::kLanguage;
}

Status load_processors(TaskModel& task, const FileStore& files) {
  const ModelFacts& facts = task.facts();
  const bool writes = facts.kind != ModelKind::kEncoder && facts.head == HeadKind::kLanguage;
  const bool compares = facts.head == HeadKind::kSimilarity;
  if (facts.head == HeadKind::kSpeech) {
    VKF_ASSIGN(LetterVocabulary made, load_letter_vocabulary(task, files));
    task.letters.emplace(std::move(made));
    return {};
  }
  if (facts.source == SourceKind::kTokens || writes || compares) {
    VKF_ASSIGN(task.tokenizer, load_tokenizer(files));
  }
  if (facts.source == SourceKind::kPictures && facts.kind == ModelKind::kEncoderDecoder) {
    VKF_ASSIGN(task.pages, load_task_pages(files));
  }
  if ((facts.source == SourceKind::kPictures && !task.pages) || compares) {
    VKF_ASSIGN(task.pictures, load_task_pictures(files, task.config));
  }
  if (facts.images.kind != ImagePromptFacts::Kind::kNone) {
    VKF_ASSIGN(const std::string type, task.config.get_string_or("model_type", ""));
    task.images = PromptImageProcessor::load(files, type);
  }
  if (facts.source == SourceKind::kFeatures && facts.head == HeadKind::kCtc) {
    VKF_ASSIGN(UtteranceMel made, load_task_utterances(files));
    task.utterances.emplace(std::move(made));
    VKF_ASSIGN(task.frames_of_class,
               task.config.object("encoder_config").get_int_or("subsampling_factor", 8));
  } else if (facts.source == SourceKind::kFeatures) {
    VKF_ASSIGN(LogMel made, load_task_sounds(files));
    task.sounds.emplace(std::move(made));
  }
  if (facts.source == SourceKind::kWaveform) {
    VKF_ASSIGN(task.waveform, load_task_waveform(files));
  }
  if (facts.head != HeadKind::kCtc) return {};
  if (files.has("vocab.json")) {
    VKF_ASSIGN(CtcVocabulary made, load_ctc_vocabulary(task, files));
    task.ctc.emplace(std::move(made));
  } else {
    VKF_ASSIGN(task.tokenizer, load_tokenizer(files));
  }
  return {};
}

// Configurations, and what they say of inputs.
Status load_inputs(TaskModel& task, const FileStore& files) {
  VKF_ASSIGN(task.config, JsonConfig::load_from(files, config_name(files)));
  VKF_ASSIGN(task.tokenizer_config, optional_config(files, "tokenizer_config.json"));
  VKF_ASSIGN(task.generation_config, optional_config(files, "generation_config.json"));
  return load_processors(task, files);
}

}  // namespace

Result<JsonConfig> optional_config(const FileStore& files, const std::string& name) {
  if (!files.has(name)) return JsonConfig();
  return JsonConfig::load_from(files, name);
}

Result<std::string> special_token(const JsonConfig& config, const std::string& key) {
  if (!config.has(key)) return std::string();
  const JsonConfig nested = config.object(key);
  return nested.status() ? nested.get_string("content") : config.get_string(key);
}

Result<std::string> special_token(const TaskModel& task, const FileStore& files,
                                  const std::string& key) {
  VKF_ASSIGN(const JsonConfig special, optional_config(files, "special_tokens_map.json"));
  return special_token(task.tokenizer_config.has(key) ? task.tokenizer_config : special, key);
}

std::vector<TaskKind> tasks_of(const ModelInfo& info) {
  const bool tokens = info.source == SourceKind::kTokens;
  const bool pictures = info.source == SourceKind::kPictures;
  const bool hears = info.source == SourceKind::kFeatures || info.source == SourceKind::kWaveform;
  const bool writes = info.kind != ModelKind::kEncoder && info.head == HeadKind::kLanguage;
  const struct {
    TaskKind task;
    bool fits;
  } rows[] = {
      {TaskKind::kEmbed,
       tokens && info.head != HeadKind::kSpeech && info.head != HeadKind::kEntities},
      {TaskKind::kClassify,
       info.head == HeadKind::kSequence || info.head == HeadKind::kSimilarity ||
           info.head == HeadKind::kEntities || (tokens && info.head == HeadKind::kTokens)},
      {TaskKind::kAnswer, tokens && info.head == HeadKind::kSpans},
      {TaskKind::kFillMask, tokens && info.head == HeadKind::kMasked},
      {TaskKind::kGenerate, tokens && writes},
      {TaskKind::kTranscribe, info.head == HeadKind::kCtc || (hears && writes)},
      {TaskKind::kCaption, pictures && writes},
      {TaskKind::kRerank, tokens && info.head == HeadKind::kSequence && info.labels.size() == 1},
      {TaskKind::kDetect, pictures && info.head == HeadKind::kObjects},
      {TaskKind::kSpeak, info.head == HeadKind::kSpeech},
      {TaskKind::kDepth, pictures && info.head == HeadKind::kDepth},
      {TaskKind::kSegment, pictures && info.head == HeadKind::kSegmentation}};
  std::vector<TaskKind> tasks;
  for (const auto& row : rows) {
    if (row.fits) tasks.push_back(row.task);
  }
  return tasks;
}

Result<std::unique_ptr<TaskModel>> load_task_model(const Device& device, const ModelSource& source,
                                                   TaskKind task, const TaskOptions& options) {
  VKF_CHECK(check_options(options));
  const FileStore& files = *HandleAccess::impl(source);
  auto made = std::make_unique<TaskModel>();
  made->batch = static_cast<size_t>(options.batch);
  made->long_text = options.long_text;
  VKF_ASSIGN(made->model, load_model(HandleAccess::impl(device), files, options.model));
  const bool judges = task == TaskKind::kRerank && is_language_model(made->model->info());
  if (!judges) VKF_CHECK(check_task(made->model->info(), task));
  VKF_CHECK(load_inputs(*made, files));
  VKF_ASSIGN(const JsonConfig sentence, optional_config(files, "sentence_bert_config.json"));
  VKF_ASSIGN(made->sentence_tokens, sentence.get_int_or("max_seq_length", 0));
  VKF_ASSIGN(made->sentence_config, optional_config(files, "config_sentence_transformers.json"));
  if (judges) {
    VKF_ASSIGN(const JsonConfig score, optional_config(files, "1_LogitScore/config.json"));
    VKF_ASSIGN(made->judge, read_judge(*made->tokenizer, score));
  }
  if (task == TaskKind::kFillMask) {
    VKF_ASSIGN(made->mask_token, find_mask_token(*made, files));
  }
  VKF_ASSIGN(made->session, SessionState::create(made->model, options.session));
  return made;
}

Result<std::unique_ptr<TaskModel>> load_prompt_model(std::shared_ptr<const LoadedModel> model,
                                                     const ModelSource& source) {
  auto made = std::make_unique<TaskModel>();
  made->model = std::move(model);
  VKF_CHECK(load_inputs(*made, *HandleAccess::impl(source)));
  return made;
}

int64_t TaskModel::token_limit(int64_t wanted) const {
  const int64_t limit = facts().max_source;
  return wanted > 0 && wanted < limit ? wanted : limit;
}

}  // namespace vkformer
