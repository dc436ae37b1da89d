// The tensors of GGUF files under the names, and in the order of rows, that the families read in
// safetensors files.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/file_store.h"
#include "checkpoint/gguf.h"

namespace vkformer {

// What is done to a tensor on the way.
enum class GgufUse : uint8_t {
  kPlain,
  kQueries,  // rows by pairs of a rotary head, as LLaMA's own files have them: put by halves
  kKeys,     // the same of keys
  kFused,    // rows of all queries, all keys, all values: put by key head, as models have them
  kGain,     // a gain that families store as its distance from 1 (Gemma)
  kExperts,  // (X, N, K), of which "{x}" in the name takes one each
  kTaps,     // (C, K) of a convolution by channel: (C, 1, K) in models
  kFlat,     // any shape: one axis in models
  kRates,    // -exp(a), in one axis: a in models (Mamba)
  kIgnored,  // read elsewhere, or not used in inference
};

// "{}" is the number of a layer, the same in both names. ".weight" or ".bias" follows `from` and
// `to`, unless they are whole names.
struct GgufName {
  const char* from;
  const char* to;
  GgufUse use = GgufUse::kPlain;
  bool whole = false;  // of tensors that have no such ending in models
};

struct GgufNaming {
  std::vector<GgufName> names;
  std::string architecture;  // for messages
  int64_t heads = 0;         // of kQueries and kFused
  int64_t kv_heads = 0;      // of kKeys and kFused
  // The tensors are A and B of an adapter, whose names are a tensor's and kGgufDown or kGgufUp. B
  // has that tensor's rows, and A its columns, so that only B changes their order.
  bool adapter = false;
};

inline constexpr const char* kGgufDown = ".lora_a";
inline constexpr const char* kGgufUp = ".lora_b";

// Where a model's tensor stands in a file: the other way round.
struct GgufPlace {
  std::string name;  // in the file
  GgufUse use = GgufUse::kPlain;
  int64_t expert = -1;  // of kExperts: its place along the first axis
};

// The place of the tensor that a model calls `name`. A class around it may have added a prefix to
// the name, or taken one away. Nothing: the format has no place for it.
std::optional<GgufPlace> gguf_place(const GgufNaming& naming, const std::string& name);

// Whether a model does without that tensor of a file, since it is read elsewhere or not used.
bool gguf_ignores(const GgufNaming& naming, const std::string& file_name);

// Where files have the rows of a tensor in another order than models.
class GgufRows {
 public:
  // `rows`: of the tensor. `use` other than kQueries, kKeys and kFused: they are in the same order.
  // An error says which number of heads they do not fit; it begins after the tensor's name.
  static Result<GgufRows> make(const GgufNaming& naming, GgufUse use, int64_t rows);

  bool same() const { return width_ == 0; }
  // The row of the model that the file has as row `row`.
  size_t of_model(size_t row) const;

 private:
  size_t width_ = 0;  // rows of a head
  // Of kFused: heads of queries for each of keys, and all of them; 0 of others, whose heads stay.
  size_t queries_ = 0, heads_ = 0, groups_ = 0;
};

// The tensors of all files of a model. An error names a tensor that no name fits, or that has not
// the shape which its use needs.
Result<std::shared_ptr<const StoredTensors>> gguf_tensors(const std::vector<const GgufFile*>& files,
                                                          const GgufNaming& naming);
// The same of some tensors of the file `path`.
Result<std::shared_ptr<const StoredTensors>> gguf_tensors(const std::string& path,
                                                          const GgufTensorMap& tensors,
                                                          const GgufNaming& naming);

}  // namespace vkformer
