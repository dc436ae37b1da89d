// Texts to speech.
#include "base/check.h"
#include "base/message.h"
#include "tasks/task_model.h"

namespace vkformer {
namespace {

// tokenizer_config.json of a VitsTokenizer, with its class's defaults.
Result<LetterSettings> letter_settings(const TaskModel& task, const FileStore& files) {
  const JsonConfig& config = task.tokenizer_config;
  LetterSettings s;
  VKF_ASSIGN(const std::string unknown, special_token(task, files, "unk_token"));
  VKF_ASSIGN(const std::string pad, special_token(task, files, "pad_token"));
  if (!unknown.empty()) s.unknown = unknown;
  if (!pad.empty()) s.pad = pad;
  VKF_ASSIGN(s.language, config.get_string_or("language", ""));
  VKF_ASSIGN(s.blanks, config.get_bool_or("add_blank", true));
  VKF_ASSIGN(s.normalizes, config.get_bool_or("normalize", true));
  VKF_ASSIGN(s.phonemizes, config.get_bool_or("phonemize", true));
  VKF_ASSIGN(s.romanizes, config.get_bool_or("is_uroman", false));
  const JsonConfig added = config.object("added_tokens_decoder");
  VKF_CHECK(added.status());
  for (const std::string& key : added.keys()) {
    const JsonConfig entry = added.object(key);
    VKF_ASSIGN(const std::string content, entry.get_string("content"));
    const int64_t id = std::strtoll(key.c_str(), nullptr, 10);
    if (std::to_string(id) != key || id < 0 || content.empty()) {
      return invalid_file(message({"[added_tokens_decoder] in ", config.where(), " has '", key,
                                   "' for '", content, "', but it must have texts by id."}));
    }
    s.added[content] = id;
  }
  return s;
}

// One number, as passes take settings.
Tensor number(double value) {
  return Tensor::from_floats({1}, std::vector<float>{static_cast<float>(value)});
}

}  // namespace

Result<LetterVocabulary> load_letter_vocabulary(const TaskModel& task, const FileStore& files) {
  const std::string name = "vocab.json";
  VKF_ASSIGN(LetterSettings settings, letter_settings(task, files));
  VKF_ASSIGN(const MappedFile file, files.open(name));
  const auto bytes = file.bytes();
  return LetterVocabulary::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                 files.label_of(name), std::move(settings));
}

Result<std::vector<Sound>> speak_texts(TaskModel& task, std::span<const std::string> texts,
                                       const SpeakOptions& options) {
  const auto written =
      options.phonemes ? LetterVocabulary::Written::kPhonemes : LetterVocabulary::Written::kLetters;
  TensorMap settings;
  if (options.speaking_rate) settings["speaking_rate"] = number(*options.speaking_rate);
  if (options.noise) settings["noise_scale"] = number(*options.noise);
  if (options.duration_noise) settings["noise_scale_duration"] = number(*options.duration_noise);
  if (options.speaker) settings["speaker_id"] = Tensor::from_ints({1}, {*options.speaker});
  settings["seed"] = Tensor::from_ints({1}, {static_cast<int64_t>(options.seed)});
  std::vector<Sound> sounds;
  // One at a time: the silence that fills a batch up would be heard at the end of its shorter
  // texts.
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string place = message({"[text ", i + 1, "]"});
    const auto ids = task.letters->encode(texts[i], written);
    if (!ids) return ids.error().with_context(place);
    TensorMap inputs = settings;
    inputs["input_ids"] = Tensor::from_ints({1, static_cast<int64_t>(ids->size())}, *ids);
    const auto outputs = task.session->run(inputs, {});
    if (!outputs) return outputs.error().with_context(place);
    VKF_ASSIGN(TaskOutput waveform, task_output(*outputs, "waveform"));
    sounds.push_back(
        {std::move(waveform.values), static_cast<int32_t>(task.facts().sampling_rate)});
  }
  return sounds;
}

}  // namespace vkformer
