// The table's rows as graphs: the adaptor's graph of a call, cut down to one operator.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/check.h"
#include "conformance/benchmark_operators.h"
#include "conformance/cases.h"
#include "conformance/step_graph.h"
#include "measure/benchmark_inputs.h"
#include "operators/operator_runner.h"

namespace vkformer {
namespace {

Error row_error(const std::string& text, const std::string& why) {
  return internal_error("[benchmark] The row '" + text + "' " + why +
                        "; correct its line in conformance/cases.");
}

Result<RowInput> parse_input(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) return row_error(std::string(word), "has no '='");
  const std::string_view name = word.substr(0, equals);
  const size_t colon = name.find(':');
  RowInput input{.name = std::string(name.substr(0, colon)), .kind = {}, .shape = {}};
  if (colon != std::string_view::npos) input.kind = name.substr(colon + 1);
  const char* at = word.data() + equals + 1;
  const char* end = word.data() + word.size();
  while (at < end) {
    int64_t size = 0;
    const auto [next, code] = std::from_chars(at, end, size);
    if (code != std::errc() || size < 1) return row_error(std::string(word), "has a size below 1");
    input.shape.push_back(size);
    at = next + 1;
  }
  return input;
}

Result<Tensor> make_content(const RowInput& input, uint32_t seed) {
  UniformNoise noise(seed);
  const auto count = static_cast<size_t>(element_count(input.shape));
  constexpr std::string_view kBelow = "below";
  if (input.kind == "mask") {
    return Tensor::from_ints(input.shape, std::vector<int64_t>(count, 1));
  }
  if (input.kind.rfind(kBelow, 0) == 0) {
    int64_t below = 1;
    std::from_chars(input.kind.data() + kBelow.size(), input.kind.data() + input.kind.size(),
                    below);
    std::vector<int64_t> values(count);
    for (int64_t& value : values) {
      const double unit = 0.5 + 0.5 * static_cast<double>(noise.next());
      value = static_cast<int64_t>(unit * static_cast<double>(below));
    }
    return Tensor::from_ints(input.shape, values);
  }
  const bool positive = input.kind == "positive";
  if (!positive && !input.kind.empty()) return row_error(input.kind, "names no kind of content");
  std::vector<float> values(count);
  for (float& value : values) value = positive ? 1.0f + 0.5f * noise.next() : noise.next();
  return Tensor::from_floats(input.shape, values);
}

std::vector<std::byte> random_content(const TensorDesc& desc, uint32_t seed) {
  UniformNoise noise(seed);
  std::vector<std::byte> bytes(static_cast<size_t>(element_count(desc.shape)) * 4);
  for (size_t i = 0; i < bytes.size(); i += 4) {
    const float value = noise.next();
    std::memcpy(bytes.data() + i, &value, 4);
  }
  return bytes;
}

// The first node of that operator, with every tensor it touches external. Numbers of tensors stay,
// for attributes may hold them.
Result<OperatorGraph> cut_out(const PreparedOperator& prepared, const OperatorRow& row) {
  const std::vector<Node>& nodes = prepared.graph.nodes();
  const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const Node& n) {
    return std::strcmp(n.op_name, row.op) == 0;
  });
  if (node == nodes.end()) return row_error(row.call, "has no node " + std::string(row.op));
  const auto among = [](const std::vector<TensorId>& list, TensorId id) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  OperatorGraph result;
  for (TensorId id = 0; id < prepared.graph.tensors().size(); ++id) {
    TensorDesc desc = prepared.graph.tensor(id);
    const bool read = among(node->inputs, id);
    desc.kind = read || among(node->outputs, id) ? TensorKind::kExternal : TensorKind::kTemporary;
    const auto given = prepared.inputs.find(prepared.graph.tensor(id).name);
    const bool bound =
        prepared.graph.tensor(id).kind == TensorKind::kExternal && given != prepared.inputs.end();
    if (read && bound) {
      result.contents.push_back({id, given->second.bytes});
    } else if (read && desc.dtype == DType::kF32) {
      result.contents.push_back({id, random_content(desc, id)});
    }
    result.graph.add_tensor(std::move(desc));
  }
  result.graph.add_node(*node);
  return result;
}

}  // namespace

std::vector<OperatorRow> operator_rows() {
  std::vector<OperatorRow> rows;
  for (const conformance::OperatorCases& cases : conformance::all_cases()) {
    rows.insert(rows.end(), cases.rows().begin(), cases.rows().end());
  }
  return rows;
}

Result<std::vector<RowInput>> parse_row_inputs(const std::string& text) {
  std::vector<RowInput> inputs;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    VKF_ASSIGN(RowInput input, parse_input(std::string_view(text).substr(at, end - at)));
    inputs.push_back(std::move(input));
    at = end + 1;
  }
  return inputs;
}

Result<OperatorGraph> make_operator_graph(const OperatorRow& row) {
  VKF_ASSIGN(const std::vector<RowInput> inputs, parse_row_inputs(row.inputs));
  const std::string name = row.call;
  if (row.build != nullptr) {
    OperatorGraph result;
    conformance::StepGraph graph(inputs, result);
    VKF_CHECK(row.build(graph));
    return result;
  }
  if (name.empty()) return row_error(row.op, "has neither a call nor a graph");
  const size_t slash = name.find('/');
  OperatorCall call{name.substr(0, slash), row.attributes, {}};
  OperatorOptions options;
  if (slash != std::string::npos) {
    VKF_ASSIGN(options.weights, choice_from_name<WeightFormat>(name.substr(slash + 1)));
  }
  uint32_t seed = 0;
  for (const RowInput& input : inputs) {
    VKF_ASSIGN(Tensor tensor, make_content(input, ++seed));
    call.inputs.emplace(input.name, std::move(tensor));
  }
  VKF_ASSIGN(const PreparedOperator prepared, prepare_operator_call(call, options));
  return cut_out(prepared, row);
}

}  // namespace vkformer
