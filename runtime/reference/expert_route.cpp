#include "reference/expert_route.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/check.h"
#include "base/message.h"
#include "reference/top_k.h"

namespace vkformer::reference {
namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

std::vector<double> scores_of(std::span<const double> logits, bool sigmoids) {
  std::vector<double> scores;
  if (sigmoids) {
    for (const double x : logits) scores.push_back(sigmoid(x));
    return scores;
  }
  double top = -std::numeric_limits<double>::infinity();
  for (const double x : logits) top = x > top ? x : top;
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - top);
  for (const double x : logits) scores.push_back(std::exp(x - top) / sum);
  return scores;
}

// Minus infinity for the experts of groups that are not among the best.
void drop_groups(const ExpertRouteOptions& o, std::vector<double>& choice) {
  const int64_t size = o.experts / o.groups;
  std::vector<double> best;
  for (int64_t g = 0; g < o.groups; ++g) {
    const auto group =
        std::span(choice).subspan(static_cast<size_t>(g * size), static_cast<size_t>(size));
    double sum = 0;
    for (const int64_t i : top_k_row(group, 2)) sum += group[static_cast<size_t>(i)];
    best.push_back(sum);
  }
  const std::vector<int64_t> kept = top_k_row(best, o.kept_groups);
  for (int64_t i = 0; i < o.experts; ++i) {
    if (std::find(kept.begin(), kept.end(), i / size) == kept.end()) {
      choice[static_cast<size_t>(i)] = -std::numeric_limits<double>::infinity();
    }
  }
}

}  // namespace

Result<ExpertRoutes> expert_route(const Array& logits, const ExpertRouteOptions& o) {
  VKF_CHECK(check_array(logits, "expert_route", "logits"));
  if (logits.rank() != 2 || o.choices < 1 || o.choices > o.experts || o.experts > logits.dim(-1) ||
      o.groups < 1 || o.experts % o.groups != 0) {
    return invalid_argument(
        message({"[expert_route] logits have shape ", shape_text(logits.shape), " for ", o.choices,
                 " of ", o.experts, " experts in ", o.groups, " groups."}));
  }
  const int64_t rows = logits.dim(0), columns = logits.dim(1);
  const int64_t always = columns - o.experts;
  ExpertRoutes routes{filled({rows, o.choices + always}, 0), filled({rows, o.choices + always}, 0)};
  for (int64_t row = 0; row < rows; ++row) {
    const auto of_row =
        std::span(logits.data)
            .subspan(static_cast<size_t>(row * columns), static_cast<size_t>(o.experts));
    const std::vector<double> scores = scores_of(of_row, o.sigmoid);
    // Without a bias scores are in the order of the logits, which f32 keeps apart.
    std::vector<double> choice(of_row.begin(), of_row.end());
    if (o.sigmoid || o.bias != nullptr) choice = scores;
    for (int64_t i = 0; o.bias != nullptr && i < o.experts; ++i) {
      choice[static_cast<size_t>(i)] += (*o.bias)[i];
    }
    if (o.groups > 1) drop_groups(o, choice);
    const std::vector<int64_t> chosen = top_k_row(choice, o.choices);
    double sum = 0;
    for (const int64_t i : chosen) sum += scores[static_cast<size_t>(i)];
    int64_t at = row * (o.choices + always);
    for (const int64_t i : chosen) {
      routes.experts[at] = static_cast<double>(i);
      routes.weights[at++] =
          o.scale * scores[static_cast<size_t>(i)] / (o.normalize ? sum + o.least_sum : 1);
    }
    for (int64_t i = o.experts; i < columns; ++i) {
      routes.experts[at] = static_cast<double>(i);
      routes.weights[at++] = sigmoid(logits[row * columns + i]);
    }
  }
  return routes;
}

}  // namespace vkformer::reference
