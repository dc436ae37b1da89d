#include "reference/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace vkformer::reference {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Probabilities of what is left.
std::vector<double> softmax(std::span<const double> scores) {
  const double peak = *std::max_element(scores.begin(), scores.end());
  std::vector<double> p(scores.size());
  std::transform(scores.begin(), scores.end(), p.begin(),
                 [peak](double x) { return std::exp(x - peak); });
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& value : p) value /= sum;
  return p;
}

// Tokens by falling values; ties by ascending token.
std::vector<size_t> falling(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [values](size_t a, size_t b) { return values[a] > values[b]; });
  return order;
}

// How many in this order it takes to reach a share.
size_t count_to(const std::vector<size_t>& order, const std::vector<double>& p, double share) {
  double sum = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    sum += p[order[i]];
    if (sum >= share) return i + 1;
  }
  return order.size();
}

void keep_top_k(std::vector<double>& scores, size_t k) {
  if (k >= scores.size()) return;
  const double last = scores[falling(scores)[k - 1]];
  for (double& x : scores) x = x < last ? kNever : x;
}

void keep_top_p(std::vector<double>& scores, double share) {
  const std::vector<size_t> order = falling(scores);
  const size_t count = count_to(order, softmax(scores), share);
  for (size_t i = count; i < order.size(); ++i) scores[order[i]] = kNever;
}

void keep_typical(std::vector<double>& scores, double share) {
  const std::vector<double> p = softmax(scores);
  double entropy = 0;
  for (double value : p) entropy -= value > 0 ? value * std::log(value) : 0;
  std::vector<double> nearness(p.size());
  std::transform(p.begin(), p.end(), nearness.begin(),
                 [entropy](double value) { return -std::abs(-std::log(value) - entropy); });
  const std::vector<size_t> order = falling(nearness);
  const double last = nearness[order[count_to(order, p, share) - 1]];
  for (size_t t = 0; t < scores.size(); ++t) scores[t] = nearness[t] < last ? kNever : scores[t];
}

bool ends_with(std::span<const int64_t> history, std::span<const int64_t> tokens) {
  return history.size() >= tokens.size() &&
         std::equal(tokens.begin(), tokens.end(), history.end() - std::ssize(tokens));
}

}  // namespace

std::vector<double> penalised_scores(std::span<const double> logits,
                                     std::span<const int64_t> history, size_t prompt,
                                     const PenaltySettings& settings) {
  std::vector<double> scores(logits.begin(), logits.end());
  for (const ScoreRule& rule : settings.rules) {
    const std::span<const int64_t> before(rule.tokens.data(), rule.tokens.size() - 1);
    if (ends_with(history, before)) scores[static_cast<size_t>(rule.tokens.back())] += rule.bias;
  }
  for (size_t t = 0; t < scores.size(); ++t) {
    const auto token = static_cast<int64_t>(t);
    if (std::count(history.begin(), history.end(), token) > 0) {
      scores[t] = scores[t] < 0 ? scores[t] * settings.repetition : scores[t] / settings.repetition;
    }
    const auto generated = history.subspan(std::min(prompt, history.size()));
    const auto times = std::count(generated.begin(), generated.end(), token);
    if (times > 0) scores[t] -= settings.presence + settings.frequency * static_cast<double>(times);
  }
  const auto n = static_cast<size_t>(settings.no_repeat);
  for (size_t i = 0; n > 0 && i + n <= history.size(); ++i) {
    const std::span<const int64_t> earlier = history.subspan(i, n - 1);
    if (ends_with(history, earlier)) scores[static_cast<size_t>(history[i + n - 1])] = kNever;
  }
  return scores;
}

std::vector<double> draw_probabilities(std::span<const double> scores,
                                       const DrawSettings& settings) {
  std::vector<double> left(scores.begin(), scores.end());
  if (settings.temperature == 0) {
    std::vector<double> only(left.size(), 0.0);
    only[falling(left)[0]] = 1;
    return only;
  }
  for (double& x : left) x /= settings.temperature;
  if (settings.top_k > 0) keep_top_k(left, static_cast<size_t>(settings.top_k));
  if (settings.top_p < 1) keep_top_p(left, settings.top_p);
  const double least = *std::max_element(left.begin(), left.end()) + std::log(settings.min_p);
  for (double& x : left) x = x < least ? kNever : x;
  if (settings.typical_p < 1) keep_typical(left, settings.typical_p);
  return softmax(left);
}

}  // namespace vkformer::reference
