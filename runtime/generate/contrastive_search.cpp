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

// Logits and hidden states of rows that share all tokens but the last.
struct Context {
  std::vector<float> logits;  // (B,T,V)
  std::vector<float> hidden;  // (B,T,D)
  size_t length = 0, vocab = 0, width = 0;

  std::span<const float> logits_at(size_t row, size_t t) const {
    return std::span(logits).subspan((row * length + t) * vocab, vocab);
  }
  std::span<const float> hidden_at(size_t row, size_t t) const {
    return std::span(hidden).subspan((row * length + t) * width, width);
  }
};

double dot(std::span<const float> a, std::span<const float> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                            [](float x, float y) { return double{x} * double{y}; });
}

// The largest cosine of a row's last hidden state with those before it, of `tokens` in all.
double likeness(const Context& context, size_t row, size_t tokens) {
  const auto last = context.hidden_at(row, tokens - 1);
  const double own = dot(last, last);
  double most = -1;
  for (size_t t = 0; t + 1 < tokens; ++t) {
    const auto other = context.hidden_at(row, t);
    const double product = dot(last, other);
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

// The row whose last token is likely and unlike what was before; as many as rows where NaN is.
size_t most_contrasting(const Context& context, const std::vector<Likely>& likely, size_t tokens,
                        double contrast) {
  double best = -std::numeric_limits<double>::infinity();
  size_t row = likely.size();
  for (size_t j = 0; j < likely.size(); ++j) {
    const double score =
        (1 - contrast) * likely[j].probability - contrast * likeness(context, j, tokens);
    if (!(score > best)) continue;
    best = score;
    row = j;
  }
  return row;
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

// Of the encoder's inputs, if there are some, and a prompt.
Result<Hypothesis> search_one(const ModelFacts& facts, const TensorMap& source,
                              const std::vector<int64_t>& prompt, size_t input,
                              const GenerateOptions& options, const RunPass& run) {
  VKF_ASSIGN(const GenerationSizes sizes,
             generation_sizes(facts, static_cast<int64_t>(prompt.size()), {}, options));
  const auto pass = [&](const std::vector<std::vector<int64_t>>& rows) -> Result<Context> {
    const int64_t length = padded_length(facts, static_cast<int64_t>(rows[0].size()));
    const auto count = static_cast<int64_t>(rows.size());
    VKF_CHECK(check_logits(facts, length * count, "contrastive_tokens"));
    VKF_ASSIGN(TensorMap repeated, repeated_inputs(source, count));
    VKF_ASSIGN(const TensorMap outputs, run(pass_inputs(facts, std::move(repeated), rows, length)));
    Context context{.length = static_cast<size_t>(length)};
    context.vocab = static_cast<size_t>(facts.target_vocab);
    context.width = static_cast<size_t>(outputs.at("last_hidden_state").shape.back());
    VKF_ASSIGN(context.logits, outputs.at("logits").to_floats());
    VKF_ASSIGN(context.hidden, outputs.at("last_hidden_state").to_floats());
    return context;
  };
  Hypothesis found{.ids = prompt};
  VKF_ASSIGN(Context context, pass({prompt}));
  size_t row = 0;
  for (int64_t t = 0; t < sizes.new_tokens; ++t) {
    const std::span<const float> logits = context.logits_at(row, found.ids.size() - 1);
    if (std::any_of(logits.begin(), logits.end(), [](float v) { return std::isnan(v); }))
      return became_nan("logits", input);
    const std::vector<Likely> likely =
        likeliest(logits, options.contrastive_tokens, forbidden(options, t));
    std::vector<std::vector<int64_t>> rows(likely.size(), found.ids);
    for (size_t j = 0; j < likely.size(); ++j) rows[j].push_back(likely[j].token);
    if (rows.empty()) {
      return invalid_argument(message(
          {"[contrastive_tokens] no token is allowed for input ", input, "; suppress fewer"}));
    }
    VKF_ASSIGN(context, pass(rows));
    row = most_contrasting(context, likely, rows[0].size(), options.contrast);
    if (row == likely.size()) return became_nan("hidden states", input);
    found.ids = rows[row];
    found.log_probabilities.push_back(static_cast<float>(likely[row].log_probability));
    found.score += likely[row].log_probability;
    const int64_t id = likely[row].token;
    const auto verdict = options.on_token
                             ? options.on_token({input, 0, id, likely[row].log_probability})
                             : TokenVerdict::kGoOn;
    if (verdict == TokenVerdict::kCancel) {
      return cancelled(
          message({"[generate] the caller asked to stop behind a token of input ", input}));
    }
    const bool ends = std::find(options.eos.begin(), options.eos.end(), id) != options.eos.end();
    if (ends || verdict == TokenVerdict::kEnd) break;
  }
  return found;
}

}  // namespace

Result<Generation> contrastive_search(const ModelFamily& family, const TensorMap& inputs,
                                      const GenerateOptions& options, const RunPass& run) {
  VKF_CHECK(check_contrast(options));
  StepShape shape;
  VKF_ASSIGN(const GenerationInputs read, read_generation_inputs(family, inputs, options, shape));
  Generation result(read.prompts.size());
  for (size_t i = 0; i < read.prompts.size(); ++i) {
    const bool decoder = family.facts().kind == ModelKind::kDecoder;
    const TensorMap source = decoder ? TensorMap() : input_row(inputs, static_cast<int64_t>(i));
    VKF_ASSIGN(Hypothesis found,
               search_one(family.facts(), source, read.prompts[i], i, options, run));
    result[i].push_back(std::move(found));
  }
  return result;
}

}  // namespace vkformer
