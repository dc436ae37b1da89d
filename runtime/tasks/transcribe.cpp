// Speech to text: by a CTC head, or by a decoder. Formats of prompts: Radford et al., "Robust
// Speech Recognition via Large-Scale Weak Supervision", 2022, section 2.3; Hugging Face's
// generation_config.json.
#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "tasks/speech_windows.h"

namespace vkformer {
namespace {

constexpr TokenId kUnknown = -1;  // the language that is still to be heard

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

// Puts the language that is likeliest after the start token into the prompts that lack it.
Status hear_languages(TaskModel& task, std::vector<HeardSound>& recordings,
                      std::span<const SoundWindow> first_windows) {
  const GenerationFacts& facts = task.model->family().generation();
  VKF_ASSIGN(TensorMap inputs, speech_inputs(task, recordings, first_windows));
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

// `aligned`: null where no times of words are wanted.
Status transcribe_windows(TaskModel& task, std::vector<HeardSound>& recordings,
                          std::span<const SoundWindow> windows, const TranscribeOptions& options,
                          const AlignmentHeads* aligned) {
  const std::vector<int64_t>& prompt = recordings[windows[0].sound].prompt;
  GenerateOptions settings = task.session->generation_defaults();
  settings.decoder_prompt = prompt;
  settings.max_new_tokens = fitting_tokens(task, settings.max_new_tokens, prompt.size());
  settings.beams = options.beams.value_or(settings.beams);
  settings.max_new_tokens = options.max_new_tokens.value_or(settings.max_new_tokens);
  VKF_ASSIGN(const TensorMap inputs, speech_inputs(task, recordings, windows));
  VKF_ASSIGN(const Generation found, task.session->generate(inputs, settings));
  for (size_t row = 0; row < windows.size(); ++row) {
    VKF_ASSIGN(GeneratedText heard, generated_text(task, found[row][0], prompt.size()));
    recordings[windows[row].sound].append(std::move(heard.text));
    if (aligned == nullptr) continue;
    VKF_CHECK(add_aligned_words(task, *aligned, windows[row], found[row][0].ids, recordings));
  }
  return {};
}

// The texts that a decoder writes of windows.
Status transcribe_tokens(TaskModel& task, HeardSounds& heard, const TranscribeOptions& options,
                         const AlignmentHeads* aligned) {
  VKF_ASSIGN(const std::vector<int64_t> prompt, make_prompt(task, options));
  for (HeardSound& sound : heard.sounds) sound.prompt = prompt;
  std::vector<SoundWindow> first;
  for (const SoundWindow& window : heard.windows) {
    if (window.begin == 0) first.push_back(window);
  }
  const bool unknown = std::find(prompt.begin(), prompt.end(), kUnknown) != prompt.end();
  for (size_t begin = 0; unknown && begin < first.size(); begin += task.batch) {
    const size_t count = std::min(task.batch, first.size() - begin);
    VKF_CHECK(hear_languages(task, heard.sounds, std::span(first).subspan(begin, count)));
  }
  for (size_t begin = 0; begin < heard.windows.size();) {
    const size_t end = window_run_end(task, heard, begin);
    VKF_CHECK(transcribe_windows(task, heard.sounds,
                                 std::span(heard.windows).subspan(begin, end - begin), options,
                                 aligned));
    begin = end;
  }
  return {};
}

// A head that chooses each frame's class by itself has no language, task or search.
Status refuse_decoder_options(const TaskModel& task, const TranscribeOptions& options) {
  const char* given = !options.language.empty() ? "language"
                      : options.task            ? "task"
                      : options.beams           ? "beams"
                      : options.max_new_tokens  ? "max_new_tokens"
                                                : nullptr;
  if (given == nullptr) return {};
  return invalid_argument(
      message({"[", given, "] is for models whose decoder writes a text, but ",
               task.facts().architecture, " has a class for each frame of sound; leave it out."}));
}

}  // namespace

Result<std::vector<Transcript>> transcribe_sounds(TaskModel& task, std::span<const Sound> sounds,
                                                  const TranscribeOptions& options,
                                                  WordTimes words) {
  const bool frames = task.facts().head == HeadKind::kCtc;
  std::optional<AlignmentHeads> aligned;
  if (words == WordTimes::kYes && !frames) {
    VKF_ASSIGN(aligned, read_alignment_heads(task));
  }
  if (frames) VKF_CHECK(refuse_decoder_options(task, options));
  VKF_ASSIGN(HeardSounds heard, cut_sounds(task, sounds));
  VKF_CHECK(frames ? transcribe_frames(task, heard)
                   : transcribe_tokens(task, heard, options, aligned ? &*aligned : nullptr));
  std::vector<Transcript> transcripts;
  for (HeardSound& sound : heard.sounds) transcripts.push_back(std::move(sound.transcript));
  return transcripts;
}

}  // namespace vkformer
