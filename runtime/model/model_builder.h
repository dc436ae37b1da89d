// What a model file builds with: a graph, its weights by logical name, and what the host puts into
// its tensors.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"
#include "ops/experts.h"
#include "weights/weight_table.h"

namespace vkformer {

// Where the host writes an input of every run: `what` names the values (ModelFamily::build_forward
// lists them), from 32-bit word `word` of the external tensor on.
struct HostFeed {
  std::string what;
  TensorId tensor = kNoTensor;
  uint64_t word = 0;
};

// Values that depend on the shape only (rotary tables, relative biases, index lists): the host
// writes them once, when the pass is made.
struct HostWords {
  TensorId tensor = kNoTensor;
  uint64_t word = 0;
  std::vector<uint32_t> values;
};

class ModelBuilder {
 public:
  ModelBuilder(Graph& graph, const std::vector<PackedWeight>& weights);

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  // A packed matrix with its bias. The name must be a kLinear row of the family's table.
  Result<LinearWeight> linear(const std::string& name);
  // The matrices of all experts, of a row that has WeightRow::experts.
  Result<ExpertWeight> experts(const std::string& name);
  // Norm parameters (2, D).
  Result<TensorId> norm(const std::string& name);
  // A table (rows, D) f32.
  Result<TensorId> table(const std::string& name);
  // Whether the family's table has a row of that name.
  bool has(const std::string& name) const;

  // Hands a temporary out of the graph under that name.
  void mark_output(TensorId tensor, const std::string& name);

  void feed(std::string what, TensorId tensor, uint64_t word = 0);
  // An external tensor with these values; a second call with the same name returns the first's.
  TensorId host_tensor(const std::string& name, DType dtype, Shape shape,
                       std::vector<uint32_t> values);
  TensorId host_floats(const std::string& name, Shape shape, const std::vector<float>& values);
  // Values at `word` of an external tensor that also holds other things.
  void host_words(TensorId tensor, uint64_t word, std::vector<uint32_t> values);

  const std::vector<HostFeed>& feeds() const { return feeds_; }
  const std::vector<HostWords>& words() const { return words_; }

 private:
  Result<TensorId> constant(const std::string& name, WeightLayout layout);
  TensorId add_constant(size_t index);

  Graph& graph_;
  const std::vector<PackedWeight>& weights_;
  std::map<std::string, TensorId> constants_;
  std::vector<HostFeed> feeds_;
  std::vector<HostWords> words_;
};

// The bit patterns of floats, as host_words takes them.
std::vector<uint32_t> float_words(const std::vector<float>& values);

}  // namespace vkformer
