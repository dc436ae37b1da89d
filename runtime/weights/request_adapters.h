// Adapters whose scales each sequence of a pass chooses (Hu et al., 2021). The layer is y = x W +
// sum over adapters a of scale[sequence, a] (x A_a) B_a.
//
// The model's weights stay as they are and serve all sequences. A and B become weights beside them.
// For every row of the weight table that adapters change, the A of all adapters are side by side
// and their B below each other. One pair of products then serves all. Of row R there are
// R.adapters.down (J, K), the A, where J is the sum of ranks. R.adapters.up (N, J) has the B, times
// alpha / r. R.adapters.ranks (1, J) says which adapter each rank belongs to.
//
// Of a row with a matrix for each head (weights/head_matrix.h), all heads share A, and each has a
// part of B. Where such matrices are transposed, B comes first. Both are then rows of matrices by
// head, of which the shared one has one. R.adapters.ranks is repeated for each head.
//
// LoRA and rsLoRA of linear layers only: what else an adapter holds must be merged.
//
// Threading: pure functions.
// Lifetime: the rows keep the adapters' files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/adapter_files.h"
#include "weights/weight_table.h"

namespace vkformer {

struct NamedAdapter {
  std::string name;  // by which requests call it
  std::shared_ptr<const AdapterFiles> files;
};

// The weight rows of adapters beside weight row `row`.
enum class AdapterPart : uint8_t { kDown, kUp, kRanks };
std::string adapter_row(const std::string& row, AdapterPart part);

// Adds their rows to the table. An error names the adapter, its module and why it must be merged,
// or what the model lacks.
Status add_request_adapters(const std::vector<NamedAdapter>& adapters, const Checkpoint& checkpoint,
                            WeightTable& table);

}  // namespace vkformer
