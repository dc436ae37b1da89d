// concat_columns: y's rows are a's rows, each followed by b's.
//
//   a (..., Da), b (..., Db) -> y (..., Da + Db)
#pragma once

#include "ops/op.h"

namespace vkformer {

struct ConcatColumnsAttrs {};

// The output's description, or why the inputs do not fit: a (..., Da), b (..., Db).
Result<TensorDesc> check_concat_columns(const TensorDesc& a, const TensorDesc& b);

// Adds the node to the graph, a (..., Da), b (..., Db), and returns y (..., Da + Db).
Result<TensorId> add_concat_columns(Graph& graph, TensorId a, TensorId b);

Status lower_concat_columns(LowerContext& context, const Node& node);

}  // namespace vkformer
