// A search to run: sizes, settings and a made-up model; and what is found.
#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "generate/search_layout.h"
#include "ops/token_candidates.h"

namespace vkformer::testing {

// Logits (V) of the token after a prefix, which begins with the prompt, of a batch item.
using FakeModel = std::function<std::vector<float>(int64_t item, const std::vector<int64_t>&)>;

struct SearchCase {
  uint32_t batch = 1, beams = 1, vocab = 16;
  std::vector<int64_t> prompt = {1};
  uint32_t max_new_tokens = 8, min_new_tokens = 0;
  std::vector<int64_t> eos;
  double length_penalty = 1;
  uint32_t early_stopping = VKF_EARLY_STOPPING_NO;
  std::optional<int64_t> forced_first, forced_last;
  std::vector<int64_t> suppress, begin_suppress;
  FakeModel model;

  uint32_t candidates() const {
    if (beams == 1) return 1;
    return std::max(2u, 1 + static_cast<uint32_t>(eos.size())) * beams;
  }
  uint32_t max_length() const { return static_cast<uint32_t>(prompt.size()) + max_new_tokens; }
  SearchParams params() const {
    return {.batch = batch,
            .beams = beams,
            .capacity = max_length() + 3,
            .vocab = vocab,
            .candidates = candidates()};
  }
};

// Normally distributed logits that depend on every token of the prefix and on the item.
inline FakeModel random_model(uint32_t vocab, uint32_t seed, double scale = 2) {
  return [=](int64_t item, const std::vector<int64_t>& prefix) {
    std::seed_seq mix{static_cast<uint32_t>(item), seed, [&] {
                        uint32_t hash = 2166136261u;
                        for (int64_t id : prefix)
                          hash = (hash ^ static_cast<uint32_t>(id)) * 16777619u;
                        return hash;
                      }()};
    std::mt19937 engine(mix);
    std::normal_distribution<double> normal(0, scale);
    std::vector<float> logits(vocab);
    for (float& value : logits) value = static_cast<float>(normal(engine));
    return logits;
  };
}

struct FoundSequence {
  std::vector<int64_t> ids;
  double score = 0;
};

struct FoundItem {
  bool nan = false;
  uint32_t length = 0;                   // positions when it ended
  std::vector<FoundSequence> sequences;  // best first
};

}  // namespace vkformer::testing
