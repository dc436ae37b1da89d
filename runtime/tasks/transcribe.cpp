// Speech to text with Whisper and its like. Formats: Radford et al., "Robust Speech Recognition via
// Large-Scale Weak Supervision", 2022, section 2.3; Hugging Face's generation_config.json.
#include <algorithm>
#include <cmath>

#include "audio/resample.h"
#include "base/check.h"
#include "base/message.h"
#include "tasks/task_model.h"

namespace vkformer {
namespace {

constexpr TokenId kUnknown = -1;  // the language that is still to be heard

// Samples [begin, end) of sound number `sound`.
struct SoundWindow {
  size_t sound = 0;
  size_t begin = 0;
  size_t end = 0;
};

struct HeardSound {
  std::vector<float> samples;  // at the model's rate, (N)
  std::vector<TokenId> prompt;
  std::string text;
};

bool is_language(const std::string& name) {
  return name.starts_with("<|");
}

Result<TokenId> prompt_token(const GenerationFacts& facts, const std::string& name,
                             const char* what) {
  const auto found = facts.prompt_tokens.find(name);
  if (found != facts.prompt_tokens.end()) return found->second;
  std::string known;
  for (const auto& [key, id] : facts.prompt_tokens) {
    if (key != "notimestamps") known += (known.empty() ? "" : ", ") + key;
  }
  return invalid_argument(
      message({"[", what, "] '", name, "' is not in the model's generation_config.json; ",
               (known.empty() ? "it is a model of one language and task" : "it knows " + known)}));
}

// What the caller asks for, or generation_config.json.
Result<std::string> wish(const TaskModel& task, const std::string& given, const char* key) {
  if (!given.empty()) return given;
  return task.generation_config.get_string_or(key, "");
}

// Start, language, task, "no timestamps"; kUnknown for a language to be heard.
Result<std::vector<TokenId>> make_prompt(const TaskModel& task, const TranscribeOptions& options) {
  const GenerationFacts& facts = task.model->family().generation();
  VKF_ASSIGN(std::string language, wish(task, options.language, "language"));
  VKF_ASSIGN(std::string use, wish(task, options.task ? choice_name(*options.task) : "", "task"));
  std::vector<TokenId> prompt = {facts.decoder_start};
  const auto& tokens = facts.prompt_tokens;
  const bool multilingual =
      std::any_of(tokens.begin(), tokens.end(), [](const auto& t) { return is_language(t.first); });
  if (language.empty() && use.empty() && !facts.decoder_prompt.empty()) {
    prompt = facts.decoder_prompt;
  } else if (multilingual || !language.empty() || !use.empty()) {
    if (!language.empty() && !is_language(language)) language = "<|" + language + "|>";
    TokenId id = kUnknown;
    if (!language.empty()) {
      VKF_ASSIGN(id, prompt_token(facts, language, "language"));
    }
    prompt.push_back(id);
    VKF_ASSIGN(id, prompt_token(facts, use.empty() ? "transcribe" : use, "task"));
    prompt.push_back(id);
  }
  const auto plain = tokens.find("notimestamps");
  if (plain != tokens.end() && prompt.back() != plain->second) prompt.push_back(plain->second);
  return prompt;
}

// Where a window that begins at `begin` ends: at the end, or in the middle of the quietest tenth of
// a second of its last fifth, the latest of equal ones.
size_t window_end(const std::vector<float>& samples, size_t begin, size_t most, size_t rate) {
  if (samples.size() - begin <= most) return samples.size();
  const size_t piece = std::max<size_t>(1, rate / 10);
  size_t best = begin + most;
  double least = HUGE_VAL;
  for (size_t end = begin + most; end >= begin + most - most / 5 && end > begin + piece;
       end -= piece) {
    double energy = 0;
    for (size_t i = end - piece; i < end; ++i) {
      energy += static_cast<double>(samples[i]) * static_cast<double>(samples[i]);
    }
    if (energy >= least) continue;
    least = energy;
    best = end == begin + most ? end : end - piece / 2;
  }
  return best;
}

// input_features (B, mel bands, frames) of windows.
Result<TensorMap> feature_inputs(const TaskModel& task, const std::vector<HeardSound>& recordings,
                                 std::span<const SoundWindow> windows) {
  std::vector<float> values;
  for (const SoundWindow& window : windows) {
    const std::span<const float> samples(recordings[window.sound].samples);
    VKF_ASSIGN(const std::vector<float> features,
               task.sounds->extract(samples.subspan(window.begin, window.end - window.begin)));
    values.insert(values.end(), features.begin(), features.end());
  }
  TensorMap inputs;
  inputs["input_features"] =
      Tensor::from_floats({static_cast<int64_t>(windows.size()), task.sounds->settings().mel_bands,
                           task.sounds->frames()},
                          values);
  return inputs;
}

// Puts the language that is likeliest behind the start token into the prompts that lack it.
Status hear_languages(TaskModel& task, std::vector<HeardSound>& recordings,
                      std::span<const SoundWindow> first_windows) {
  const GenerationFacts& facts = task.model->family().generation();
  VKF_ASSIGN(TensorMap inputs, feature_inputs(task, recordings, first_windows));
  const auto batch = static_cast<int64_t>(first_windows.size());
  const std::vector<int64_t> start(first_windows.size(), facts.decoder_start);
  inputs["decoder_input_ids"] = Tensor::from_ints({batch, 1}, start);
  VKF_ASSIGN(const TensorMap outputs, task.session->run(inputs, {}));
  VKF_ASSIGN(const TaskOutput logits, task_output(outputs, "logits"));
  for (size_t row = 0; row < first_windows.size(); ++row) {
    const std::span<const float> scores = logits.row(row);
    int64_t best = kUnknown;
    for (const auto& [name, id] : facts.prompt_tokens) {
      if (!is_language(name) || id < 0 || static_cast<size_t>(id) >= scores.size()) continue;
      const float score = scores[static_cast<size_t>(id)];
      if (best == kUnknown || score > scores[static_cast<size_t>(best)]) best = id;
    }
    if (best == kUnknown) {
      return unsupported(
          "[language] generation_config.json has no lang_to_id with tokens of this model, so no "
          "language can be found; give one");
    }
    std::vector<int64_t>& prompt = recordings[first_windows[row].sound].prompt;
    std::replace(prompt.begin(), prompt.end(), kUnknown, best);
  }
  return {};
}

Status transcribe_windows(TaskModel& task, std::vector<HeardSound>& recordings,
                          std::span<const SoundWindow> windows, const TranscribeOptions& options) {
  const std::vector<int64_t>& prompt = recordings[windows[0].sound].prompt;
  GenerateOptions settings = task.session->generation_defaults();
  settings.decoder_prompt = prompt;
  settings.max_new_tokens = fitting_tokens(task, settings.max_new_tokens, prompt.size());
  settings.beams = options.beams.value_or(settings.beams);
  settings.max_new_tokens = options.max_new_tokens.value_or(settings.max_new_tokens);
  VKF_ASSIGN(const TensorMap inputs, feature_inputs(task, recordings, windows));
  VKF_ASSIGN(const Generation found, task.session->generate(inputs, settings));
  for (size_t row = 0; row < windows.size(); ++row) {
    VKF_ASSIGN(GeneratedText heard, generated_text(task, found[row][0], prompt.size()));
    std::string& text = recordings[windows[row].sound].text;
    if (text.empty()) heard.text.erase(0, heard.text.find_first_not_of(' '));
    if (!text.empty() && !heard.text.empty() && heard.text[0] != ' ') text += ' ';
    text += heard.text;
  }
  return {};
}

Result<HeardSound> read_sound(const TaskModel& task, const Sound& sound, size_t index) {
  const auto rate = static_cast<int32_t>(task.sounds->settings().sampling_rate);
  HeardSound recording{sound.samples, {}, ""};
  if (sound.sampling_rate == rate) return recording;
  auto samples = resample(sound.samples, sound.sampling_rate, rate);
  if (!samples) return samples.error().with_context(message({"[sound ", index + 1, "]"}));
  recording.samples = std::move(samples).value();
  return recording;
}

// Ends of runs of windows with the same prompt, at most `batch` long.
size_t run_end(const std::vector<HeardSound>& recordings, const std::vector<SoundWindow>& windows,
               size_t begin, size_t batch) {
  size_t end = begin + 1;
  while (end < windows.size() && end - begin < batch &&
         recordings[windows[end].sound].prompt == recordings[windows[begin].sound].prompt) {
    ++end;
  }
  return end;
}

}  // namespace

Result<std::vector<std::string>> transcribe_sounds(TaskModel& task, std::span<const Sound> sounds,
                                                   const TranscribeOptions& options) {
  VKF_ASSIGN(const std::vector<int64_t> prompt, make_prompt(task, options));
  std::vector<HeardSound> recordings;
  std::vector<SoundWindow> windows, first_windows;
  const auto most = static_cast<size_t>(task.sounds->samples());
  const auto rate = static_cast<size_t>(task.sounds->settings().sampling_rate);
  for (size_t i = 0; i < sounds.size(); ++i) {
    VKF_ASSIGN(HeardSound recording, read_sound(task, sounds[i], i));
    recording.prompt = prompt;
    for (size_t begin = 0; begin < recording.samples.size();) {
      const size_t end = window_end(recording.samples, begin, most, rate);
      windows.push_back({i, begin, end});
      if (begin == 0) first_windows.push_back(windows.back());
      begin = end;
    }
    recordings.push_back(std::move(recording));
  }
  const std::span<const SoundWindow> all(windows), first(first_windows);
  const bool unknown = std::find(prompt.begin(), prompt.end(), kUnknown) != prompt.end();
  for (size_t begin = 0; unknown && begin < first.size(); begin += task.batch) {
    VKF_CHECK(hear_languages(task, recordings,
                             first.subspan(begin, std::min(task.batch, first.size() - begin))));
  }
  for (size_t begin = 0; begin < windows.size();) {
    const size_t end = run_end(recordings, windows, begin, task.batch);
    VKF_CHECK(transcribe_windows(task, recordings, all.subspan(begin, end - begin), options));
    begin = end;
  }
  std::vector<std::string> texts;
  for (HeardSound& recording : recordings) texts.push_back(std::move(recording.text));
  return texts;
}

}  // namespace vkformer
