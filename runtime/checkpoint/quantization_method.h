// How the weights of a safetensors model were quantized, as [quantization_config] of config.json
// says.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/json_config.h"

namespace vkformer {

enum class QuantizationKind : uint8_t {
  kNone,
  kGptq,
  kAwq,
  kCompressedTensors,
  kBitsAndBytes,
  kFloat8,
  kMxfp4,
};

struct QuantizationMethod {
  QuantizationKind kind = QuantizationKind::kNone;
  std::string name;                  // as the file has it: "gptq"
  std::vector<int64_t> bits;         // of weights, by group of layers; empty: not said
  std::vector<int64_t> group_sizes;  // columns of a group, -1 for all; by group of layers
  bool zeros_less_one = false;       // GPTQ's files hold zero points minus 1
  bool bits_vary = false;            // by layer, as the tensors' shapes say
  std::vector<int64_t> block = {};   // rows and columns of a block of scales; or empty
};

// An error names the method, the format or the value that vkformer does not read (kUnsupported),
// or that no method has.
Result<QuantizationMethod> read_quantization(const JsonConfig& config);

// The keys of config.json that say so, which a copy with other weights does not have.
std::vector<std::string> quantization_keys();

}  // namespace vkformer
