// Questions to answers, as Hugging Face's question-answering pipeline finds them: windows over the
// context, start and end probabilities, the best spans of all windows.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/message.h"
#include "tasks/task_model.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

constexpr int64_t kUsualWindow = 384;   // tokens
constexpr int64_t kUsualOverlap = 128;  // tokens

// How a tokenizer marks where words begin or go on.
enum class WordMarks : uint8_t {
  kHashes,  // "##ing" goes on (WordPiece)
  kBlocks,  // "\u2581word" begins (SentencePiece)
  kBytes,   // "\u0120word" begins; punctuation and digits are words of their own (byte-level BPE)
};

// A question with its context: the row of a pair is special tokens, the question's, special ones,
// the context's, special ones.
struct PairTokens {
  Encoding row;
  size_t context_begin = 0;
  size_t context_end = 0;
  std::u32string context;
  WordMarks marks = WordMarks::kHashes;
};

// Context tokens [begin, end) and where they stand in the window's row.
struct Window {
  size_t question = 0;
  size_t begin = 0;
  size_t end = 0;
};

struct Span {
  size_t start = 0;
  size_t end = 0;  // the last token
  double score = 0;
};

Error with_number(const Error& error, size_t index) {
  return error.with_context(message({"[question ", index + 1, "]"}));
}

bool holds_at(const std::vector<TokenId>& ids, size_t at, const std::vector<TokenId>& part) {
  return at + part.size() <= ids.size() &&
         std::equal(part.begin(), part.end(), ids.begin() + static_cast<std::ptrdiff_t>(at));
}

WordMarks word_marks(const PairTokens& pair) {
  for (size_t i = pair.context_begin; i < pair.context_end; ++i) {
    if (pair.row.tokens[i].starts_with("\xE2\x96\x81")) return WordMarks::kBlocks;
    if (pair.row.tokens[i].starts_with("\xC4\xA0")) return WordMarks::kBytes;
  }
  return WordMarks::kHashes;
}

// Where the context's tokens stand in the row of the pair.
Result<PairTokens> encode_question(const TaskModel& task, const Question& question) {
  constexpr size_t kMostSpecial = 8;  // tokens before a text
  EncodeOptions plain;
  plain.special_tokens = SpecialTokens::kExclude;
  const std::string_view texts[] = {question.question, question.context};
  const std::span<const std::string_view> both(texts);
  VKF_ASSIGN(const Encoding first, task.tokenizer->encode(both.first(1), plain));
  VKF_ASSIGN(const Encoding second, task.tokenizer->encode(both.last(1), plain));
  PairTokens pair;
  VKF_ASSIGN(pair.row, task.tokenizer->encode(both, {}));
  VKF_ASSIGN(pair.context, decode_utf8(question.context, "context"));
  for (size_t a = 0; a <= kMostSpecial; ++a) {
    if (!holds_at(pair.row.ids, a, first.ids)) continue;
    for (size_t b = 0; b <= kMostSpecial; ++b) {
      const size_t begin = a + first.ids.size() + b;
      if (!holds_at(pair.row.ids, begin, second.ids)) continue;
      pair.context_begin = begin;
      pair.context_end = begin + second.ids.size();
      pair.marks = word_marks(pair);
      return pair;
    }
  }
  return unsupported(
      "[tokenizer] gives pairs of texts in which question and context do not follow each other; "
      "such a tokenizer cannot be used for answers");
}

// Windows of `most` context tokens that overlap by `overlap`.
void add_windows(size_t question, size_t tokens, size_t most, size_t overlap,
                 std::vector<Window>& windows) {
  for (size_t begin = 0;; begin += most - overlap) {
    const size_t end = std::min(tokens, begin + most);
    windows.push_back({question, begin, end});
    if (end == tokens) return;
  }
}

// The row of a pair with only the window's part of the context.
Encoding window_row(const PairTokens& pair, const Window& window) {
  Encoding row;
  const auto add = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      row.ids.push_back(pair.row.ids[i]);
      row.type_ids.push_back(pair.row.type_ids[i]);
    }
  };
  add(0, pair.context_begin);
  add(pair.context_begin + window.begin, pair.context_begin + window.end);
  add(pair.context_end, pair.row.ids.size());
  return row;
}

// Softmax over the first token, which stands for "no answer", and the context's; 0 elsewhere.
std::vector<double> span_scores(std::span<const float> logits, size_t first, size_t count,
                                bool has_first) {
  std::vector<float> kept;
  kept.push_back(has_first ? logits[0] : -HUGE_VALF);
  for (size_t i = 0; i < count; ++i) kept.push_back(logits[first + i]);
  return softmax_of(kept);
}

// The best spans of at most `longest` tokens; tokens are counted from the window's first context
// token. starts[0] and ends[0] belong to "no answer".
std::vector<Span> best_spans(const std::vector<double>& starts, const std::vector<double>& ends,
                             size_t longest, size_t top) {
  std::vector<Span> spans;
  const auto better = [](const Span& a, const Span& b) { return a.score > b.score; };
  for (size_t s = 1; s < starts.size(); ++s) {
    for (size_t e = s; e < std::min(ends.size(), s + longest); ++e) {
      const Span span = {s - 1, e - 1, starts[s] * ends[e]};
      if (spans.size() == top && !better(span, spans.back())) continue;
      spans.insert(std::upper_bound(spans.begin(), spans.end(), span, better), span);
      if (spans.size() > top) spans.pop_back();
    }
  }
  return spans;
}

int letter_class(char32_t c) {
  if (c >= U'0' && c <= U'9') return 1;
  const bool letter = (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || c >= 0x80;
  return letter ? 2 : 0;
}

// Whether context token `i` goes on with the word of the token before it.
bool continues_word(const PairTokens& pair, size_t i) {
  if (i <= pair.context_begin || i >= pair.context_end) return false;
  const TextRange before = pair.row.offsets[i - 1];
  const TextRange here = pair.row.offsets[i];
  const std::string& token = pair.row.tokens[i];
  if (pair.marks == WordMarks::kHashes) return token.starts_with("##");
  if (pair.marks == WordMarks::kBlocks) return !token.starts_with("\xE2\x96\x81");
  if (before.end > here.begin) return true;  // bytes of one character
  if (before.end != here.begin || before.end < 1 || token.starts_with("\xC4\xA0")) return false;
  if (pair.row.tokens[i - 1] == "\xC4\xA0") return true;  // the space that a word begins with
  const auto place = static_cast<size_t>(here.begin);
  if (place >= pair.context.size()) return false;
  return letter_class(pair.context[place - 1]) == letter_class(pair.context[place]);
}

// Characters of the words that a span of context tokens touches.
TextRange span_range(const PairTokens& pair, const Window& window, const Span& span) {
  size_t first = pair.context_begin + window.begin + span.start;
  size_t last = pair.context_begin + window.begin + span.end;
  while (continues_word(pair, first)) --first;
  while (continues_word(pair, last + 1)) ++last;
  return {pair.row.offsets[first].begin, pair.row.offsets[last].end};
}

std::string context_slice(const PairTokens& pair, TextRange range) {
  const auto begin = std::min(static_cast<size_t>(range.begin), pair.context.size());
  const auto end = std::min(static_cast<size_t>(range.end), pair.context.size());
  return encode_utf8(std::u32string_view(pair.context).substr(begin, end - begin));
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 'a' - 'A');
  }
  return text;
}

// The same text from two windows is one answer.
void add_answer(std::vector<Answer>& answers, Answer answer) {
  for (Answer& known : answers) {
    if (lower(known.text) != lower(answer.text)) continue;
    known.score += answer.score;
    return;
  }
  answers.push_back(std::move(answer));
}

struct Reading {
  std::vector<PairTokens> pairs;
  std::vector<Window> windows;
  std::vector<Encoding> rows;  // of the windows
};

Status read_question(const TaskModel& task, const Question& question, const AnswerOptions& options,
                     Reading& reading) {
  const int64_t limit = task.token_limit();
  const int64_t window = options.window > 0 ? options.window : std::min(kUsualWindow, limit);
  const int64_t overlap =
      options.overlap >= 0 ? options.overlap : std::min(kUsualOverlap, window / 2);
  VKF_ASSIGN(PairTokens pair, encode_question(task, question));
  const size_t tokens = pair.context_end - pair.context_begin;
  if (tokens == 0) return invalid_argument("[context] is empty; answers are parts of a context");
  const auto others = static_cast<int64_t>(pair.row.ids.size() - tokens);
  const int64_t room = window - others;
  if (window > limit || room < 1 || (static_cast<int64_t>(tokens) > room && room <= overlap)) {
    return invalid_argument(message({"[window] has ", window, " tokens, of which ", others,
                                     " are the question's and special ones and ", overlap,
                                     " overlap; the model takes at most ", limit,
                                     ", and a window must leave room for more than the overlap"}));
  }
  const size_t first = reading.windows.size();
  add_windows(reading.pairs.size(), tokens, static_cast<size_t>(room), static_cast<size_t>(overlap),
              reading.windows);
  for (size_t i = first; i < reading.windows.size(); ++i) {
    reading.rows.push_back(window_row(pair, reading.windows[i]));
  }
  reading.pairs.push_back(std::move(pair));
  return {};
}

Status check_answer_options(const AnswerOptions& options) {
  if (options.max_answer_tokens >= 1 && options.top >= 1 && options.window >= 0) return {};
  return invalid_argument(message({"[answer] max_answer_tokens is ", options.max_answer_tokens,
                                   ", top is ", options.top, " and window is ", options.window,
                                   "; the first two must be 1 or more, and window 0 or more"}));
}

}  // namespace

Result<std::vector<std::vector<Answer>>> answer_questions(TaskModel& task,
                                                          std::span<const Question> questions,
                                                          const AnswerOptions& options) {
  VKF_CHECK(check_answer_options(options));
  Reading reading;
  for (size_t i = 0; i < questions.size(); ++i) {
    const Status read = read_question(task, questions[i], options, reading);
    if (!read) return with_number(read.error(), i);
  }
  const auto top = static_cast<size_t>(options.top);
  std::vector<std::vector<Answer>> found(reading.windows.size());
  std::vector<double> none(questions.size(), 1.0);  // the least probability of "no answer"
  const auto run = [&](std::span<const size_t> places) -> Status {
    VKF_ASSIGN(const TensorMap outputs,
               task.session->run(token_inputs(task, reading.rows, places), {}));
    VKF_ASSIGN(const TaskOutput starts, task_output(outputs, "start_logits"));
    VKF_ASSIGN(const TaskOutput ends, task_output(outputs, "end_logits"));
    for (size_t row = 0; row < places.size(); ++row) {
      const Window& window = reading.windows[places[row]];
      const PairTokens& pair = reading.pairs[window.question];
      const bool has_first = pair.row.offsets[0] == TextRange{};
      const size_t count = window.end - window.begin;
      const auto s = span_scores(starts.row(row), pair.context_begin, count, has_first);
      const auto e = span_scores(ends.row(row), pair.context_begin, count, has_first);
      none[window.question] = std::min(none[window.question], s[0] * e[0]);
      const auto longest = static_cast<size_t>(options.max_answer_tokens);
      for (const Span& span : best_spans(s, e, longest, top)) {
        const TextRange range = span_range(pair, window, span);
        found[places[row]].push_back({context_slice(pair, range), span.score, range});
      }
    }
    return {};
  };
  VKF_CHECK(run_batches(token_counts(reading.rows), task.batch, run));
  std::vector<std::vector<Answer>> answers(questions.size());
  for (size_t i = 0; i < found.size(); ++i) {
    for (Answer& answer : found[i]) {
      add_answer(answers[reading.windows[i].question], std::move(answer));
    }
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    if (options.allow_no_answer) {
      answers[i].push_back({"", none[i], {}});
    }
    std::stable_sort(answers[i].begin(), answers[i].end(),
                     [](const Answer& a, const Answer& b) { return a.score > b.score; });
    if (answers[i].size() > top) answers[i].resize(top);
  }
  return answers;
}

}  // namespace vkformer
