// Speech to text by the class of each frame. Files: Hugging Face's Wav2Vec2CTCTokenizer.
#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "tasks/speech_windows.h"

namespace vkformer {
namespace {

// The likeliest class of every frame (frames, V), the first of equal ones.
std::vector<TokenId> best_classes(std::span<const float> logits, size_t classes) {
  std::vector<TokenId> best;
  for (size_t begin = 0; begin < logits.size(); begin += classes) {
    const std::span<const float> frame = logits.subspan(begin, classes);
    best.push_back(std::max_element(frame.begin(), frame.end()) - frame.begin());
  }
  return best;
}

Result<FrameText> decode_classes(const TaskModel& task, std::span<const TokenId> classes) {
  if (task.ctc) return task.ctc->decode(classes);
  return decode_frames(*task.tokenizer, task.model->family().generation().pad, classes);
}

// The tokens that tokenizer_config.json or added_tokens.json adds.
Status add_added_tokens(const TaskModel& task, const FileStore& files, CtcVocabulary& vocabulary) {
  const JsonConfig listed = task.tokenizer_config.object("added_tokens_decoder");
  VKF_CHECK(listed.status());
  for (const std::string& id : listed.keys()) {
    const bool number = id.size() <= 9 && id.find_first_not_of("0123456789") == std::string::npos;
    if (!number) {
      return invalid_file(message({"[added_tokens_decoder] in ", listed.where(), " has the key '",
                                   id, "', but its keys must be the ids of tokens."}));
    }
    VKF_ASSIGN(std::string token, listed.object(id).get_string("content"));
    vocabulary.add(std::stoll(id), std::move(token));
  }
  VKF_ASSIGN(const JsonConfig added, optional_config(files, "added_tokens.json"));
  for (const std::string& token : added.keys()) {
    VKF_ASSIGN(const int64_t id, added.get_int(token));
    vocabulary.add(id, token);
  }
  return {};
}

}  // namespace

Result<CtcVocabulary> load_ctc_vocabulary(const TaskModel& task, const FileStore& files) {
  CtcSettings settings;
  const std::pair<const char*, std::string*> tokens[] = {
      {"pad_token", &settings.pad},
      {"unk_token", &settings.unknown},
      {"word_delimiter_token", &settings.delimiter}};
  for (const auto& [key, token] : tokens) {
    VKF_ASSIGN(std::string named, special_token(task, files, key));
    if (!named.empty()) *token = std::move(named);
  }
  const JsonConfig& config = task.tokenizer_config;
  VKF_ASSIGN(settings.space, config.get_string_or("replace_word_delimiter_char", settings.space));
  VKF_ASSIGN(settings.language, config.get_string_or("target_lang", ""));
  VKF_ASSIGN(settings.lowers, config.get_bool_or("do_lower_case", false));
  const std::string name = "vocab.json";
  VKF_ASSIGN(const MappedFile file, files.open(name));
  const auto bytes = file.bytes();
  VKF_ASSIGN(CtcVocabulary made,
             CtcVocabulary::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                  files.label_of(name), std::move(settings)));
  VKF_CHECK(add_added_tokens(task, files, made));
  return made;
}

Status transcribe_frames(TaskModel& task, HeardSounds& heard) {
  const double seconds = class_seconds(task);
  const std::span<const SoundWindow> windows(heard.windows);
  for (size_t begin = 0; begin < windows.size();) {
    const size_t end = window_run_end(task, heard, begin);
    const auto run = windows.subspan(begin, end - begin);
    VKF_ASSIGN(const TensorMap inputs, speech_inputs(task, heard.sounds, run));
    VKF_ASSIGN(const TensorMap outputs, task.session->run(inputs, {}));
    VKF_ASSIGN(const TaskOutput logits, task_output(outputs, "logits"));
    for (size_t row = 0; row < run.size(); ++row) {
      const std::vector<TokenId> classes =
          best_classes(logits.row(row), static_cast<size_t>(logits.shape.back()));
      VKF_ASSIGN(FrameText text, decode_classes(task, classes));
      HeardSound& sound = heard.sounds[run[row].sound];
      sound.append(std::move(text.text));
      const double start =
          static_cast<double>(run[row].begin) / static_cast<double>(speech_rate(task));
      for (FrameWord& word : text.words) {
        sound.transcript.words.push_back({std::move(word.text),
                                          start + static_cast<double>(word.begin) * seconds,
                                          start + static_cast<double>(word.end) * seconds});
      }
    }
    begin = end;
  }
  return {};
}

}  // namespace vkformer
