#include "session/rounded_lengths.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/message.h"

namespace vkformer {
namespace {

constexpr int64_t kLeastStep = 16;  // tokens

// The rows (B,T) of `name`, or null where they are no such rows.
const Shape* rows_of(const TensorMap& inputs, const std::string& name) {
  const auto found = inputs.find(name);
  if (found == inputs.end()) return nullptr;
  const Shape& shape = found->second.shape;
  const bool rows = shape.size() == 2 && shape[0] >= 1 && shape[1] >= 1;
  const DType dtype = found->second.dtype;
  return rows && (dtype == DType::kI64 || dtype == DType::kI32) ? &shape : nullptr;
}

// (B,T) to (B,to), with `value` after what was there.
Result<Tensor> padded(const Tensor& rows, int64_t to, int64_t value) {
  VKF_ASSIGN(const std::vector<int64_t> given, rows.to_ints());
  const int64_t batch = rows.shape[0], tokens = rows.shape[1];
  std::vector<int64_t> wide(static_cast<size_t>(batch * to), value);
  for (int64_t b = 0; b < batch; ++b) {
    std::copy_n(given.begin() + b * tokens, tokens, wide.begin() + b * to);
  }
  return Tensor::from_ints({batch, to}, wide);
}

// Token rows and what goes with them, all to one length. 0: nothing was padded.
Result<int64_t> pad(TensorMap& inputs, const std::string& prefix, const TokenFacts& facts,
                    int64_t most) {
  const Shape* rows = rows_of(inputs, prefix + "input_ids");
  if (rows == nullptr || (*rows)[1] > most) return 0;
  const Shape shape = *rows;
  const int64_t to = rounded_length(shape[1], most);
  if (to == shape[1]) return 0;
  TensorMap wide;
  for (const char* more : {"attention_mask", "token_type_ids"}) {
    const std::string name = prefix + more;
    if (inputs.count(name) == 0) continue;
    const Shape* own = rows_of(inputs, name);
    if (own == nullptr || *own != shape) return 0;
    VKF_ASSIGN(wide[name], padded(inputs.at(name), to, 0));
  }
  const std::string mask = prefix + "attention_mask";
  if (wide.count(mask) == 0) {
    const std::vector<int64_t> all(static_cast<size_t>(element_count(shape)), 1);
    VKF_ASSIGN(wide[mask], padded(Tensor::from_ints(shape, all), to, 0));
  }
  VKF_ASSIGN(wide[prefix + "input_ids"],
             padded(inputs.at(prefix + "input_ids"), to, std::max<int64_t>(0, facts.pad)));
  for (auto& [name, tensor] : wide) inputs[name] = std::move(tensor);
  return shape[1];
}

// Of a row-major tensor, the first `sizes` along each axis.
Tensor first_of(const Tensor& tensor, const Shape& sizes) {
  Tensor cut = Tensor::zeros(tensor.dtype, sizes);
  // The last axis that is cut: all after it is one piece.
  size_t last = sizes.size();
  while (last > 0 && sizes[last - 1] == tensor.shape[last - 1]) --last;
  if (last == 0 || cut.bytes.empty()) return last == 0 ? tensor : cut;
  size_t unit = dtype_size(tensor.dtype);
  for (size_t axis = last; axis < sizes.size(); ++axis) unit *= static_cast<size_t>(sizes[axis]);
  const size_t bytes = unit * static_cast<size_t>(sizes[last - 1]);
  Shape at(last - 1, 0);
  for (size_t to = 0; to < cut.bytes.size(); to += bytes) {
    int64_t from = 0;
    for (size_t axis = 0; axis + 1 < last; ++axis) from = from * tensor.shape[axis] + at[axis];
    const size_t begin = static_cast<size_t>(from * tensor.shape[last - 1]) * unit;
    std::memcpy(cut.bytes.data() + to, tensor.bytes.data() + begin, bytes);
    for (size_t axis = at.size(); axis-- > 0;) {
      if (++at[axis] < sizes[axis]) break;
      at[axis] = 0;
    }
  }
  return cut;
}

}  // namespace

int64_t rounded_length(int64_t tokens, int64_t most) {
  const auto octave = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(tokens - 1)));
  const int64_t step = std::max(kLeastStep, octave / 4);
  return std::max(tokens, std::min(most, (tokens + step - 1) / step * step));
}

Result<std::optional<GivenLengths>> round_lengths(const ModelFacts& facts, TensorMap& inputs) {
  using None = std::optional<GivenLengths>;
  if (facts.padding == ModelFacts::Padding::kSeen || facts.passes == ModelFacts::Passes::kTwo ||
      facts.prompts == ModelFacts::Prompts::kExact ||
      facts.target_names == ModelFacts::TargetNames::kEither) {
    return None();
  }
  constexpr std::string_view kKnown[] = {"input_ids",      "attention_mask",
                                         "token_type_ids", "decoder_input_ids",
                                         "pixel_values",   "decoder_attention_mask"};
  for (const auto& [name, tensor] : inputs) {
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown)) return None();
  }
  GivenLengths given;
  VKF_ASSIGN(given.source, pad(inputs, "", facts.source_tokens, facts.max_source));
  VKF_ASSIGN(given.target, pad(inputs, "decoder_", facts.target_tokens, facts.max_target));
  return None(given);
}

Result<OutputAxes> output_axes(
    const Graph& whole, const std::vector<std::string>& outputs, const ForwardShape& shape,
    const std::function<Result<Graph>(const ForwardShape& shape)>& build) {
  OutputAxes axes;
  const auto size_of = [](const Graph& graph, const std::string& name) {
    return graph.tensor(graph.find_external(name)).shape;
  };
  for (const std::string& name : outputs) {
    axes[name].assign(size_of(whole, name).size(), OutputAxis::kOther);
  }
  const auto compare = [&](const ForwardShape& shorter, OutputAxis which) -> Status {
    VKF_ASSIGN(const Graph graph, build(shorter));
    for (const std::string& name : outputs) {
      const Shape all = size_of(whole, name), fewer = size_of(graph, name);
      for (size_t axis = 0; axis < all.size(); ++axis) {
        if (all[axis] == fewer[axis]) continue;
        if (all[axis] != fewer[axis] + 1) {
          return unsupported(message({"[round_lengths] one token less makes [", name, "] ",
                                      shape_text(fewer), " of ", shape_text(all),
                                      ", so it cannot be cut back to the tokens that were given; "
                                      "make the session without round_lengths"}));
        }
        axes[name][axis] = which;
      }
    }
    return {};
  };
  ForwardShape shorter = shape;
  if (shape.source > 1) {
    --shorter.source;
    VKF_CHECK(compare(shorter, OutputAxis::kSource));
  }
  shorter = shape;
  if (shape.target > 1) {
    --shorter.target;
    VKF_CHECK(compare(shorter, OutputAxis::kTarget));
  }
  return axes;
}

void cut_outputs(const OutputAxes& axes, const GivenLengths& given, TensorMap& outputs) {
  for (auto& [name, tensor] : outputs) {
    const auto found = axes.find(name);
    if (found == axes.end()) continue;
    Shape sizes = tensor.shape;
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if (found->second[axis] == OutputAxis::kSource && given.source > 0)
        sizes[axis] = given.source;
      if (found->second[axis] == OutputAxis::kTarget && given.target > 0)
        sizes[axis] = given.target;
    }
    if (sizes != tensor.shape) tensor = first_of(tensor, sizes);
  }
}

}  // namespace vkformer
