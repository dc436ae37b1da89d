// When the words are said that a decoder wrote. A second pass over its text gives the scores of the
// heads that follow the audio (word_alignment.h).
#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/message.h"
#include "tasks/speech_windows.h"
#include "tasks/word_alignment.h"

namespace vkformer {
namespace {

constexpr int64_t kMostMedianWidth = 1001;
// Passes of nearly the same length share a recording.
constexpr size_t kTokensAtOnce = 32;

// Languages that are written without spaces between words.
constexpr std::string_view kUnspaced[] = {"<|zh|>", "<|ja|>", "<|th|>",
                                          "<|lo|>", "<|my|>", "<|yue|>"};

WordBreaks breaks_of(const GenerationFacts& facts, std::span<const TokenId> prompt) {
  for (const std::string_view name : kUnspaced) {
    const auto found = facts.prompt_tokens.find(std::string(name));
    if (found == facts.prompt_tokens.end()) continue;
    if (std::find(prompt.begin(), prompt.end(), found->second) != prompt.end()) {
      return WordBreaks::kCharacters;
    }
  }
  return WordBreaks::kSpaces;
}

// The tokens of a text: no special ones.
Result<std::vector<TokenId>> text_tokens(const TaskModel& task, std::span<const TokenId> ids) {
  std::vector<TokenId> tokens;
  for (const TokenId id : ids) {
    VKF_ASSIGN(const std::string* text, task.tokenizer->decoded_token(id, SpecialTokens::kExclude));
    if (text != nullptr) tokens.push_back(id);
  }
  return tokens;
}

// A window's scores by head, of the tokens and frames that count.
struct WindowShape {
  size_t tokens = 0;       // in the order of the pass, whose other tokens fill it up
  size_t first_frame = 0;  // frames of silence that fill a window up do not count
  size_t frames = 0;
};

HeadScores head_scores(const std::map<int64_t, TaskOutput>& maps, const AlignmentHeads& heads,
                       const WindowShape& window) {
  HeadScores scores{window.tokens, window.frames, {}};
  for (const AlignmentHeads::Head& head : heads.heads) {
    const TaskOutput& map = maps.at(head.layer);
    const auto queries = static_cast<size_t>(map.shape[2]),
               keys = static_cast<size_t>(map.shape[3]);
    const std::span<const float> values = map.row(0);
    for (size_t t = 0; t < window.tokens; ++t) {
      const size_t row = (static_cast<size_t>(head.head) * queries + t) * keys;
      const auto frames = values.subspan(row + window.first_frame, window.frames);
      scores.values.insert(scores.values.end(), frames.begin(), frames.end());
    }
  }
  return scores;
}

// The frames of the encoder that a window's own samples make, of `frames` in all.
WindowShape own_frames(const TaskModel& task, const SoundWindow& window, size_t frames) {
  const auto all = static_cast<size_t>(task.sounds->samples());
  WindowShape shape;
  shape.frames = std::clamp<size_t>(window.samples() * frames / all, 1, frames);
  if (task.sounds->settings().pads_left) shape.first_frame = frames - shape.frames;
  return shape;
}

}  // namespace

Result<AlignmentHeads> read_alignment_heads(const TaskModel& task) {
  const ModelFacts& facts = task.facts();
  AlignmentHeads result;
  VKF_ASSIGN(const auto pairs, task.generation_config.get_int_lists_or("alignment_heads", {}));
  if (pairs.empty() || !task.sounds) {
    return unsupported(message(
        {"[words] a ", facts.architecture,
         " gives no times of words: models with a CTC head do, and those whose "
         "generation_config.json has alignment_heads, as Whisper's. Ask for texts alone."}));
  }
  for (const std::vector<int64_t>& pair : pairs) {
    const bool fits = pair.size() == 2 && pair[0] >= 0 && pair[0] < facts.decoder_layers &&
                      pair[1] >= 0 && pair[1] < facts.decoder_heads;
    if (!fits) {
      return invalid_file(message({"[alignment_heads] in ", task.generation_config.where(),
                                   " must be pairs of a layer below ", facts.decoder_layers,
                                   " and a head below ", facts.decoder_heads, "."}));
    }
    result.heads.push_back({pair[0], pair[1]});
    result.layers.push_back(pair[0]);
  }
  std::sort(result.layers.begin(), result.layers.end());
  result.layers.erase(std::unique(result.layers.begin(), result.layers.end()), result.layers.end());
  VKF_ASSIGN(const int64_t width, task.config.get_int_or("median_filter_width", 7));
  if (width < 1 || width % 2 == 0 || width > kMostMedianWidth) {
    return invalid_file(message({"[median_filter_width] in ", task.config.where(), " is ", width,
                                 "; it must be odd, from 1 to ", kMostMedianWidth, "."}));
  }
  result.median_width = static_cast<size_t>(width);
  return result;
}

Status add_aligned_words(TaskModel& task, const AlignmentHeads& heads, const SoundWindow& window,
                         std::span<const TokenId> ids, std::vector<HeardSound>& recordings) {
  HeardSound& sound = recordings[window.sound];
  const GenerationFacts& facts = task.model->family().generation();
  const std::vector<TokenId>& prompt = sound.prompt;
  if (ids.size() <= prompt.size()) return {};
  VKF_ASSIGN(const std::vector<TokenId> text, text_tokens(task, ids.subspan(prompt.size())));
  if (text.empty()) return {};
  std::vector<TokenId> tokens = prompt;
  tokens.insert(tokens.end(), text.begin(), text.end());
  const auto most = static_cast<size_t>(task.facts().max_target);
  const TokenId end = facts.eos.empty() ? facts.pad : facts.eos[0];
  if (tokens.size() < most) tokens.push_back(end);
  const size_t counted = tokens.size();
  // A causal decoder does not see what fills its tokens up.
  tokens.resize(std::min(most, (counted + kTokensAtOnce - 1) / kTokensAtOnce * kTokensAtOnce), end);
  VKF_ASSIGN(TensorMap inputs, speech_inputs(task, recordings, {&window, 1}));
  inputs["decoder_input_ids"] = Tensor::from_ints({1, static_cast<int64_t>(tokens.size())}, tokens);
  VKF_ASSIGN(const TensorMap outputs, task.session->run_cross_scores(inputs, heads.layers));
  std::map<int64_t, TaskOutput> maps;  // (1, H, T, S)
  for (const int64_t layer : heads.layers) {
    VKF_ASSIGN(maps[layer], task_output(outputs, "cross_attentions." + std::to_string(layer)));
  }
  const auto all_frames = static_cast<size_t>(maps.begin()->second.shape[3]);
  WindowShape shape = own_frames(task, window, all_frames);
  shape.tokens = counted;
  std::vector<double> costs = alignment_matrix(head_scores(maps, heads, shape), heads.median_width);
  for (double& cost : costs) cost = -cost;
  // A token is predicted, and so its audio attended to, by the one before it.
  const size_t rows = text.size() + 1;
  const std::span<const double> own =
      std::span(costs).subspan((prompt.size() - 1) * shape.frames, rows * shape.frames);
  const std::vector<size_t> begins = first_frames(own, rows, shape.frames);
  VKF_ASSIGN(std::vector<TokenWord> words,
             words_of_tokens(*task.tokenizer, text, breaks_of(facts, prompt)));
  const auto rate = static_cast<double>(speech_rate(task));
  const double start = static_cast<double>(window.begin) / rate;
  const double seconds =
      static_cast<double>(task.sounds->samples()) / rate / static_cast<double>(all_frames);
  for (TokenWord& word : merge_punctuation(std::move(words))) {
    sound.transcript.words.push_back({std::move(word.text),
                                      start + static_cast<double>(begins[word.begin]) * seconds,
                                      start + static_cast<double>(begins[word.end]) * seconds});
  }
  return {};
}

}  // namespace vkformer
