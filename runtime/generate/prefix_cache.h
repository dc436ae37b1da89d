// Generates in sequences that stay in the KV cache between calls. If a prompt shares a prefix with
// a cached one, only the tokens after that prefix are computed. A scheduler with its own batch.
#pragma once

#include <memory>
#include <optional>

#include "generate/batch_state.h"
#include "generate/generation_sizes.h"

namespace vkformer {

class PrefixCache {
 public:
  explicit PrefixCache(std::shared_ptr<const LoadedModel> model) : model_(std::move(model)) {}

  // Whether such a generation may run here; `cache` is the format of keys and values.
  static bool serves(const ModelFacts& facts, const GenerateOptions& options, CacheFormat cache);
  // `counters` gets what this call did.
  Result<Generation> generate(const TensorMap& inputs, const GenerateOptions& options,
                              GenerationCounters& counters);
  bool empty() const { return batch_ == nullptr; }
  // Evicts every sequence and gives the memory back.
  void clear() { batch_.reset(); }

 private:
  struct Call;
  // Makes sure that there is a cache for `sequences` sequences of `tokens` tokens.
  Status make(int64_t sequences, int64_t tokens, const GenerateOptions& options,
              GenerationCounters& counters);
  Status run(Call& call, GenerationCounters& counters);

  std::shared_ptr<const LoadedModel> model_;
  std::unique_ptr<BatchState> batch_;  // or null
  // What batch_ has room for.
  struct Room {
    int rows = 0;
    int capacity = 0;  // tokens of a row
    std::optional<int> context;
    int sinks = 0;
  };
  Room room_;
};

}  // namespace vkformer
