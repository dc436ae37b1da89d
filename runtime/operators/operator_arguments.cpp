#include "operators/operator_arguments.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/half.h"
#include "base/message.h"

namespace vkformer {
namespace {

Status check_name(const OperatorArguments& arguments, const char* what, const std::string& name,
                  std::initializer_list<std::string_view> known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  std::string list;
  for (std::string_view k : known) list += (list.empty() ? "" : ", ") + std::string(k);
  return arguments.error("It has no " + std::string(what) + " '" + name + "'; " +
                         (list.empty() ? "it has none." : "use " + list + "."));
}

Tensor halves(const std::vector<float>& values, Shape shape) {
  Tensor tensor = Tensor::zeros(DType::kF16, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = half_from_float(values[i]);
    std::memcpy(tensor.bytes.data() + 2 * i, &bits, 2);
  }
  return tensor;
}

// Do the bytes match shape and dtype? Whoever fills a Tensor by hand may get it wrong.
Status check_bytes(const OperatorArguments& arguments, const std::string& name, const Tensor& t) {
  uint64_t bytes = dtype_size(t.dtype);
  for (int64_t dim : t.shape) {
    constexpr uint64_t kMost = uint64_t{1} << 40;
    if (dim < 0 || (dim > 0 && bytes > kMost / static_cast<uint64_t>(dim))) {
      return arguments.error("Input " + name + " has the impossible shape " + shape_text(t.shape) +
                             ".");
    }
    bytes *= static_cast<uint64_t>(dim);
  }
  if (bytes == t.bytes.size()) return {};
  return arguments.error("Input " + name + " has " + std::to_string(t.bytes.size()) +
                         " bytes, but " + dtype_name(t.dtype) + " " + shape_text(t.shape) +
                         " takes " + std::to_string(bytes) + ".");
}

}  // namespace

Result<OperatorArguments> OperatorArguments::parse(const OperatorCall& call,
                                                   const OperatorOptions& options) {
  OperatorArguments arguments(call, options);
  VKF_ASSIGN(arguments.attributes_,
             JsonConfig::parse(call.attributes_json, call.name + " attributes"));
  for (const auto& [name, tensor] : call.inputs) {
    VKF_CHECK(check_bytes(arguments, name, tensor));
  }
  return arguments;
}

Status OperatorArguments::check_names(std::initializer_list<std::string_view> inputs,
                                      std::initializer_list<std::string_view> attributes) const {
  for (const auto& [name, tensor] : call_->inputs) {
    VKF_CHECK(check_name(*this, "input", name, inputs));
  }
  for (const std::string& key : attributes_.keys()) {
    VKF_CHECK(check_name(*this, "attribute", key, attributes));
  }
  return {};
}

const Tensor* OperatorArguments::find(const std::string& name) const {
  const auto found = call_->inputs.find(name);
  return found == call_->inputs.end() ? nullptr : &found->second;
}

Result<const Tensor*> OperatorArguments::require(const std::string& name) const {
  const Tensor* tensor = find(name);
  if (tensor == nullptr) return error("The input " + name + " is missing; it must be given.");
  return tensor;
}

Result<Tensor> OperatorArguments::floats(const std::string& name) const {
  VKF_ASSIGN(const Tensor* tensor, require(name));
  if (tensor->dtype == DType::kF32) return *tensor;
  if (tensor->dtype == DType::kF64) {
    Tensor narrowed = Tensor::zeros(DType::kF32, tensor->shape);
    for (size_t i = 0; i < tensor->bytes.size() / 8; ++i) {
      double wide = 0;
      std::memcpy(&wide, tensor->bytes.data() + 8 * i, 8);
      const float narrow = static_cast<float>(wide);
      std::memcpy(narrowed.bytes.data() + 4 * i, &narrow, 4);
    }
    return narrowed;
  }
  auto values = tensor->to_floats();
  if (!values) return values.error().with_context(message({"[", call_->name, "] input ", name}));
  return Tensor::from_floats(tensor->shape, *values);
}

Result<MatrixFormat> OperatorArguments::weight_format() const {
  const auto format = format_from_name(options_->weights);
  if (format) return *format;
  return error("There is no weight format '" + options_->weights +
               "'; use f32, f16, bf16, q8, q4 or q4m.");
}

Result<Tensor> OperatorArguments::weights(const std::string& name) const {
  VKF_ASSIGN(const Tensor* tensor, require(name));
  if (options_->weights == "f32") return floats(name);
  if (options_->weights != "f16") {
    return error("Its " + name + " is stored in f32 or f16, not in " + options_->weights + ".");
  }
  if (tensor->dtype == DType::kF16) return *tensor;
  VKF_ASSIGN(const Tensor wide, floats(name));
  VKF_ASSIGN(const std::vector<float> values, wide.to_floats());
  return halves(values, tensor->shape);
}

Result<Tensor> OperatorArguments::ids(const std::string& name, int64_t limit) const {
  VKF_ASSIGN(const Tensor* tensor, require(name));
  auto values = tensor->to_ints();
  if (!values) return values.error().with_context(message({"[", call_->name, "] input ", name}));
  Tensor narrowed = Tensor::zeros(DType::kU32, tensor->shape);
  for (size_t i = 0; i < values->size(); ++i) {
    const int64_t value = (*values)[i];
    if (value < 0 || value >= limit) {
      return error("Element " + std::to_string(i) + " of " + name + " is " + std::to_string(value) +
                   ", but must be from 0 to " + std::to_string(limit - 1) + ".");
    }
    const uint32_t id = static_cast<uint32_t>(value);
    std::memcpy(narrowed.bytes.data() + 4 * i, &id, 4);
  }
  return narrowed;
}

Result<std::vector<float>> OperatorArguments::row(const std::string& name, int64_t width) const {
  VKF_ASSIGN(const Tensor tensor, floats(name));
  if (tensor.shape == Shape{width}) return tensor.to_floats();
  return error(name + " has shape " + shape_text(tensor.shape) + ", but X asks for " +
               shape_text({width}) + ".");
}

Result<std::vector<float>> OperatorArguments::row_or(const std::string& name, int64_t width,
                                                     float fallback) const {
  if (find(name) != nullptr) return row(name, width);
  return std::vector<float>(static_cast<size_t>(width), fallback);
}

Result<Tensor> OperatorArguments::gain_bias(const std::string& gain, const std::string& bias,
                                            int64_t width) const {
  VKF_ASSIGN(std::vector<float> both, row_or(gain, width, 1.0f));
  VKF_ASSIGN(const std::vector<float> second, row_or(bias, width, 0.0f));
  both.insert(both.end(), second.begin(), second.end());
  return Tensor::from_floats({2, width}, both);
}

Result<float> OperatorArguments::number_or(const std::string& name, double fallback) const {
  VKF_ASSIGN(const double value, attributes_.get_double_or(name, fallback));
  if (std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max())) {
    return static_cast<float>(value);
  }
  return error("The attribute " + name + " is beyond the range of a 32-bit float.");
}

Result<int64_t> OperatorArguments::integer_or(const std::string& name, int64_t fallback,
                                              int64_t low, int64_t high) const {
  VKF_ASSIGN(const int64_t value, attributes_.get_int_or(name, fallback));
  if (value >= low && value <= high) return value;
  return error("The attribute " + name + " is " + std::to_string(value) + ", but must be from " +
               std::to_string(low) + " to " + std::to_string(high) + ".");
}

Error OperatorArguments::error(const std::string& text) const {
  return invalid_argument(message({"[", call_->name, "] ", text}));
}

Result<int64_t> row_width(const OperatorArguments& arguments, const Tensor& x) {
  if (!x.shape.empty()) return x.shape.back();
  return arguments.error("X is a scalar, but must have at least one dimension.");
}

Status check_dimensions(const OperatorArguments& arguments, const char* name, const Shape& shape) {
  for (int64_t size : shape) {
    if (size > 0 && size < (1 << 24)) continue;
    return arguments.error("A dimension of " + std::string(name) + " " + shape_text(shape) +
                           " is " + std::to_string(size) + ", but must be from 1 to 16777215.");
  }
  return {};
}

Status check_elements(const OperatorArguments& arguments, const Shape& shape, int64_t width) {
  const double elements = static_cast<double>(shape[0]) * static_cast<double>(shape[1]) *
                          static_cast<double>(shape[2]) * static_cast<double>(width);
  if (elements < 4294967296.0) return {};
  return arguments.error("Inputs of " + shape_text(shape) +
                         " hold 2^32 elements or more together; use a smaller batch.");
}

Result<PreparedOperator> unary_operator(
    const OperatorArguments& arguments,
    const std::function<Result<TensorId>(Graph& graph, TensorId x)>& add) {
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  PreparedOperator op;
  VKF_ASSIGN(const TensorId y, add(op.graph, op.bind("X", std::move(x))));
  op.name_output(y, "Y");
  return op;
}

Tensor words_tensor(const std::vector<uint32_t>& words, Shape shape) {
  Tensor tensor = Tensor::zeros(DType::kU32, std::move(shape));
  const size_t bytes = std::min(tensor.bytes.size(), words.size() * 4);
  if (bytes > 0) std::memcpy(tensor.bytes.data(), words.data(), bytes);
  return tensor;
}

std::vector<uint32_t> tensor_words(const Tensor& tensor) {
  std::vector<uint32_t> words(tensor.bytes.size() / 4);
  if (!words.empty()) std::memcpy(words.data(), tensor.bytes.data(), words.size() * 4);
  return words;
}

Tensor packed_tensor(const PackedMatrix& packed) {
  return words_tensor(packed.words, {static_cast<int64_t>(packed.words.size())});
}

Tensor index_tensor(const std::vector<uint32_t>& index, const Shape& shape) {
  return Tensor::from_ints(shape, std::vector<int64_t>(index.begin(), index.end()));
}

Tensor joined(std::initializer_list<const Tensor*> parts) {
  int64_t count = 0;
  for (const Tensor* part : parts) count += part->count();
  Tensor whole = Tensor::zeros(DType::kF32, {count});
  std::byte* to = whole.bytes.data();
  for (const Tensor* part : parts) {
    std::memcpy(to, part->bytes.data(), part->bytes.size());
    to += part->bytes.size();
  }
  return whole;
}

TensorId PreparedOperator::bind(const std::string& name, Tensor tensor) {
  const TensorId id = graph.add_external(name, tensor.dtype, tensor.shape);
  inputs.emplace(name, std::move(tensor));
  return id;
}

void PreparedOperator::name_output(TensorId id, const std::string& name) {
  TensorDesc& desc = graph.tensor(id);
  desc.kind = TensorKind::kExternal;
  desc.name = name;
}

}  // namespace vkformer
