#include "reference/contrastive_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "reference/log_softmax.h"
#include "reference/top_k.h"

namespace vkformer::reference {
namespace {

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t d = 0; d < a.size(); ++d) {
    ab += a[d] * b[d];
    aa += a[d] * a[d];
    bb += b[d] * b[d];
  }
  return ab / std::sqrt(aa * bb);
}

}  // namespace

Result<std::vector<int64_t>> contrastive_search(const std::vector<int64_t>& prompt,
                                                const StatesOf& states,
                                                const ContrastiveOptions& options) {
  std::vector<int64_t> ids = prompt;
  VKF_ASSIGN(PrefixStates now, states(ids));
  for (int64_t n = 0; n < options.max_new_tokens; ++n) {
    log_softmax_row(now.logits);
    double best = -std::numeric_limits<double>::infinity();
    int64_t chosen = 0;
    PrefixStates next;
    for (int64_t token : top_k_row(now.logits, options.candidates)) {
      std::vector<int64_t> longer = ids;
      longer.push_back(token);
      VKF_ASSIGN(PrefixStates behind, states(longer));
      double likeness = -1;
      for (size_t t = 0; t + 1 < behind.hidden.size(); ++t)
        likeness = std::max(likeness, cosine(behind.hidden.back(), behind.hidden[t]));
      const double p = std::exp(now.logits[static_cast<size_t>(token)]);
      const double score = (1 - options.contrast) * p - options.contrast * likeness;
      if (!(score > best)) continue;
      best = score;
      chosen = token;
      next = std::move(behind);
    }
    ids.push_back(chosen);
    const auto& ends = options.eos_token_ids;
    if (std::find(ends.begin(), ends.end(), chosen) != ends.end()) break;
    now = std::move(next);
  }
  return ids;
}

}  // namespace vkformer::reference
