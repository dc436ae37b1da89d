// Texts to entities of labels that the caller names, by a GLiNER: what the library gliner's
// predict_entities gives.
//
// A row is the labels, each after a marker, a marker of the text, and the text word by word. All
// words and labels are encoded apart. The model scores every span of words for every label.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/message.h"
#include "tasks/task_model.h"
#include "unicode/text_regex.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

// Words as the library's whitespace splitter finds them. Its \w has no marks.
constexpr const char* kWords = R"([\p{L}\p{N}_]+(?:[-_][\p{L}\p{N}_]+)*|[^\s\x1c-\x1f])";

constexpr int64_t kWordStep = 16;                      // words of a pass are rounded up to it
constexpr int64_t kMostSpanBytes = int64_t{64} << 20;  // of a pass's features of spans

// What gliner_config.json says of texts.
struct EntityModel {
  int64_t most_words = 0;    // of a text
  int64_t max_width = 0;     // K, words of an entity
  int64_t width = 0;         // H
  TokenId label_marker = 0;  // before each label
  TokenId text_marker = 0;   // before the text
};

// Tokens that stand before the words of every text, and after them.
struct EntityPrompt {
  std::vector<std::string> labels;  // none twice
  std::vector<TokenId> before, after;
};

// A text with its words.
struct EntityText {
  Encoding encoding;
  std::vector<int64_t> words_mask;  // by token
  std::vector<TextRange> words;
};

// Words [first, last] as an entity.
struct WordSpan {
  size_t first = 0, last = 0;
  size_t label = 0;
  double score = 0;
};

// The id of a marker: the tokenizer's, if it has the marker, which must be the model's then.
Result<TokenId> marker_id(const TaskModel& task, const std::string& key, const char* usual,
                          TokenId expected) {
  VKF_ASSIGN(const std::string token, task.config.get_string_or(key, usual));
  const auto known = task.tokenizer->token_to_id(token);
  if (!known || *known == expected) return expected;
  return invalid_file(message({"[", key, "] in ", task.config.where(), " is '", token,
                               "', which is ", *known, " in the tokenizer, but ", expected,
                               " by class_token_index. Take the tokenizer of this model."}));
}

Result<EntityModel> read_entity_model(const TaskModel& task) {
  const JsonConfig& config = task.config;
  EntityModel model;
  VKF_ASSIGN(model.most_words, config.get_int_or("max_len", 384));
  VKF_ASSIGN(model.max_width, config.get_int_or("max_width", 12));
  VKF_ASSIGN(model.width, config.get_int_or("hidden_size", 512));
  VKF_ASSIGN(TokenId marker, config.get_int_or("class_token_index", -1));
  if (marker == -1) marker = task.facts().source_vocab - 2;
  VKF_ASSIGN(model.label_marker, marker_id(task, "ent_token", "<<ENT>>", marker));
  VKF_ASSIGN(model.text_marker, marker_id(task, "sep_token", "<<SEP>>", marker + 1));
  if (model.most_words >= 1) return model;
  return invalid_file(message({"[max_len] in ", config.where(), " is ", model.most_words,
                               ", but a text has at least 1 word."}));
}

Result<std::vector<Encoding>> encode_apart(const TaskModel& task,
                                           std::span<const std::string> texts) {
  return task.tokenizer->encode_batch(texts, {.special_tokens = SpecialTokens::kExclude});
}

// What the tokenizer puts around a text.
Status add_frame(const TaskModel& task, const std::string& text, std::span<const TokenId> plain,
                 EntityPrompt& prompt) {
  const std::string_view view = text;
  VKF_ASSIGN(const Encoding framed, task.tokenizer->encode({&view, 1}, {}));
  const auto at = std::search(framed.ids.begin(), framed.ids.end(), plain.begin(), plain.end());
  if (at == framed.ids.end()) {
    return unsupported(message({"[label] '", text,
                                "' has other tokens between the tokenizer's special tokens than "
                                "alone. Take the tokenizer of this model."}));
  }
  prompt.before.assign(framed.ids.begin(), at);
  prompt.after.assign(at + static_cast<std::ptrdiff_t>(plain.size()), framed.ids.end());
  return {};
}

Result<EntityPrompt> make_prompt(const TaskModel& task, const EntityModel& model,
                                 std::span<const std::string> labels) {
  EntityPrompt prompt;
  for (const std::string& label : labels) {
    const auto& known = prompt.labels;
    if (std::find(known.begin(), known.end(), label) == known.end()) prompt.labels.push_back(label);
  }
  if (labels.empty()) return invalid_argument("[labels] are none; give at least one label.");
  VKF_ASSIGN(const std::vector<Encoding> encodings, encode_apart(task, prompt.labels));
  VKF_CHECK(add_frame(task, prompt.labels[0], encodings[0].ids, prompt));
  for (size_t i = 0; i < encodings.size(); ++i) {
    const std::vector<TokenId>& ids = encodings[i].ids;
    const bool marked = std::find(ids.begin(), ids.end(), model.label_marker) != ids.end();
    if (ids.empty() || marked) {
      return invalid_argument(message({"[label] '", prompt.labels[i], "' ",
                                       (marked ? "holds the marker of labels" : "has no tokens"),
                                       "; give a word or a phrase."}));
    }
    prompt.before.push_back(model.label_marker);
    prompt.before.insert(prompt.before.end(), ids.begin(), ids.end());
  }
  prompt.before.push_back(model.text_marker);
  return prompt;
}

// The words of text number `index` of a call, with their ranges.
Result<std::vector<std::string>> split_words(const TaskModel& task, const EntityModel& model,
                                             const TextRegex& splitter, const std::string& text,
                                             size_t index, std::vector<TextRange>& ranges) {
  const std::string name = "[text " + std::to_string(index + 1) + "]";
  VKF_ASSIGN(const std::u32string points, decode_utf8(text, name));
  VKF_ASSIGN(std::vector<CharSpan> spans, splitter.find_all(points));
  if (static_cast<int64_t>(spans.size()) > model.most_words) {
    if (task.long_text == LongText::kError) {
      return invalid_argument(
          message({name, " has ", spans.size(), " words, but the model takes at most ",
                   model.most_words, "; shorten it, or ask for truncation"}));
    }
    spans.resize(static_cast<size_t>(model.most_words));
  }
  std::vector<std::string> words;
  for (const CharSpan& span : spans) {
    ranges.push_back({static_cast<int32_t>(span.begin), static_cast<int32_t>(span.end)});
    words.push_back(
        encode_utf8(std::u32string_view(points).substr(span.begin, span.end - span.begin)));
  }
  return words;
}

Result<EntityText> encode_text(const TaskModel& task, const EntityModel& model,
                               const EntityPrompt& prompt, const TextRegex& splitter,
                               const std::string& text, size_t index) {
  EntityText made;
  VKF_ASSIGN(const std::vector<std::string> words,
             split_words(task, model, splitter, text, index, made.words));
  VKF_ASSIGN(const std::vector<Encoding> encodings, encode_apart(task, words));
  std::vector<TokenId>& ids = made.encoding.ids;
  ids = prompt.before;
  made.words_mask.assign(ids.size(), 0);
  const auto limit = static_cast<size_t>(task.token_limit());
  for (size_t n = 0; n < encodings.size(); ++n) {
    const std::vector<TokenId>& tokens = encodings[n].ids;
    if (ids.size() + tokens.size() + prompt.after.size() > limit) {
      if (task.long_text == LongText::kError) {
        return invalid_argument(
            message({"[text ", index + 1, "] with its labels has more than the ", limit,
                     " tokens that the model takes; shorten it, name "
                     "fewer labels, or ask for truncation"}));
      }
      made.words.resize(n);
      break;
    }
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    made.words_mask.resize(ids.size(), 0);
    if (!tokens.empty()) {
      made.words_mask[ids.size() - tokens.size()] = static_cast<int64_t>(n) + 1;
    }
  }
  ids.insert(ids.end(), prompt.after.begin(), prompt.after.end());
  made.words_mask.resize(ids.size(), 0);
  made.encoding.type_ids.assign(ids.size(), 0);
  return made;
}

TensorMap entity_inputs(const TaskModel& task, const EntityModel& model,
                        std::span<const EntityText> texts, std::span<const size_t> places) {
  std::vector<Encoding> encodings;
  std::vector<size_t> rows;
  int64_t most = 1;
  for (const size_t place : places) {
    rows.push_back(encodings.size());
    encodings.push_back(texts[place].encoding);
    most = std::max(most, static_cast<int64_t>(texts[place].words.size()));
  }
  most = (most + kWordStep - 1) / kWordStep * kWordStep;
  TensorMap inputs = token_inputs(task, encodings, rows);
  const Shape shape = inputs["input_ids"].shape;
  const auto batch = static_cast<int64_t>(places.size());
  std::vector<int64_t> numbers(static_cast<size_t>(element_count(shape)), 0);
  std::vector<int64_t> lengths;
  std::vector<int64_t> spans;
  for (size_t r = 0; r < places.size(); ++r) {
    const EntityText& text = texts[places[r]];
    std::copy(text.words_mask.begin(), text.words_mask.end(),
              numbers.begin() + static_cast<std::ptrdiff_t>(r) * shape[1]);
    const auto words = static_cast<int64_t>(text.words.size());
    lengths.push_back(words);
    for (int64_t s = 0; s < most; ++s) {
      for (int64_t k = 0; k < model.max_width; ++k) spans.push_back(s + k < words ? 1 : 0);
    }
  }
  inputs["words_mask"] = Tensor::from_ints(shape, numbers);
  inputs["text_lengths"] = Tensor::from_ints({batch}, lengths);
  inputs["span_mask"] = Tensor::from_ints({batch, most, model.max_width}, spans);
  return inputs;
}

// Whether a span cannot stand beside one that was chosen before.
bool excludes(const WordSpan& chosen, const WordSpan& other, const EntityOptions& options) {
  if (chosen.first == other.first && chosen.last == other.last) return !options.multi_label;
  if (other.first > chosen.last || chosen.first > other.last) return false;
  if (!options.nested) return true;
  const bool inside = other.first >= chosen.first && other.last <= chosen.last;
  const bool around = other.first <= chosen.first && other.last >= chosen.last;
  return !inside && !around;
}

// The spans above the threshold, the likeliest first, that do not exclude each other; by words.
std::vector<WordSpan> choose_spans(std::span<const float> logits, size_t words, size_t widths,
                                   size_t labels, const EntityOptions& options) {
  std::vector<WordSpan> found;
  for (size_t s = 0; s < words; ++s) {
    for (size_t k = 0; k < widths && s + k < words; ++k) {
      for (size_t c = 0; c < labels; ++c) {
        const auto logit = static_cast<double>(logits[(s * widths + k) * labels + c]);
        const double score = 1.0 / (1.0 + std::exp(-logit));
        if (score > options.threshold) found.push_back({s, s + k, c, score});
      }
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const WordSpan& a, const WordSpan& b) { return a.score > b.score; });
  std::vector<WordSpan> chosen;
  for (const WordSpan& span : found) {
    const bool free = std::none_of(chosen.begin(), chosen.end(), [&](const WordSpan& other) {
      return excludes(other, span, options);
    });
    if (free) chosen.push_back(span);
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const WordSpan& a, const WordSpan& b) { return a.first < b.first; });
  return chosen;
}

// Texts that run together at most, for what a pass computes of their spans.
size_t entity_batch(const TaskModel& task, const EntityModel& model,
                    std::span<const EntityText> texts) {
  int64_t most = kWordStep;
  for (const EntityText& text : texts) {
    most = std::max(most, static_cast<int64_t>(text.words.size()) + kWordStep);
  }
  const int64_t row = most * model.max_width * 4 * model.width * int64_t{sizeof(float)};
  return static_cast<size_t>(
      std::clamp<int64_t>(kMostSpanBytes / row, 1, static_cast<int64_t>(task.batch)));
}

}  // namespace

Result<std::vector<std::vector<Entity>>> zero_shot_entities_of(TaskModel& task,
                                                               std::span<const std::string> texts,
                                                               std::span<const std::string> labels,
                                                               const EntityOptions& options) {
  if (task.facts().head != HeadKind::kEntities) {
    return unsupported(message({"[zero_shot_entities] a ", task.facts().architecture,
                                " does not find entities of labels that you name. Take a "
                                "GLiNER."}));
  }
  if (!(options.threshold >= 0 && options.threshold <= 1)) {
    return invalid_argument(message(
        {"[threshold] is ", std::to_string(options.threshold), "; a probability is 0 to 1."}));
  }
  VKF_ASSIGN(const EntityModel model, read_entity_model(task));
  VKF_ASSIGN(const EntityPrompt prompt, make_prompt(task, model, labels));
  VKF_ASSIGN(const TextRegex splitter, TextRegex::compile(kWords, "words"));
  std::vector<EntityText> rows;
  std::vector<size_t> lengths;
  for (size_t i = 0; i < texts.size(); ++i) {
    VKF_ASSIGN(EntityText row, encode_text(task, model, prompt, splitter, texts[i], i));
    lengths.push_back(row.words.empty() ? 0 : row.encoding.ids.size());
    rows.push_back(std::move(row));
  }
  std::vector<std::vector<Entity>> entities(texts.size());
  const auto run = [&](std::span<const size_t> places) -> Status {
    VKF_ASSIGN(const TensorMap outputs,
               task.session->run(entity_inputs(task, model, rows, places), {}));
    VKF_ASSIGN(const TaskOutput logits, task_output(outputs, "logits"));
    for (size_t r = 0; r < places.size(); ++r) {
      const std::vector<TextRange>& words = rows[places[r]].words;
      for (const WordSpan& span :
           choose_spans(logits.row(r), words.size(), static_cast<size_t>(model.max_width),
                        prompt.labels.size(), options)) {
        const TextRange range = {words[span.first].begin, words[span.last].end};
        entities[places[r]].push_back(
            {prompt.labels[span.label], span.score, text_slice(texts[places[r]], range), range});
      }
    }
    return {};
  };
  VKF_CHECK(run_batches(lengths, entity_batch(task, model, rows), run));
  return entities;
}

}  // namespace vkformer
