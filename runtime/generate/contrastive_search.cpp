#include "generate/contrastive_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/message.h"
#include "generate/token_choice.h"

namespace vkformer {
namespace {

constexpr int kMostCandidates = 64;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double dot(std::span<const float> a, std::span<const float> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                            [](float x, float y) { return double{x} * double{y}; });
}

// The hidden states (T, D) of a text, token by token.
struct TextStates {
  size_t width = 0;
  std::vector<float> values;

  void append(std::span<const float> state) {
    values.insert(values.end(), state.begin(), state.end());
  }
};

// The largest cosine of a token's hidden state with those of the text before it.
double likeness(const TextStates& text, std::span<const float> state) {
  const double own = dot(state, state);
  double most = -1;
  for (size_t at = 0; at < text.values.size(); at += text.width) {
    const auto other = std::span(text.values).subspan(at, text.width);
    const double product = dot(state, other);
    const double squares = own * dot(other, other);
    // max() would pass over a NaN.
    if (!std::isfinite(product) || !std::isfinite(squares)) return kNaN;
    most = std::max(most, product / std::sqrt(squares));
  }
  return most;
}

struct Likely {
  int64_t token = 0;
  double probability = 0;      // among those that are allowed
  double log_probability = 0;  // by the logits
};

double log_sum(std::span<const double> x) {
  const double peak = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double v : x) sum += std::exp(v - peak);
  return peak + std::log(sum);
}

Error became_nan(const char* what, size_t input) {
  return {ErrorCode::kDriver,
          message({"[generate] the ", what, " of input ", input,
                   " became NaN; the weights hold NaN or infinity, or this driver computes wrong "
                   "results"})};
}

// The k likeliest tokens that are not suppressed, best first. Precondition: no logit is NaN, which
// has no place in an order.
std::vector<Likely> likeliest(std::span<const float> logits, int k,
                              const std::vector<int64_t>& never) {
  std::vector<double> x(logits.begin(), logits.end());
  const double all = log_sum(x);
  for (int64_t token : never) {
    if (token >= 0 && token < static_cast<int64_t>(x.size()))
      x[static_cast<size_t>(token)] = -std::numeric_limits<double>::infinity();
  }
  const double left = log_sum(x);
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto count = std::min(static_cast<size_t>(k), order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                    [&](size_t a, size_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); });
  std::vector<Likely> found;
  for (size_t i = 0; i < count && !std::isinf(x[order[i]]); ++i) {
    found.push_back(
        {static_cast<int64_t>(order[i]), std::exp(x[order[i]] - left), x[order[i]] - all});
  }
  return found;
}

// Tokens that are not allowed as number t.
std::vector<int64_t> forbidden(const GenerateOptions& options, int64_t t) {
  std::vector<int64_t> never = options.suppress;
  const auto forbid = [&](const std::vector<int64_t>& tokens) {
    never.insert(never.end(), tokens.begin(), tokens.end());
  };
  if (t == 0) forbid(options.begin_suppress);
  if (t < options.min_new_tokens) forbid(options.eos);
  return never;
}

// What a step gave for its candidates, one row each.
struct CandidateRows {
  std::vector<float> logits;  // (rows, V)
  std::vector<float> states;  // (rows, D)

  std::span<const float> row_of(const std::vector<float>& values, size_t row, size_t width) const {
    return std::span(values).subspan(row * width, width);
  }
};

// The candidate that is likely and unlike what was before; their number where NaN is.
size_t most_contrasting(const TextStates& text, const CandidateRows& rows,
                        const std::vector<Likely>& likely, double contrast) {
  double best = -std::numeric_limits<double>::infinity();
  size_t chosen = likely.size();
  for (size_t j = 0; j < likely.size(); ++j) {
    const auto state = rows.row_of(rows.states, j, text.width);
    const double score = (1 - contrast) * likely[j].probability - contrast * likeness(text, state);
    if (!(score > best)) continue;
    best = score;
    chosen = j;
  }
  return chosen;
}

Status check_contrast(const GenerateOptions& o) {
  if (o.contrastive_tokens < 2 || o.contrastive_tokens > kMostCandidates || !(o.contrast >= 0) ||
      !(o.contrast <= 1)) {
    return invalid_argument(
        message({"[contrastive_tokens] is ", o.contrastive_tokens, " and contrast ", o.contrast,
                 ", but they must lie between 2 and ", kMostCandidates, " and between 0 and 1"}));
  }
  const bool alone = o.beams == 1 && o.return_sequences == 1 && !needs_choice(o) && !o.context &&
                     o.forced_bos < 0 && o.forced_eos < 0;
  if (alone) return {};
  return unsupported(
      "[contrastive_tokens] contrastive search knows no beams, draws, penalties, grammars, "
      "contexts "
      "or forced tokens; leave them away");
}

// The sizes of a search after a prompt: its rows are the candidates, and the whole prompt is in
// the cache before the first step.
Result<GenerationSizes> sizes_of(const ModelFacts& facts, int64_t prompt, GenerationKey key,
                                 const GenerateOptions& options) {
  GenerationKey plain = key;
  plain.shape.beams = 1;
  VKF_ASSIGN(GenerationSizes sizes, generation_sizes(facts, prompt, plain, options));
  const bool exact = facts.prompts == ModelFacts::Prompts::kExact;
  key.shape.prompt = prompt_bucket(prompt + 1, exact);
  key.shape.capacity =
      std::max(sizes.key.shape.capacity, capacity_bucket(key.shape.prompt + sizes.new_tokens));
  sizes.key = key;
  return sizes;
}

// A search after one prompt. Every step feeds the candidates of one position, each in its row of
// the cache. The positions before are those of the rows that were chosen (ancestry).
class ContrastiveSearch {
 public:
  ContrastiveSearch(DecodeStep& step, const GenerateOptions& options, size_t input)
      : step_(step), options_(options), input_(input) {}

  // `text` has the states of the prompt, `logits` those after it.
  Result<Hypothesis> run(const GenerationInputs& inputs, int64_t new_tokens, TextStates text,
                         std::vector<float> logits) {
    Hypothesis found{.ids = inputs.prompts[0]};
    VKF_CHECK(begin(inputs));
    for (int64_t t = 0; t < new_tokens; ++t) {
      if (std::any_of(logits.begin(), logits.end(), [](float v) { return std::isnan(v); }))
        return became_nan("logits", input_);
      const std::vector<Likely> likely =
          likeliest(logits, options_.contrastive_tokens, forbidden(options_, t));
      if (likely.empty()) {
        return invalid_argument(message(
            {"[contrastive_tokens] no token is allowed for input ", input_, "; suppress fewer"}));
      }
      VKF_ASSIGN(const CandidateRows rows, take_step(likely, found.ids.size(), t == 0));
      const size_t row = most_contrasting(text, rows, likely, options_.contrast);
      if (row == likely.size()) return became_nan("hidden states", input_);
      VKF_CHECK(take_over(row, found.ids.size()));
      text.append(rows.row_of(rows.states, row, text.width));
      const auto behind = rows.row_of(rows.logits, row, step_.params().vocab);
      logits.assign(behind.begin(), behind.end());
      VKF_ASSIGN(const bool more, add_token(likely[row], found));
      if (!more) break;
    }
    return found;
  }

 private:
  // The prompt's keys are those of the first row.
  Status begin(const GenerationInputs& inputs) {
    const SearchParams& p = step_.params();
    GenerationInputs with_first = inputs;
    with_first.prompts[0].push_back(0);  // the pass reads all tokens of a prompt but the last
    VKF_CHECK(step_.write_prompts(with_first));
    std::vector<uint32_t> ancestry(size_t{p.beams} * p.capacity);
    for (uint32_t row = 0; row < p.beams; ++row) {
      const auto own = ancestry.begin() + static_cast<ptrdiff_t>(size_t{row} * p.capacity);
      std::fill(own + static_cast<ptrdiff_t>(inputs.prompts[0].size()), own + p.capacity, row);
    }
    return step_.memory().write("ancestry", 0, ancestry);
  }

  // Feeds the candidates at `position`.
  Result<CandidateRows> take_step(const std::vector<Likely>& likely, size_t position, bool first) {
    std::vector<FedToken> fed;
    for (const Likely& candidate : likely) {
      fed.push_back({.row = static_cast<uint32_t>(fed.size()),
                     .position = static_cast<uint32_t>(position),
                     .token = static_cast<uint32_t>(candidate.token)});
    }
    const auto count = static_cast<uint32_t>(fed.size());
    VKF_CHECK(step_.write_slots(fed, 1, static_cast<uint32_t>(position)));
    VKF_CHECK(step_.write_groups(count, count));
    CandidateRows rows;
    rows.logits.resize(size_t{count} * step_.params().vocab);
    rows.states.resize(size_t{count} * static_cast<size_t>(width()));
    const TensorPart results[] = {{"logits", 0, rows.logits.size() * sizeof(float)},
                                  {"last_hidden_state", 0, rows.states.size() * sizeof(float)}};
    const auto prompt = first ? DecodeStep::Prompt::kYes : DecodeStep::Prompt::kNo;
    GroupMemory& memory = step_.memory();
    VKF_CHECK(step_.submit(prompt, RecordingPart::kAll, 1, results));
    VKF_CHECK(memory.wait());
    VKF_CHECK(memory.read(results[0], std::as_writable_bytes(std::span(rows.logits))));
    VKF_CHECK(memory.read(results[1], std::as_writable_bytes(std::span(rows.states))));
    return rows;
  }

  // Every row goes on from the chosen one.
  Status take_over(size_t chosen, size_t position) {
    const SearchParams& p = step_.params();
    const uint32_t owner[] = {static_cast<uint32_t>(chosen)};
    for (uint32_t row = 0; row < p.beams; ++row) {
      VKF_CHECK(step_.memory().write("ancestry", uint64_t{row} * p.capacity + position, owner));
    }
    return {};
  }

  // Takes a token into the text; false where nothing comes after it.
  Result<bool> add_token(const Likely& token, Hypothesis& found) const {
    found.ids.push_back(token.token);
    found.log_probabilities.push_back(static_cast<float>(token.log_probability));
    found.score += token.log_probability;
    const auto verdict = options_.on_token
                             ? options_.on_token({input_, 0, token.token, token.log_probability})
                             : TokenVerdict::kGoOn;
    if (verdict == TokenVerdict::kCancel) {
      return cancelled(
          message({"[generate] the caller asked to stop after a token of input ", input_}));
    }
    const std::vector<int64_t>& eos = options_.eos;
    return verdict == TokenVerdict::kGoOn &&
           std::find(eos.begin(), eos.end(), token.token) == eos.end();
  }

  int64_t width() const { return step_.model().family().facts().width; }

  DecodeStep& step_;
  const GenerateOptions& options_;
  size_t input_;
};

}  // namespace

Result<Generation> contrastive_search(const ContrastiveCall& call, const TensorMap& inputs,
                                      const GenerateOptions& options,
                                      GenerationCounters& counters) {
  VKF_CHECK(check_contrast(options));
  if (!options.adapters.empty()) {
    return unsupported(
        "[contrastive_tokens] contrastive search reads prompts by full passes, which have no "
        "adapters of requests; omit contrastive_tokens, or load the adapters merged.");
  }
  const ModelFacts& facts = call.family.facts();
  StepShape all;
  VKF_ASSIGN(const GenerationInputs read, read_single_inputs(call.family, inputs, options, all));
  if (!read.pictures.more.empty()) {
    return unsupported(
        "[contrastive_tokens] the inputs hold images, or prompts that see themselves both ways, "
        "which contrastive search cannot read; omit contrastive_tokens.");
  }
  Generation result(read.prompts.size());
  for (size_t i = 0; i < read.prompts.size(); ++i) {
    const TensorMap input = input_row(inputs, static_cast<int64_t>(i));
    GenerationKey key{.choice = GenerationKey::Choice::kHost};
    VKF_ASSIGN(const GenerationInputs own,
               read_single_inputs(call.family, input, options, key.shape));
    key.shape.beams = options.contrastive_tokens;
    key.shape.cache = call.cache;
    const auto tokens = static_cast<int64_t>(own.prompts[0].size());
    VKF_ASSIGN(const GenerationSizes sizes, sizes_of(facts, tokens, key, options));
    // The states of the prompt, with which those of candidates are compared, are a full pass's.
    const int64_t length = padded_length(facts, tokens);
    VKF_CHECK(check_logits(facts, length, "contrastive_tokens"));
    const TensorMap source = facts.kind == ModelKind::kDecoder ? TensorMap() : input;
    VKF_ASSIGN(const TensorMap outputs, call.run(pass_inputs(facts, source, own.prompts, length)));
    TextStates text{.width = static_cast<size_t>(facts.width)};
    VKF_ASSIGN(text.values, outputs.at("last_hidden_state").to_floats());
    text.values.resize(own.prompts[0].size() * text.width);
    VKF_ASSIGN(std::vector<float> logits, outputs.at("logits").to_floats());
    const auto vocab = static_cast<ptrdiff_t>(facts.target_vocab);
    logits.erase(logits.begin(), logits.begin() + (tokens - 1) * vocab);
    logits.resize(static_cast<size_t>(vocab));
    VKF_ASSIGN(const std::shared_ptr<DecodeStep> step, call.step_for(sizes.key));
    const int64_t submits = step->memory().submits();
    counters.cache_bytes += step->cache_bytes();
    ContrastiveSearch search(*step, options, i);
    VKF_ASSIGN(Hypothesis found,
               search.run(own, sizes.new_tokens, std::move(text), std::move(logits)));
    counters.steps += static_cast<int64_t>(found.log_probabilities.size());
    counters.submits += step->memory().submits() - submits;
    result[i].push_back(std::move(found));
  }
  return result;
}

}  // namespace vkformer
