// Quantizing a model once, to disk: a directory with smaller matrices that loads as the model did.
//
// Threading: a plain function without shared state; call it from any thread.
// Lifetime: nothing is kept after the call. Nothing throws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vkformer/choices.h"
#include "vkformer/export.h"
#include "vkformer/model.h"
#include "vkformer/result.h"

namespace vkformer {

struct QuantizeOptions {
  // kQ8, kQ4, kQ4M, kBF16 or kF16.
  WeightFormat weights = WeightFormat::kQ8;
  // Merged into the weights that they change.
  std::vector<AdapterChoice> adapters = {};
};

struct GgufOptions {
  // Any but kAsStored, kQ8, kQ4 and kQ4M.
  WeightFormat weights = WeightFormat::kQ8_0;
  // Merged into the weights that they change.
  std::vector<AdapterChoice> adapters = {};
};

struct QuantizeReport {
  int64_t tensors = 0;   // of the model
  int64_t matrices = 0;  // of them in the new format
  uint64_t bytes_before = 0;
  uint64_t bytes_after = 0;
};

// Writes the model of the directory `model` into the directory `target`, which is made where it is
// missing. That has model.safetensors with the matrices in the new format (docs/numerics.md has its
// layout) and copies of all other files. Norms, biases, tables of positions and what is too small
// stay as they are. The whole result is held in memory. `model` may be a GGUF file: the directory
// then gets the files that its metadata stands for.
VKFORMER_API Result<QuantizeReport> quantize_model(const std::string& model,
                                                   const std::string& target,
                                                   const QuantizeOptions& options = {});

// Writes the model, a directory or a GGUF file, as one GGUF file of version 3, tokenizer and chat
// template included. Tensors have llama.cpp's names (docs/files.md has the architectures). Matrices
// get the type; vectors, biases, routers and tables of positions are in f32, and so are matrices
// whose rows are no whole blocks. What the format cannot say of a model is refused by name. The
// whole result is held in memory; the file is whole or not there.
VKFORMER_API Result<QuantizeReport> write_gguf(const std::string& model, const std::string& target,
                                               const GgufOptions& options = {});

}  // namespace vkformer
