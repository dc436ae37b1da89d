#include "choice_options.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <random>

#include "files.h"
#include "output.h"
#include "ranks.h"

namespace vkformer::cli {

namespace {

constexpr const char* kSampling =
    "Sampling (any of these but --seed turns it on; defaults: generation_config.json, else top-k "
    "50)";
constexpr const char* kPenalties = "Penalties";
constexpr const char* kTexts = "Texts";

volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

// TEXT=NUMBER; the text may hold further equals signs.
Result<TextBias> bias_of(const std::string& option) {
  const size_t at = option.rfind('=');
  TextBias bias;
  if (at != std::string::npos && at > 0) {
    bias.text = option.substr(0, at);
    const char* end = option.data() + option.size();
    const auto read = std::from_chars(option.data() + at + 1, end, bias.bias);
    if (read.ec == std::errc() && read.ptr == end) return bias;
  }
  return Error{ErrorCode::kInvalidArgument,
               "[logit-bias] '" + option + "' is no bias; write TEXT=NUMBER, such as ' yes=2.5'."};
}

}  // namespace

void add_choice_options(CLI::App& command, TextOptions& text, ChoiceCommandOptions& options) {
  const auto add = [&](const char* name, auto& to, const char* help, const char* group) {
    command.add_option(name, to, help)->group(group);
  };
  add("--temperature", text.temperature, "divides the scores; 0: the best token", kSampling);
  add("--top-k", text.top_k, "sampling among the k likeliest tokens; 0: all", kSampling);
  add("--top-p", text.top_p, "the smallest set of tokens with this total probability", kSampling);
  add("--min-p", text.min_p, "least probability, as a share of the likeliest token's", kSampling);
  add("--typical-p", text.typical_p, "locally typical tokens with this total probability",
      kSampling);
  add("--seed", text.seed, "same seed, same text (default: another one each time)", kSampling);
  add("--repetition-penalty", text.repetition_penalty,
      "divides the scores of tokens that came before", kPenalties);
  add("--presence-penalty", text.presence_penalty,
      "subtracted from the score of a token that was generated", kPenalties);
  add("--frequency-penalty", text.frequency_penalty,
      "subtracted from a token's score for each time it was generated", kPenalties);
  add("--no-repeat-ngram", text.no_repeat_ngram, "no n tokens in a row come twice", kPenalties);
  add("--bad-word", text.bad_words, "text that is never generated; may be repeated", kPenalties);
  add("--logit-bias", options.biases, "TEXT=NUMBER, added to the score of a token; may be repeated",
      kPenalties);
  add("--stop", text.stop, "text that ends the answer; may be repeated", kTexts);
  CLI::Option* grammar =
      add_file_option(command, "--grammar", options.grammar, "file with a GBNF grammar to keep to");
  grammar->group(kTexts);
  add_file_option(command, "--json-schema", options.json_schema,
                  "file with a JSON schema to keep to")
      ->excludes(grammar)
      ->group(kTexts);
}

Status finish_choice(ChoiceCommandOptions& options, TextOptions& text) {
  for (const std::string& option : options.biases) {
    Result<TextBias> bias = bias_of(option);
    if (!bias) return bias.error();
    text.biases.push_back(std::move(*bias));
  }
  const std::string& path = options.grammar.empty() ? options.json_schema : options.grammar;
  if (!path.empty()) {
    Result<std::string> content = read_text_file(path);
    if (!content) return content.error();
    Result<Grammar> grammar = options.grammar.empty() ? Grammar::from_json_schema(*content)
                                                      : Grammar::from_gbnf(*content);
    if (!grammar) return grammar.error().with_context(path);
    text.grammar = std::move(*grammar);
    options.constraint = std::move(*content);
  }
  if (text.seed) return {};
  uint64_t seed = std::random_device()();
  if (const Status shared = share_number(seed); !shared) return shared;
  text.seed = seed;
  return {};
}

double TextClock::now() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string TextClock::report(size_t tokens) const {
  const double seconds = now() - begin_;
  return std::to_string(tokens) + " tokens in " + fixed(seconds, 2) + " s, " +
         fixed(static_cast<double>(tokens) / std::max(seconds, 1e-9), 1) +
         " tokens/s, first text after " + fixed(first_ * 1000, 0) + " ms";
}

Interrupt::Interrupt() {
  interrupted = 0;
  before_ = std::signal(SIGINT, on_interrupt);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, before_);
}

bool Interrupt::raised() const {
  return interrupted != 0;
}

}  // namespace vkformer::cli
