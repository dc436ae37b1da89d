// What a model file builds with: a graph, its weights by logical name, and what the host puts into
// its tensors.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "graph/graph.h"
#include "ops/experts.h"
#include "weights/request_adapters.h"
#include "weights/weight_table.h"

namespace vkformer {

// Where the host writes an input of every run. `what` names the values (ModelFamily::build_forward
// lists them). They go from 32-bit word `word` of the external tensor on.
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

// The external tensor of adapters' scales: (sequences, adapters) f32.
inline constexpr const char* kAdapterScales = "adapter_scales";

// What adapters of requests add to a linear layer (weights/request_adapters.h).
struct LinearAdapters {
  LinearWeight down;            // (K, J)
  LinearWeight up;              // (J, N)
  TensorId ranks = kNoTensor;   // (1, J)
  TensorId scales = kNoTensor;  // (sequences, A)
  int64_t items = 1;
  int64_t beams = 1;
};

// How many adapters of requests these weights have.
int64_t adapter_count(const std::vector<PackedWeight>& weights);

class ModelBuilder {
 public:
  ModelBuilder(Graph& graph, const std::vector<PackedWeight>& weights);

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  // A packed matrix with its bias. The name must be a kLinear row of the family's table.
  Result<LinearWeight> linear(const std::string& name);
  // From now on linear layers add what the weights have of adapters, by scales of each sequence.
  // The graph is a prompt of `items` items, or a step, with `beams` sequences an item.
  void use_adapters(int64_t items, int64_t beams);
  // Of the row `name`, where it has such and they are used. Whoever calls this adds them; linear()
  // of such a row is an error, so that no adapter goes missing.
  Result<std::optional<LinearAdapters>> adapters(const std::string& name);
  // A packed matrix to which the caller adds what adapters() gives.
  Result<LinearWeight> linear_without_adapters(const std::string& name);
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
  int64_t adapted_items_ = 0;  // 0: adapters are not used
  int64_t adapted_beams_ = 0;
};

// The bit patterns of floats, as host_words takes them.
std::vector<uint32_t> float_words(const std::vector<float>& values);

}  // namespace vkformer
