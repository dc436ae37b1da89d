#include "conformance/weights_by_expert.h"

#include <algorithm>

#include "base/check.h"
#include "base/narrow.h"
#include "params/matmul.h"
#include "weights/pack_matrix.h"

namespace vkformer::conformance {
namespace {

// Columns [first, first + count) of all experts' panels, of which each expert has `filled`.
Result<LinearSlice> bind_slice(CheckCase& made, const std::string& name, const Array& w,
                               const Array& bias, MatrixFormat format, const LinearSlice& slice) {
  const auto k = static_cast<size_t>(w.dim(1)), n = static_cast<size_t>(w.dim(2));
  const size_t filled = (n + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
  std::vector<float> values(k * slice.n, 0.0f), biases(bias.size() > 0 ? slice.n : 0, 0.0f);
  for (size_t c = 0; c < slice.n; ++c) {
    const size_t expert = (slice.first + c) / filled, column = (slice.first + c) % filled;
    if (column >= n) continue;
    for (size_t i = 0; i < k; ++i) {
      values[i * slice.n + c] =
          static_cast<float>(w[static_cast<int64_t>((expert * k + i) * n + column)]);
    }
    if (!biases.empty()) {
      biases[c] = static_cast<float>(bias[static_cast<int64_t>(expert * n + column)]);
    }
  }
  VKF_ASSIGN(const PackedMatrix packed,
             pack_matrix(values, {slice.n, static_cast<uint32_t>(k), MatrixOrder::kInOut}, biases,
                         format));
  LinearSlice bound = slice;
  bound.tensor = made.op.bind(name, words(packed.words));
  bound.bias_offset = packed.bias_offset;
  bound.format = format;
  return bound;
}

}  // namespace

Result<ExpertWeight> bind_experts(CheckCase& made, const std::string& name, const Array& w,
                                  const Array& bias, MatrixFormat format, int64_t slice_panels) {
  const int64_t panels = (w.dim(2) + kPanelColumns - 1) / kPanelColumns;
  const uint32_t columns = u32(w.dim(0) * panels * kPanelColumns);
  const uint32_t step = slice_panels > 0 ? u32(slice_panels * kPanelColumns) : columns;
  std::vector<LinearSlice> slices;
  for (uint32_t first = 0; first < columns; first += step) {
    const std::string own = first == 0 ? name : name + std::to_string(first);
    VKF_ASSIGN(const LinearSlice slice,
               bind_slice(made, own, w, bias, format,
                          {.first = first, .n = std::min(step, columns - first)}));
    slices.push_back(slice);
  }
  ExpertWeight weight{{.tensor = slices[0].tensor,
                       .n = columns,
                       .k = u32(w.dim(1)),
                       .bias_offset = slices[0].bias_offset,
                       .format = format},
                      u32(w.dim(0)),
                      u32(w.dim(2))};
  if (slices.size() > 1) weight.all.slices = std::move(slices);
  return weight;
}

}  // namespace vkformer::conformance
