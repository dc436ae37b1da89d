// The inputs and attributes of one OperatorCall, checked and converted, and the graph made of them.
// What the operator adaptors (operator_adaptors.h) are written with.
#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>

#include "base/matrix_format.h"
#include "checkpoint/json_config.h"
#include "graph/graph.h"
#include "vkformer/operators.h"
#include "weights/pack_matrix.h"

namespace vkformer {

// A view of an OperatorCall and its options; both must outlive it.
class OperatorArguments {
 public:
  // Parses the attributes. An error if they are no JSON object.
  static Result<OperatorArguments> parse(const OperatorCall& call, const OperatorOptions& options);

  const JsonConfig& attributes() const { return attributes_; }
  const OperatorOptions& options() const { return *options_; }

  // An error if the call has an input or attribute that is not in these lists.
  Status check_names(std::initializer_list<std::string_view> inputs,
                     std::initializer_list<std::string_view> attributes) const;

  // The input of that name, or null.
  const Tensor* find(const std::string& name) const;
  // The input of that name, or an error that says it is missing.
  Result<const Tensor*> require(const std::string& name) const;
  // The same as F32 (from F16, BF16, F32 or F64).
  Result<Tensor> floats(const std::string& name) const;
  // The same of a row (width) that goes with X.
  Result<std::vector<float>> row(const std::string& name, int64_t width) const;
  // The same, or `fallback` in every column where it is not given.
  Result<std::vector<float>> row_or(const std::string& name, int64_t width, float fallback) const;
  // Rows of those names as a norm's gain and bias (2, width): ones and zeros where they are not
  // given.
  Result<Tensor> gain_bias(const std::string& gain, const std::string& bias, int64_t width) const;
  // How the options store weights.
  Result<MatrixFormat> weight_format() const;
  // The same as F32, or as F16 where the options store weights so; an error for other formats.
  Result<Tensor> weights(const std::string& name) const;
  // The same as U32 (from any integer type); an error for a value that is not below `limit`.
  Result<Tensor> ids(const std::string& name, int64_t limit) const;

  // An attribute as f32; an error if it is beyond f32's range.
  Result<float> number_or(const std::string& name, double fallback) const;
  // An integer attribute within [low, high].
  Result<int64_t> integer_or(const std::string& name, int64_t fallback, int64_t low,
                             int64_t high) const;

  // An error of this operator: "[name] message".
  Error error(const std::string& message) const;

 private:
  OperatorArguments(const OperatorCall& call, const OperatorOptions& options)
      : call_(&call), options_(&options) {}

  const OperatorCall* call_;
  const OperatorOptions* options_;
  JsonConfig attributes_;
};

// The last dimension of the input X, or an error for a scalar.
Result<int64_t> row_width(const OperatorArguments& arguments, const Tensor& x);
// An error unless every dimension is within what kernels count in.
Status check_dimensions(const OperatorArguments& arguments, const char* name, const Shape& shape);
// An error unless inputs (B, H, S, ...) of `width` columns together have offsets of 32 bits.
Status check_elements(const OperatorArguments& arguments, const Shape& shape, int64_t width);

struct PreparedOperator;
// An operator of one tensor, X, which gives one, Y: what `add`(graph, x) makes of it.
Result<PreparedOperator> unary_operator(
    const OperatorArguments& arguments,
    const std::function<Result<TensorId>(Graph& graph, TensorId x)>& add);

// U32 words as a tensor, and back.
Tensor words_tensor(const std::vector<uint32_t>& words, Shape shape);
std::vector<uint32_t> tensor_words(const Tensor& tensor);
// A packed matrix (words).
Tensor packed_tensor(const PackedMatrix& packed);
// U32 indices as I64, which is what outputs hold.
Tensor index_tensor(const std::vector<uint32_t>& index, const Shape& shape);
// F32 tensors one after the other, in one (elements).
Tensor joined(std::initializer_list<const Tensor*> parts);

// A graph ready to run, or the finished outputs of an operator that needs no GPU.
struct PreparedOperator {
  Graph graph;
  TensorMap inputs;  // for run_graph
  TensorMap ready;   // outputs made on the host; if there are any, the graph is not run
  // Turns run_graph's outputs into the documented ones; null: they are.
  std::function<Result<TensorMap>(TensorMap outputs)> finish = nullptr;

  // An external tensor of the graph, bound to `tensor`. Precondition: no input of that name yet.
  TensorId bind(const std::string& name, Tensor tensor);
  // Makes a tensor of the graph an output of that name.
  void name_output(TensorId id, const std::string& name);
};

}  // namespace vkformer
