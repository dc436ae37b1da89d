// Short forms for the weight rows that most families list.
#pragma once

#include "weights/weight_table.h"

namespace vkformer {

// A matrix (N, K) with bias from one module or several stacked ones ("<module>.weight", ".bias").
inline WeightRow linear_row(std::string name, const std::vector<std::string>& modules, int64_t n,
                            int64_t k) {
  WeightRow row{.name = std::move(name), .rows = n, .width = k};
  for (const std::string& module : modules) {
    row.sources.push_back(module + ".weight");
    row.biases.push_back(module + ".bias");
  }
  return row;
}

// Gain and bias (D) of a norm.
inline WeightRow norm_row(std::string name, const std::string& module, int64_t width) {
  return {.name = std::move(name),
          .layout = WeightLayout::kNorm,
          .sources = {module + ".weight"},
          .biases = {module + ".bias"},
          .width = width};
}

// A token embedding (V, D), without bias.
inline WeightRow embedding_row(std::string name, std::string source, int64_t vocab, int64_t width) {
  return {.name = std::move(name), .sources = {std::move(source)}, .rows = vocab, .width = width};
}

}  // namespace vkformer
