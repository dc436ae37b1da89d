// Adapters of low rank, and those in the directory layout of the PEFT library: adapter_config.json
// and adapter_model.safetensors (gguf/gguf_adapter.h reads the others). An adapter changes a weight
// W (N, K) to
//
//   LoRA    W + s B A, with A (r, K), B (N, r), s = alpha / r, or alpha / sqrt(r) with rsLoRA
//   DoRA    m / |W + s B A| (W + s B A), with a magnitude m and the length of each row
//
// (Hu et al., 2021; Kalajdzievski, 2023; Liu et al., 2024).
//
// Threading: immutable once open.
// Lifetime: views live as long as the AdapterFiles they come from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/file_store.h"
#include "checkpoint/safetensors.h"

namespace vkformer {

// The files of an adapter in PEFT's layout.
inline constexpr const char* kAdapterConfigName = "adapter_config.json";
inline constexpr const char* kAdapterWeightsName = "adapter_model.safetensors";

// What an adapter does to one weight.
struct AdapterModule {
  std::string module;      // "model.layers.0.self_attn.q_proj"
  TensorView down;         // A (r, K), axes beyond the second counted as one
  TensorView up;           // B (N, r)
  TensorView magnitude;    // m (N) of DoRA; no bytes: LoRA
  double scale = 1;        // s
  bool embedding = false;  // the weight is (K, N), a row for each token
};

// A tensor that the adapter has in the place of the model's.
struct ReplacedTensor {
  std::string name;  // "classifier.weight"
  TensorView view;
};

struct AdapterFiles {
  std::string label;  // for messages
  std::vector<AdapterModule> modules;
  std::vector<ReplacedTensor> replaced;
  std::shared_ptr<const void> source;  // what the views point into
};

// Checks that A and B are floats that share r. An error names the module and the adapter.
Status check_adapter_module(const AdapterModule& module, const std::string& label);

// An error names the file, and the key or tensor; a kind of adapter that vkformer does not compute
// is kUnsupported.
Result<AdapterFiles> open_adapter(const FileStore& files);

}  // namespace vkformer
