// What a Reformer's config.json says, and what follows from it for a length of tokens.
#pragma once

#include <optional>

#include "model/blocks/heads.h"

namespace vkformer {

// One kind of attention: its chunks.
struct ReformerChunks {
  int64_t length = 64;  // tokens
  int64_t before = 1;   // chunks before its own that a token sees
  int64_t after = 0;    // and after it
};

struct ReformerConfig {
  StackConfig stack;  // layers, width, heads, head width, feed-forward, norm; nothing of attention
  enum class Kind : uint8_t { kLocal, kLsh };
  std::vector<Kind> kinds;  // by layer
  ReformerChunks local;
  ReformerChunks lsh;
  int64_t rounds = 1;             // of hashing
  std::vector<uint32_t> buckets;  // factors of their number; empty: by the length
  std::optional<int64_t> hash_seed;
  int64_t positions = 0;  // tokens, padding included
  // Axial positions: rows and columns of the grid, and the width of their vectors; empty: a table.
  std::vector<int64_t> axial_shape;
  std::vector<int64_t> axial_widths;
  int64_t pad = 0;  // id of padding
  bool causal = false;
  std::vector<HeadConfig> heads;

  bool has(Kind kind) const;
  // The tokens that a pass over `tokens` runs: padded to whole chunks, unless they fit into one.
  int64_t padded(int64_t tokens) const;
  // Whether an LSH layer hashes `padded` tokens: those of one chunk attend to each other anyway.
  bool hashes(int64_t padded) const { return padded > lsh.length; }
  // Factors of the number of buckets for that many (padded) tokens.
  std::vector<uint32_t> bucket_factors(int64_t padded) const;
};

Result<ReformerConfig> read_reformer(const JsonConfig& config);
Result<ModelFacts> read_reformer_facts(const ModelFiles& files, const ReformerConfig& reformer);

}  // namespace vkformer
