#include "ops/activation.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/activation.h"
#include "params/rowwise.h"

namespace vkformer {
namespace {

static_assert(static_cast<uint32_t>(ActivationKind::kGelu) == kActivationGeluErf &&
                  static_cast<uint32_t>(ActivationKind::kEluPlusOne) == kActivationEluPlusOne,
              "The shaders switch on the same numbers.");

struct NameRow {
  std::string_view name;
  ActivationKind kind;
};

// The first name of a kind is the one it is printed with.
constexpr NameRow kNames[] = {
    {"none", ActivationKind::kNone},
    {"relu", ActivationKind::kRelu},
    {"gelu", ActivationKind::kGelu},
    {"gelu_tanh", ActivationKind::kGeluTanh},
    {"silu", ActivationKind::kSilu},
    {"quick_gelu", ActivationKind::kQuickGelu},
    {"tanh", ActivationKind::kTanh},
    {"sigmoid", ActivationKind::kSigmoid},
    {"elu_plus_one", ActivationKind::kEluPlusOne},
    {"identity", ActivationKind::kNone},
    {"linear", ActivationKind::kNone},
    {"gelu_python", ActivationKind::kGelu},
    {"gelu_new", ActivationKind::kGeluTanh},
    {"gelu_fast", ActivationKind::kGeluTanh},
    {"gelu_pytorch_tanh", ActivationKind::kGeluTanh},
    {"gelu_accurate", ActivationKind::kGeluTanh},
    {"swish", ActivationKind::kSilu},
};

}  // namespace

const char* activation_name(ActivationKind kind) {
  for (const NameRow& row : kNames) {
    if (row.kind == kind) return row.name.data();
  }
  return "unknown";
}

Result<ActivationKind> activation_from_name(std::string_view name) {
  std::string known;
  for (const NameRow& row : kNames) {
    if (row.name == name) return row.kind;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  return unsupported(
      message({"[activation] The kind '", name, "' is unknown; use one of ", known, "."}));
}

Result<TensorDesc> check_activation(const TensorDesc& x, ActivationAttrs attrs) {
  VKF_CHECK(check_floats(OpId::k_activation, "x", x, 0));
  if (static_cast<uint32_t>(attrs.kind) > static_cast<uint32_t>(ActivationKind::kEluPlusOne)) {
    return op_error(
        OpId::k_activation,
        message({"The kind is number ", static_cast<uint32_t>(attrs.kind), ", but the last one is ",
                 static_cast<uint32_t>(ActivationKind::kEluPlusOne), "."}));
  }
  return TensorDesc{"activation", DType::kF32, x.shape};
}

Result<TensorId> add_activation(Graph& graph, TensorId x, ActivationAttrs attrs) {
  VKF_ASSIGN(TensorDesc out, check_activation(graph.tensor(x), attrs));
  Node node =
      make_node<OpId::k_activation>(attrs, std::string("kind=") + activation_name(attrs.kind));
  node.inputs = {x};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_activation(LowerContext& context, const Node& node) {
  const TensorDesc& x = context.desc(node.inputs[0]);
  const uint64_t count = static_cast<uint64_t>(element_count(x.shape));
  // Only a decoding step needs the rows as they are; elsewhere the tensor is one long row, folded.
  constexpr uint64_t kFoldedRow = 1u << 16;
  uint64_t width = std::min(count, kFoldedRow);
  if (context.graph.is_step() && !x.shape.empty()) width = static_cast<uint64_t>(x.shape.back());
  const uint64_t rows = width == 0 ? 0 : (count + width - 1) / width;
  const ElementParams params{.rows = static_cast<uint32_t>(rows),
                             .width = static_cast<uint32_t>(width),
                             .count = static_cast<uint32_t>(count),
                             .unused = 0};
  Dispatch d =
      make_row_dispatch(context, node, KernelId::activation_run__f32_none_f32, rows, params.width);
  const uint32_t local = row_local_size(context.caps, params.width);
  const uint32_t run = run_length(context.caps, local);
  d.set_constants(
      ActivationConstants{.local_size = local,
                          .kind = static_cast<uint32_t>(attrs_of<ActivationAttrs>(node).kind),
                          .chunk = run});
  d.groups[2] = std::max(1u, (params.width + run - 1) / run);
  d.set_push(params);
  d.flops = 10.0 * static_cast<double>(count);
  d.bytes = 8.0 * static_cast<double>(count);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
