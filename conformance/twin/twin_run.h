// What the operators of the host's twin (host_twin.h) share. These are tensors as words, sums in
// the order of row kernels, and the table of an operator's forms.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/matrix_format.h"
#include "conformance/host_real.h"
#include "graph/graph.h"
#include "ops/op.h"
#include "ops/row_kernel.h"
#include "params/decode_state.h"
#include "plan/device_caps.h"
#include "vkformer/tensor.h"

namespace vkformer::conformance {

// A tensor as 32-bit words, which are floats where it has such.
struct Memory {
  Shape shape;
  std::vector<uint32_t> words;
  Real operator[](size_t i) const { return Real::of_bits(words[i]); }
  void put(size_t i, Real x) { words[i] = x.bits(); }
  size_t width() const { return static_cast<size_t>(shape.back()); }
  size_t rows() const { return width() == 0 ? 0 : words.size() / width(); }
  // Whether bit `i` of the row of bits that begins at word `first` is set.
  bool bit(size_t first, size_t i) const { return (words[first + i / 32] >> (i % 32) & 1u) != 0; }
};

inline DeviceCaps twin_caps() {
  return reproducible_caps({});
}

// Sums of every n-th element, then a tree over these. n is 32, and more where a row has some
// 250,000 elements, or takes many passes.
class RowSum {
 public:
  explicit RowSum(size_t width, uint64_t passes = 4)
      : lanes_(row_local_size(twin_caps(), static_cast<uint32_t>(width), passes)) {}
  static RowSum of_lanes(size_t lanes) {
    RowSum sum(1);
    sum.lanes_.assign(lanes, Real());
    return sum;
  }

  Real& lane(size_t i) { return lanes_[i]; }
  size_t lanes() const { return lanes_.size(); }
  void add(size_t column, Real x) { lanes_[column % lanes_.size()] += x; }
  void subtract(size_t column, Real x) {
    Real& lane = lanes_[column % lanes_.size()];
    lane = lane - x;
  }
  Real total() {
    for (size_t step = lanes_.size() / 2; step > 0; step /= 2) {
      for (size_t lane = 0; lane < step; ++lane) lanes_[lane] += lanes_[lane + step];
    }
    return lanes_[0];
  }

 private:
  std::vector<Real> lanes_;
};

// The slots of a decoding step.
struct TwinSlots {
  const Memory& state;
  size_t live() const { return state.words[1]; }
  uint32_t entry(size_t slot) const { return state.words[VKF_STATE_WORDS + slot]; }
  uint32_t row(size_t slot) const { return VKF_SLOT_ROW(entry(slot)); }
  uint32_t position(size_t slot) const { return state.words[2] - VKF_SLOT_START(entry(slot)); }
};

// The tensors of one pass over a graph.
class TwinRun {
 public:
  TwinRun(const Graph& graph, const TensorMap& inputs);

  const Graph& graph() const { return graph_; }
  bool is_step() const { return graph_.is_step(); }
  static bool has(const Node& node, size_t i) {
    return i < node.inputs.size() && node.inputs[i] != kNoTensor;
  }
  const Memory& in(const Node& node, size_t i) const { return memory_.at(node.inputs[i]); }
  const Memory& of(TensorId id) const { return memory_.at(id); }
  bool knows(TensorId id) const { return memory_.count(id) != 0; }
  // Whether the node's inputs are there.
  bool prepare(const Node& node);
  // What the node writes; elements that it omits are NaN, or what the tensor held before.
  Memory& out(const Node& node, size_t i = 0);
  TensorMap outputs() const;

 private:
  const Graph& graph_;
  std::map<TensorId, Memory> memory_;
};

// False where the form of the node has no twin.
using TwinForm = bool (*)(TwinRun& run, const Node& node);
struct TwinOp {
  const char* op;
  TwinForm run;
};

std::span<const TwinOp> attention_twins();
std::span<const TwinOp> choice_twins();
std::span<const TwinOp> grid_twins();
std::span<const TwinOp> linear_twins();
std::span<const TwinOp> move_twins();
std::span<const TwinOp> product_twins();
std::span<const TwinOp> row_twins();
std::span<const TwinOp> state_twins();

// Shared by several of them.
Real highest_of(const Memory& x, size_t base, size_t width);
// (h - mean) / sqrt(variance + epsilon) in two corrected passes.
std::vector<Real> normed_row(const std::vector<Real>& row, Real epsilon);
// 1 / sqrt(mean(h^2) + epsilon).
Real rms_scale(const std::vector<Real>& row, Real epsilon);
// Weight (k, n) of a packed matrix of `depth` rows, in any format.
Real packed_weight(const Memory& weight, MatrixFormat format, size_t k, size_t n, size_t depth);
// A decoding step over a cache, attention_step.cpp.
bool twin_attention_step(TwinRun& run, const Node& node);
// One step of a beam search, beam_select.cpp.
bool twin_beam_select(TwinRun& run, const Node& node);

}  // namespace vkformer::conformance
