// Short forms for the weight rows that most families list, and for the names that checkpoints have
// for them.
#pragma once

#include "checkpoint/checkpoint.h"
#include "weights/weight_table.h"

namespace vkformer {

// A matrix (N, K) from one module or several stacked ones, without bias ("<module>.weight").
inline WeightRow plain_linear_row(std::string name, const std::vector<std::string>& modules,
                                  int64_t n, int64_t k) {
  WeightRow row{.name = std::move(name), .rows = n, .width = k};
  for (const std::string& module : modules) row.sources.push_back(module + ".weight");
  return row;
}

// The same with their biases ("<module>.bias").
inline WeightRow linear_row(std::string name, const std::vector<std::string>& modules, int64_t n,
                            int64_t k) {
  WeightRow row = plain_linear_row(std::move(name), modules, n, k);
  for (const std::string& module : modules) row.biases.push_back(module + ".bias");
  return row;
}

// With biases or without, as `bias` says.
inline WeightRow biased_row(bool bias, std::string name, const std::vector<std::string>& modules,
                            int64_t n, int64_t k) {
  return bias ? linear_row(std::move(name), modules, n, k)
              : plain_linear_row(std::move(name), modules, n, k);
}

// The same matrix of the gate projection, then the up projection, by pairs of a row of each: as
// gated linear layers take it.
inline WeightRow in_gate_pairs(WeightRow row) {
  const auto half = static_cast<uint32_t>(matrix_rows(row) / 2);
  row.row_order.resize(2 * size_t{half});
  for (uint32_t i = 0; i < half; ++i) {
    row.row_order[2 * size_t{i}] = i;
    row.row_order[2 * size_t{i} + 1] = half + i;
  }
  return row;
}

// The matrices (N, K) of all experts, each of which begins at a whole panel of 64 columns, as yet
// without sources.
inline WeightRow expert_row(std::string name, int64_t experts, int64_t n, int64_t k) {
  return {.name = std::move(name),
          .rows = (n + 63) / 64 * 64 * experts,
          .width = k,
          .experts = experts,
          .expert_rows = n};
}

// A convolution (N, K) without bias, with the batch norm `norm` after it.
inline WeightRow conv_norm_row(std::string name, const std::string& module, const std::string& norm,
                               int64_t n, int64_t k) {
  WeightRow row = plain_linear_row(std::move(name), {module}, n, k);
  row.biases = {norm + ".bias"};
  row.batch_norm = norm;
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

// Gain (D) of a norm without bias.
inline WeightRow gain_row(std::string name, const std::string& module, int64_t width) {
  WeightRow row = norm_row(std::move(name), module, width);
  row.biases.clear();
  return row;
}

// A token embedding (V, D), without bias.
inline WeightRow embedding_row(std::string name, std::string source, int64_t vocab, int64_t width) {
  return {.name = std::move(name), .sources = {std::move(source)}, .rows = vocab, .width = width};
}

// A table (rows, D) from one tensor or several stacked ones, of that many rows each: positions,
// then token types.
inline WeightRow table_row(std::string name, std::vector<std::string> sources,
                           std::vector<int64_t> source_rows, int64_t width) {
  int64_t rows = 0;
  for (int64_t n : source_rows) rows += n;
  return {.name = std::move(name),
          .layout = WeightLayout::kTable,
          .sources = std::move(sources),
          .rows = rows,
          .width = width,
          .source_rows = std::move(source_rows)};
}

// A table (rows, D) that no file holds.
inline WeightRow computed_row(std::string name, std::vector<float> values, int64_t rows,
                              int64_t width) {
  return {.name = std::move(name),
          .layout = WeightLayout::kTable,
          .rows = rows,
          .width = width,
          .computed = std::move(values)};
}

// The first of the names that the file has; the last one if it has none, for the error message.
inline std::string first_present(const Checkpoint& checkpoint,
                                 const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (checkpoint.find(name) != nullptr) return name;
  }
  return names.back();
}

// "bert." where the file has its tensors inside a model with a head. "" where a base model was
// saved alone. `tensor` is one that every such file has.
inline std::string name_prefix(const Checkpoint& checkpoint, const std::string& prefix,
                               const std::string& tensor) {
  return checkpoint.find(prefix + tensor) != nullptr ? prefix : std::string();
}

}  // namespace vkformer
