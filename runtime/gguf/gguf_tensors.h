// The tensors of GGUF files under the names, and in the order of rows, that the families read in
// safetensors files.
//
// Threading: pure functions.
#pragma once

#include <vector>

#include "checkpoint/file_store.h"
#include "checkpoint/gguf.h"

namespace vkformer {

// What is done to a tensor on the way.
enum class GgufUse : uint8_t {
  kPlain,
  kQueries,  // rows by pairs of a rotary head, as LLaMA's own files have them: put by halves
  kKeys,     // the same of keys
  kGain,     // a gain that families store as its distance from 1 (Gemma)
  kExperts,  // (X, N, K), of which "{x}" in the name takes one each
  kIgnored,  // read elsewhere, or not used in inference
};

// "{}" is the number of a layer, the same in both names. ".weight" or ".bias" follows `from`, and
// `to` unless it names a whole tensor.
struct GgufName {
  const char* from;
  const char* to;
  GgufUse use = GgufUse::kPlain;
  bool whole = false;  // `to` is the whole name: of tensors without an ending
};

struct GgufNaming {
  std::vector<GgufName> names;
  std::string architecture;  // for messages
  int64_t heads = 0;         // of kQueries
  int64_t kv_heads = 0;      // of kKeys
};

// The tensors of all files of a model. An error names a tensor that no name fits, or that has not
// the shape which its use needs.
Result<std::shared_ptr<const StoredTensors>> gguf_tensors(const std::vector<const GgufFile*>& files,
                                                          const GgufNaming& naming);

}  // namespace vkformer
