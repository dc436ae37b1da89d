#include <cstring>

#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "ops/argmax.h"
#include "ops/embedding.h"
#include "ops/sinusoidal_positions.h"
#include "ops/top_k.h"
#include "weights/pack_matrix.h"

namespace vkformer {
namespace {

// U32 words as I64.
Tensor widened(const std::vector<uint32_t>& words, const Shape& shape) {
  return Tensor::from_ints(shape, std::vector<int64_t>(words.begin(), words.end()));
}

std::vector<uint32_t> words_of(const Tensor& tensor) {
  std::vector<uint32_t> words(tensor.bytes.size() / 4);
  if (!words.empty()) std::memcpy(words.data(), tensor.bytes.data(), words.size() * 4);
  return words;
}

Result<TensorMap> widen_indices(TensorMap outputs) {
  Tensor& y = outputs["Y"];
  y = widened(words_of(y), y.shape);
  return outputs;
}

// A table (V, D) as words of blocks.
Result<Tensor> packed_table(const Tensor& table, MatrixFormat format) {
  VKF_ASSIGN(const std::vector<float> values, table.to_floats());
  VKF_ASSIGN(const PackedMatrix packed,
             pack_matrix(values, {table.shape[0], table.shape[1]}, {}, format));
  Tensor words = Tensor::zeros(DType::kU32, {static_cast<int64_t>(packed.words.size())});
  std::memcpy(words.bytes.data(), packed.words.data(), words.bytes.size());
  return words;
}

// (..., K, 2) words -> values (..., K), indices (..., K).
Result<TensorMap> split_best(TensorMap outputs) {
  const Tensor& best = outputs["best"];
  const std::vector<uint32_t> words = words_of(best);
  const Shape shape(best.shape.begin(), best.shape.end() - 1);
  TensorMap split;
  Tensor values = Tensor::zeros(DType::kF32, shape);
  std::vector<uint32_t> indices(words.size() / 2);
  for (size_t i = 0; i < indices.size(); ++i) {
    std::memcpy(values.bytes.data() + 4 * i, &words[2 * i], 4);
    indices[i] = words[2 * i + 1];
  }
  split.emplace("values", std::move(values));
  split.emplace("indices", widened(indices, shape));
  return split;
}

}  // namespace

Result<PreparedOperator> prepare_argmax(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X"}, {}));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  PreparedOperator op;
  VKF_ASSIGN(const TensorId y, add_argmax(op.graph, op.bind("X", std::move(x))));
  op.name_output(y, "Y");
  op.finish = widen_indices;
  return op;
}

Result<PreparedOperator> prepare_top_k(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X"}, {"k"}));
  VKF_ASSIGN(const int64_t k, arguments.integer_or("k", 1, 1, kMaxTopK));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  PreparedOperator op;
  VKF_ASSIGN(const TensorId y,
             add_top_k(op.graph, op.bind("X", std::move(x)), {static_cast<uint32_t>(k)}));
  op.name_output(y, "best");
  op.finish = split_best;
  return op;
}

Result<PreparedOperator> prepare_embedding(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"ids", "table", "positions", "norm_weight", "norm_bias"},
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
    const auto width = static_cast<int64_t>(attrs.width);
    VKF_ASSIGN(attrs.norm_epsilon, arguments.number_or("eps", 1e-5));
    VKF_ASSIGN(std::vector<float> norm, arguments.row_or("norm_weight", width, 1.0f));
    VKF_ASSIGN(const std::vector<float> bias, arguments.row_or("norm_bias", width, 0.0f));
    norm.insert(norm.end(), bias.begin(), bias.end());
    inputs.gain_bias = op.bind("gain_bias", Tensor::from_floats({2, width}, norm));
  }
  inputs.ids = op.bind("ids", std::move(ids));
  inputs.table = op.bind("table", std::move(table));
  VKF_ASSIGN(const TensorId y, add_embedding(op.graph, inputs, attrs));
  op.name_output(y, "Y");
  return op;
}

Result<PreparedOperator> prepare_sinusoidal_positions(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({}, {"length", "dim", "layout", "spacing", "offset"}));
  const JsonConfig& attributes = arguments.attributes();
  constexpr int64_t kMost = int64_t{1} << 28;
  SinusoidalAttrs attrs;
  VKF_ASSIGN(attrs.length, attributes.get_int("length"));
  VKF_ASSIGN(attrs.width, attributes.get_int("dim"));
  VKF_ASSIGN(attrs.offset, arguments.integer_or("offset", 0, -kMost, kMost));
  VKF_ASSIGN(const std::string layout, attributes.get_string_or("layout", "interleaved"));
  VKF_ASSIGN(const std::string spacing, attributes.get_string_or("spacing", "transformer"));
  if (layout != "interleaved" && layout != "halves") {
    return arguments.error("The layout is '" + layout + "', but must be interleaved or halves.");
  }
  if (spacing != "transformer" && spacing != "half_minus_one") {
    return arguments.error("The spacing is '" + spacing +
                           "', but must be transformer or half_minus_one.");
  }
  if (layout == "halves") attrs.layout = SinusoidalLayout::kHalves;
  if (spacing == "half_minus_one") attrs.spacing = SinusoidalSpacing::kHalfMinusOne;
  VKF_ASSIGN(const std::vector<float> table, sinusoidal_positions(attrs));
  PreparedOperator op;
  op.ready.emplace("Y", Tensor::from_floats({attrs.length, attrs.width}, table));
  return op;
}

}  // namespace vkformer
