#include "conformance/sparse_terms.h"

namespace vkformer::conformance {

void add_sparse_terms(uint32_t kinds, const Shape& scores, SparseArrays& arrays,
                      reference::MaskOptions& masks, TensorMap& inputs) {
  const int64_t batch = scores[0], heads = scores[1], tokens = scores[3];
  if ((kinds & kSparseGlobal) != 0) {
    // The first item has two; others have one, near its end.
    arrays.global = reference::filled({batch, tokens}, 0.0);
    arrays.global[1] = 1;
    for (int64_t b = 0; b < batch; ++b) arrays.global[(b + 1) * tokens - 3] = 1;
    masks.global = &arrays.global;
    inputs.emplace("global", mask_bytes(arrays.global));
  }
  if ((kinds & kSparseDocuments) != 0) {
    // Of different lengths; the first goes on at the end of the row.
    arrays.documents = reference::filled({batch, tokens}, 0.0);
    for (int64_t at = 0; at < batch * tokens; ++at) {
      arrays.documents[at] = static_cast<double>((at % tokens + at / tokens) * 7 / tokens % 5);
    }
    masks.documents = &arrays.documents;
    inputs.emplace("documents", integers(arrays.documents));
  }
  if ((kinds & kSparsePrefix) != 0) {
    arrays.prefix = reference::filled({batch}, 0.0);
    for (int64_t b = 0; b < batch; ++b)
      arrays.prefix[b] = static_cast<double>((5 + 2 * b) % tokens);
    masks.prefix = &arrays.prefix;
    inputs.emplace("prefix", integers(arrays.prefix));
  }
  if ((kinds & kSparseBlocks) != 0) {
    // Some count twice; every row of blocks sees its own.
    const int64_t rows = tokens / kSparseBlock;
    arrays.block_map = reference::filled({1, heads, rows, rows}, 0.0);
    for (int64_t at = 0; at < arrays.block_map.size(); ++at) {
      const int64_t row = at / rows, column = at % rows, n = (row * 5 + column * 3) % 7;
      const int64_t count = n < 3 ? n : 0;
      arrays.block_map[at] = static_cast<double>(column == row % rows ? 1 : count);
    }
    masks.block_map = &arrays.block_map;
    masks.block_size = kSparseBlock;
    inputs.emplace("block_map", integers(arrays.block_map));
  }
}

}  // namespace vkformer::conformance
