#include "ops/embedding.h"

#include <algorithm>

#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "ops/layer_norm.h"
#include "weights/pack_matrix.h"

namespace vkformer {
namespace {

// A table (V, D) as words of blocks.
Result<Tensor> packed_table(const Tensor& table, MatrixFormat format) {
  VKF_ASSIGN(const std::vector<float> values, table.to_floats());
  VKF_ASSIGN(const PackedMatrix packed,
             pack_matrix(values, {table.shape[0], table.shape[1]}, {}, format));
  return packed_tensor(packed);
}

// Planes (2, ..., T) of ids and the bits of scales, which have the same shape.
Tensor with_scales(const Tensor& ids, const Tensor& scales) {
  Shape shape = ids.shape;
  shape.insert(shape.begin(), 2);
  Tensor planes = Tensor::zeros(DType::kU32, std::move(shape));
  std::copy(ids.bytes.begin(), ids.bytes.end(), planes.bytes.begin());
  std::copy(scales.bytes.begin(), scales.bytes.end(),
            planes.bytes.begin() + static_cast<ptrdiff_t>(ids.bytes.size()));
  return planes;
}

}  // namespace

// embedding (Tokens and positions)
// attributes: `scale` (1), `position_offset` (0), `eps` (1e-5)
// inputs:     ids (..., T), *weight* table (V, D); optional positions (P, D), row_scales (..., T),
//             norm_weight (D), norm_bias (D)
// outputs:    Y (..., T, D)
// computes:   table[id] · scale · row_scales + positions[position_offset + t]; with norm_weight or
//             norm_bias its `layer_norm`
Result<PreparedOperator> prepare_embedding(const OperatorArguments& arguments) {
  VKF_CHECK(
      arguments.check_names({"ids", "table", "positions", "row_scales", "norm_weight", "norm_bias"},
                            {"scale", "position_offset", "eps"}));
  constexpr int64_t kMaxOffset = int64_t{1} << 30;
  EmbeddingAttrs attrs;
  VKF_ASSIGN(attrs.scale, arguments.number_or("scale", 1.0));
  VKF_ASSIGN(const int64_t offset, arguments.integer_or("position_offset", 0, 0, kMaxOffset));
  VKF_ASSIGN(const MatrixFormat format, arguments.weight_format());
  VKF_ASSIGN(Tensor table,
             in_blocks(format) ? arguments.floats("table") : arguments.weights("table"));
  if (table.shape.size() != 2) {
    return arguments.error("table has shape " + shape_text(table.shape) +
                           ", but must have two dimensions (V, D).");
  }
  VKF_ASSIGN(Tensor ids, arguments.ids("ids", table.shape[0]));
  attrs.vocabulary = static_cast<uint32_t>(table.shape[0]);
  attrs.width = static_cast<uint32_t>(table.shape[1]);
  attrs.position_offset = static_cast<uint32_t>(offset);
  if (in_blocks(format)) {
    VKF_ASSIGN(table, packed_table(table, format));
    attrs.format = format;
    attrs.panel_stride = panel_stride(format, attrs.width);
  }
  PreparedOperator op;
  EmbeddingInputs inputs;
  TensorId gain_bias = kNoTensor;
  float epsilon = 0;
  if (arguments.find("positions") != nullptr) {
    VKF_ASSIGN(Tensor positions, arguments.floats("positions"));
    const int64_t tokens = ids.shape.empty() ? 1 : ids.shape.back();
    if (!positions.shape.empty() && offset + tokens > positions.shape[0]) {
      return arguments.error("positions has " + std::to_string(positions.shape[0]) + " rows, but " +
                             std::to_string(tokens) + " tokens from position " +
                             std::to_string(offset) + " on need " +
                             std::to_string(offset + tokens) + ".");
    }
    inputs.positions = op.bind("positions", std::move(positions));
  }
  if (arguments.find("norm_weight") != nullptr || arguments.find("norm_bias") != nullptr) {
    VKF_ASSIGN(epsilon, arguments.number_or("eps", 1e-5));
    VKF_ASSIGN(Tensor norm, arguments.gain_bias("norm_weight", "norm_bias", attrs.width));
    gain_bias = op.bind("gain_bias", std::move(norm));
  }
  if (arguments.find("row_scales") != nullptr) {
    VKF_ASSIGN(const Tensor scales, arguments.floats("row_scales"));
    if (scales.shape != ids.shape) {
      return arguments.error("row_scales has shape " + shape_text(scales.shape) +
                             ", but must have that of ids, " + shape_text(ids.shape) + ".");
    }
    ids = with_scales(ids, scales);
    attrs.row_scales = EmbeddingAttrs::RowScales::kPlane;
  }
  inputs.ids = op.bind("ids", std::move(ids));
  inputs.table = op.bind("table", std::move(table));
  VKF_ASSIGN(TensorId y, add_embedding(op.graph, inputs, attrs));
  if (gain_bias != kNoTensor) {
    VKF_ASSIGN(y, add_layer_norm(op.graph, {.x = y, .gain_bias = gain_bias}, {epsilon}));
  }
  op.name_output(y, "Y");
  return op;
}

}  // namespace vkformer
