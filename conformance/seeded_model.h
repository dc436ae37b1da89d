// Small models whose weights come from a seed: their files in memory, and the same computed by
// plain loops in double. What conformance has instead of stored goldens.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reference/array.h"
#include "vkformer/model_source.h"
#include "vkformer/tensor.h"

namespace vkformer::conformance {

using reference::Array;

enum class Family : uint8_t { kBert, kGpt2, kLlama };

struct ModelSizes {
  int64_t vocab = 61;      // V
  int64_t width = 32;      // D
  int64_t heads = 4;       // H
  int64_t kv_heads = 4;    // Hkv; of kLlama
  int64_t ffn = 64;        // F
  int64_t layers = 2;      // L
  int64_t positions = 48;  // P
};

class SeededModel {
 public:
  SeededModel(Family family, const ModelSizes& sizes);

  // Keeps this object's memory.
  ModelSource source() const;
  // The last hidden states of one row of ids (T). -> (T, D)
  Result<Array> hidden(const std::vector<int64_t>& ids) const;
  // The logits after every token, of kGpt2 and kLlama. -> (T, V)
  Result<Array> logits(const std::vector<int64_t>& ids) const;
  const ModelSizes& sizes() const { return sizes_; }

 private:
  void add(const std::string& name, const Shape& shape, double scale, double offset = 0);
  void add_bert();
  void add_gpt2();
  void add_llama();
  void write_files(const std::string& config);
  const Array& at(const std::string& name) const { return weights_.at(name); }
  Result<Array> bert_layer(const Array& x, const std::string& scope) const;
  Result<Array> gpt2_layer(const Array& x, const std::string& scope) const;
  Result<Array> llama_layer(const Array& x, const std::string& scope) const;

  Family family_;
  ModelSizes sizes_;
  std::map<std::string, Array> weights_;
  std::string config_, generation_;
  std::vector<std::byte> tensors_;  // a safetensors file
};

}  // namespace vkformer::conformance
