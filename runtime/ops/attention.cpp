#include "ops/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/message.h"
#include "ops/attention_blocks.h"
#include "ops/attention_step.h"
#include "ops/attention_strategy.h"
#include "ops/attention_units.h"
#include "ops/key_walk.h"
#include "ops/row_kernel.h"
#include "ops/score_kinds.h"
#include "software/strategies.h"

namespace vkformer {
namespace {

constexpr uint32_t kMostAttentionQueries = 65535 * 4;  // four a workgroup, at the least
constexpr uint32_t kMostHeads = 65535;                 // a push constant holds H and H / Hkv

std::string attrs_text(const AttentionAttrs& a) {
  std::string text = "B=" + std::to_string(a.batch) + " H=" + std::to_string(a.heads) +
                     " Hkv=" + std::to_string(a.kv_heads) + " T=" + std::to_string(a.queries) +
                     " S=" + std::to_string(a.keys) + " E=" + std::to_string(a.head_width) +
                     " Ev=" + std::to_string(a.value_width);
  if (a.softcap != 0) text += " softcap";
  if (a.relative.kinds != 0) text += " relative";
  const ScoreTermsParams& t = a.terms;
  if ((t.flags & VKF_TERM_CAUSAL) != 0) text += " causal";
  if ((t.flags & (VKF_TERM_WINDOW_LEFT | VKF_TERM_WINDOW_RIGHT)) != 0) text += " window";
  if (t.key_mask_offset != VKF_NO_TERM) text += " key_mask";
  if (t.mask_offset != VKF_NO_TERM) text += " mask";
  if (t.bias_offset != VKF_NO_TERM) text += " bias";
  if (t.slopes_offset != VKF_NO_TERM) {
    text += (t.flags & VKF_TERM_DISTANCE) != 0 ? " distance" : " alibi";
  }
  if ((t.flags & VKF_TERM_GLOBAL) != 0) text += " global";
  if ((t.flags & VKF_TERM_DOCUMENTS) != 0) text += " documents";
  if ((t.flags & VKF_TERM_PREFIX) != 0) text += " prefix";
  if ((t.flags & VKF_TERM_BLOCKS) != 0) text += " blocks";
  if ((t.flags & VKF_TERM_SINKS) != 0) text += " sinks";
  return text;
}

// Columns of a head in y.
uint32_t result_width(const AttentionAttrs& a) {
  return counts_keys(a) ? 1 : a.value_width;
}

Shape default_shape(const AttentionAttrs& a) {
  if (counts_keys(a)) return {a.batch, a.heads, a.queries};
  return {a.batch, a.queries, static_cast<int64_t>(a.heads) * a.value_width};
}

// Attributes with every default filled in.
AttentionAttrs complete(AttentionAttrs a) {
  if (a.y_shape.empty()) a.y_shape = default_shape(a);
  if (counts_keys(a)) {
    a.y = separate_heads(a.heads, a.queries, 1, 0);
    a.y_shape = default_shape(a);
  }
  if (a.y.row_stride == 0) a.y = merged_rows(a.queries, a.heads * a.value_width, 0, a.value_width);
  if (!a.scale) a.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(a.head_width)));
  return a;
}

}  // namespace

HeadLayout merged_rows(uint32_t tokens, uint32_t width, uint32_t column, uint32_t head_width) {
  return {column, tokens * width, head_width, width};
}

HeadLayout separate_heads(uint32_t heads, uint32_t tokens, uint32_t head_width, uint32_t offset) {
  return {offset, heads * tokens * head_width, tokens * head_width, head_width};
}

Status check_terms(OpId op, const TensorDesc* terms, const ScoreTermsParams& params,
                   std::span<const uint32_t, 4> dims) {
  const uint32_t offsets[] = {params.key_mask_offset, params.mask_offset, params.bias_offset,
                              params.slopes_offset};
  const bool wanted = (params.flags & (VKF_TERM_SPARSE | VKF_TERM_SINKS)) != 0 ||
                      std::any_of(std::begin(offsets), std::end(offsets),
                                  [](uint32_t offset) { return offset != VKF_NO_TERM; });
  if (wanted && terms == nullptr) {
    return op_error(op,
                    "a mask or bias is set, but no terms tensor is given; pass the words that "
                    "pack_score_terms made");
  }
  if (wanted && terms->dtype != DType::kU32) {
    return op_error(op, message({"terms is ", dtype_name(terms->dtype), ", but must be U32"}));
  }
  const uint64_t words = terms == nullptr ? 0 : static_cast<uint64_t>(element_count(terms->shape));
  const std::array<uint64_t, 4> sizes = {dims[0], dims[1], dims[2], dims[3]};
  const std::string error = score_terms_error(params, words, sizes);
  if (!error.empty()) return op_error(op, error);
  return {};
}

Status check_layout(OpId op, const TensorDesc& t, const char* role, const HeadLayout& layout,
                    std::span<const uint32_t, 4> dims) {
  if (t.dtype != DType::kF32) {
    return op_error(op, message({role, " is ", dtype_name(t.dtype), ", but must be F32"}));
  }
  const uint64_t strides[] = {layout.batch_stride, layout.head_stride, layout.row_stride, 1};
  uint64_t end = uint64_t{layout.offset} + 1;
  for (size_t axis = 0; axis < 4; ++axis) end += strides[axis] * (uint64_t{dims[axis]} - 1);
  const uint64_t count = static_cast<uint64_t>(element_count(t.shape));
  if (end <= count && count <= 0xffffffffu) return {};
  return op_error(
      op, message({role, " reaches element ", end, " of [", t.name, "], which has ", count, " ",
                   shape_text(t.shape),
                   "; check the layout's offset and strides (at most 2^32 - 1 elements)"}));
}

Status check_attention_numbers(OpId op, const AttentionAttrs& a, uint32_t most_width) {
  const uint32_t sizes[] = {a.batch, a.heads,      a.kv_heads,   a.queries,
                            a.keys,  a.head_width, a.value_width};
  const char* names[] = {"batch", "heads",      "kv_heads",   "queries",
                         "keys",  "head_width", "value_width"};
  for (size_t i = 0; i < 7; ++i) {
    if (sizes[i] >= 1 && sizes[i] < (1u << 24)) continue;
    return op_error(
        op, message({names[i], " is ", sizes[i], ", but must be from 1 to ", (1u << 24) - 1}));
  }
  if (std::max(a.head_width, a.value_width) > most_width) {
    return op_error(op, message({"head width ", a.head_width, " or value width ", a.value_width,
                                 " is above the limit of ", most_width}));
  }
  if (a.heads % a.kv_heads != 0) {
    return op_error(
        op, message({a.heads, " heads do not divide among ", a.kv_heads, " key/value heads"}));
  }
  if (!(a.temperature > 0) || !std::isfinite(a.temperature) ||
      !std::isfinite(1.0f / a.temperature)) {
    return op_error(
        op, message({"temperature is ", a.temperature, ", but must be a normal number above 0"}));
  }
  if (a.scale && !std::isfinite(*a.scale)) {
    return op_error(op, message({"scale is ", *a.scale, ", but must be finite"}));
  }
  if (a.heads > kMostHeads) {
    return op_error(op, message({a.heads, " heads are above the limit of ", kMostHeads}));
  }
  const std::string cap = softcap_error(a.softcap);
  if (!cap.empty()) return op_error(op, cap);
  return {};
}

std::string softcap_error(float softcap) {
  if (softcap == 0.0f || (softcap > 0 && std::isnormal(softcap) && std::isfinite(1.0f / softcap))) {
    return {};
  }
  return "softcap is " + number_text(softcap) +
         ", but must be a normal number above 0, or 0 for none";
}

uint32_t softcap_bits(float softcap) {
  return softcap == 0.0f ? 0u : std::bit_cast<uint32_t>(softcap);
}

Status check_relative(OpId op, const TensorDesc& kv, const AttentionAttrs& a) {
  const RelativePositions& r = a.relative;
  if (r.kinds == 0) return {};
  if ((r.kinds & VKF_RELATIVE_KEYS) == 0) {
    return op_error(
        op,
        "relative queries, products, biases or values are set without the rows of relative keys");
  }
  constexpr uint32_t kEither = VKF_RELATIVE_VALUES | VKF_RELATIVE_PRODUCTS;
  if ((r.kinds & kEither) == kEither) {
    return op_error(op, "relative values and relative products are set; use one");
  }
  const uint64_t heads = (r.kinds & VKF_RELATIVE_ONE_HEAD) != 0 ? 1 : a.heads;
  uint64_t row = heads * a.head_width * ((r.kinds & VKF_RELATIVE_QUERIES) != 0 ? 2 : 1);
  if ((r.kinds & VKF_RELATIVE_VALUES) != 0) row += heads * a.value_width;
  uint64_t end = r.offset + (2 * uint64_t{r.reach} + 1) * row;
  if ((r.kinds & VKF_RELATIVE_PRODUCTS) != 0) {
    end += uint64_t{a.batch} * a.heads * a.keys * (2 * uint64_t{r.reach} + 1);
  }
  if ((r.kinds & VKF_RELATIVE_BIASES) != 0) end += 2 * uint64_t{a.heads} * a.head_width;
  const uint64_t count = static_cast<uint64_t>(element_count(kv.shape));
  if (r.reach <= static_cast<uint32_t>(kMostScoreReach) && end <= count) return {};
  return op_error(op, message({"relative positions with a reach of ", r.reach,
                               " tokens end at element ", end, " of [", kv.name, "], which has ",
                               count, "; the reach may be ", kMostScoreReach, " at the most"}));
}

Result<TensorDesc> check_attention(const TensorDesc& q, const TensorDesc& kv,
                                   const TensorDesc* terms, const AttentionAttrs& given) {
  constexpr OpId kOp = OpId::k_attention;
  VKF_CHECK(check_attention_numbers(kOp, given));
  const AttentionAttrs a = complete(given);
  VKF_CHECK(check_layout(kOp, q, "q", a.q, std::array{a.batch, a.heads, a.queries, a.head_width}));
  VKF_CHECK(check_layout(kOp, kv, "k", a.k, std::array{a.batch, a.kv_heads, a.keys, a.head_width}));
  VKF_CHECK(
      check_layout(kOp, kv, "v", a.v, std::array{a.batch, a.kv_heads, a.keys, a.value_width}));
  VKF_CHECK(check_relative(kOp, kv, a));
  VKF_CHECK(check_terms(kOp, terms, a.terms, std::array{a.batch, a.heads, a.queries, a.keys}));
  TensorDesc y{"attention", DType::kF32, a.y_shape};
  const uint32_t columns = result_width(a);
  VKF_CHECK(check_layout(kOp, y, "y", a.y, std::array{a.batch, a.heads, a.queries, columns}));
  if (a.y.offset != 0) {
    return op_error(kOp, message({"y begins at element ", a.y.offset, ", but must at 0"}));
  }
  const int64_t wanted = element_count(default_shape(a));
  if (element_count(y.shape) != wanted) {
    return op_error(
        kOp, message({"y has shape ", shape_text(y.shape), ", but B * H * T * Ev is ", wanted}));
  }
  if (a.queries > kMostAttentionQueries) {
    return op_error(
        kOp, message({a.queries, " queries are above the limit of ", kMostAttentionQueries}));
  }
  return y;
}

Result<TensorId> add_attention(Graph& graph, const AttentionInputs& inputs,
                               const AttentionAttrs& attrs) {
  const TensorDesc* terms = inputs.terms == kNoTensor ? nullptr : &graph.tensor(inputs.terms);
  VKF_ASSIGN(TensorDesc out,
             check_attention(graph.tensor(inputs.q), graph.tensor(inputs.kv), terms, attrs));
  const TensorId y = graph.add_tensor(std::move(out));
  Node node = make_node<OpId::k_attention>(AttentionNodeAttrs{complete(attrs)}, attrs_text(attrs));
  node.inputs = {inputs.q, inputs.kv, inputs.terms};
  node.outputs = {y};
  graph.add_node(std::move(node));
  return y;
}

namespace {

AttentionParams kernel_params(const AttentionAttrs& a) {
  return {.q = a.q,
          .k = a.k,
          .v = a.v,
          .y = {a.y.batch_stride, a.y.head_stride, a.y.row_stride},
          .relative = {a.relative.offset, a.relative.reach},
          .heads = a.heads | (a.heads / a.kv_heads) << 16,
          .queries = a.queries,
          .keys = a.keys,
          .scale = *a.scale,
          .inverse_temperature = 1.0f / a.temperature,
          .terms = a.terms,
          .batch = a.batch};
}

Result<AttentionStrategy> pick_strategy(const DeviceCaps& caps, const AttentionAttrs& a,
                                        Precision precision) {
  if (const auto units = attention_units(caps, a, precision)) {
    return AttentionStrategy{units->kernel(), units->rows(), attention_units_spec(caps, a, *units)};
  }
  if (std::optional<AttentionStrategy> found = software_attention(caps, a)) {
    return *std::move(found);
  }
  if (const auto blocks = attention_blocks(caps, a)) return attention_blocks_strategy(a, *blocks);
  const uint32_t rows = a.queries == 1 ? 1 : kTiledQueries;
  const uint32_t local = tiled_local_size(caps, a);
  if (local == 0) {
    return unsupported(message({"[attention] There is no kernel for ",
                                std::max(a.keys, a.most_visited), " keys of width ", a.head_width,
                                " on a software device; use a shorter sequence"}));
  }
  const AttentionTiledConstants tiled{.local_size = local,
                                      .width = a.head_width,
                                      .value_width = a.value_width,
                                      .softcap = softcap_bits(a.softcap),
                                      .rows = rows,
                                      .quads = starts_in_quads(a),
                                      .sparse = is_sparse(a.terms),
                                      .relative = a.relative.kinds,
                                      .counting = counts_keys(a)};
  return AttentionStrategy{caps.subgroup() ? KernelId::attention_tiled__f32_f32_f32_subgroup
                                           : KernelId::attention_tiled__f32_f32_f32,
                           rows, constants(tiled)};
}

// Pairs of a query and a key that groups of `rows` queries visit. The count is an estimate only for
// sparse terms that the host does not know.
double pairs_of(const AttentionAttrs& a, uint32_t rows) {
  std::span<const uint32_t> words;
  if (a.known_terms) words = *a.known_terms;
  const std::optional<double> exact =
      visited_pairs(a.terms, words, {a.batch, a.heads, a.queries, a.keys}, rows);
  if (exact) return *exact;
  const double keys =
      a.visited > 0 ? std::min<double>(a.keys, static_cast<double>(rows) + a.visited) : a.keys;
  return keys * a.queries * a.batch * a.heads;
}

}  // namespace

// Software devices stop a shader's loops after kMostSoftwareIterations rounds (row_kernel.h). A
// tile is a round for every quad or element of a head and for every key.
uint32_t tiled_local_size(const DeviceCaps& caps, const AttentionAttrs& a) {
  uint32_t lanes = attention_local_size(caps, a.value_width);
  if (caps.device_class != DeviceClass::kSoftware) return lanes;
  const uint32_t limit =
      std::min({caps.limits.max_invocations, caps.limits.max_group_size[0], 128u});
  const uint64_t head = starts_in_quads(a) ? a.head_width / 4 : a.head_width;
  const uint64_t keys = std::max(a.keys, a.most_visited);
  // Relative positions multiply once more, with sparse terms for every query; their values are
  // added key by key.
  const uint32_t kinds = a.relative.kinds;
  uint64_t times = 1;
  if (kinds != 0) times = is_sparse(a.terms) ? 2 + 4 * kTiledQueries : 2;
  if ((kinds & VKF_RELATIVE_QUERIES) != 0) times += 1;
  // A loop that omits masked keys counts twice.
  const uint64_t masks = score_kinds(a.terms) != 0 ? 2 : 1;
  const uint64_t adds = (kinds & VKF_RELATIVE_VALUES) != 0 ? 4 : masks;
  const auto rounds = [&] { return (keys / lanes + 1) * (times * head + adds * lanes + 8); };
  if (kinds != 0) lanes = std::clamp(kTiledQueries, lanes, limit);
  while (rounds() > kMostSoftwareIterations && 2 * lanes <= limit) lanes *= 2;
  return rounds() > kMostSoftwareIterations ? 0 : lanes;
}

Status lower_attention(LowerContext& context, const Node& node) {
  const AttentionNodeAttrs& form = attrs_of<AttentionNodeAttrs>(node);
  if (const auto* step = std::get_if<AttentionStepAttrs>(&form)) {
    return lower_attention_step(context, node, *step);
  }
  const AttentionAttrs& a = std::get<AttentionAttrs>(form);
  VKF_ASSIGN(const AttentionStrategy strategy, pick_strategy(context.caps, a, context.precision));
  Dispatch d = make_dispatch(node, strategy.kernel);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {node.inputs[2] == kNoTensor ? node.inputs[1] : node.inputs[2], Access::kRead},
                {node.outputs[0], Access::kWrite}};
  d.set_push(kernel_params(a));
  d.set_constants(strategy.spec);
  d.table_binding = 1;
  d.table_part_bytes = strategy.table_part_bytes;
  const uint64_t units = uint64_t{a.batch} * a.heads;
  d.groups = {(a.queries + strategy.rows - 1) / strategy.rows,
              static_cast<uint32_t>(std::min<uint64_t>(units, kRowsPerGridLine)),
              static_cast<uint32_t>((units + kRowsPerGridLine - 1) / kRowsPerGridLine)};
  const double pairs = counts_keys(a) ? 0 : pairs_of(a, strategy.rows);
  const uint32_t kinds = a.relative.kinds;
  const double products =
      (kinds != 0 ? 2.0 : 1.0) + ((kinds & VKF_RELATIVE_QUERIES) != 0 ? 1.0 : 0.0);
  const double widths =
      products * a.head_width + ((kinds & VKF_RELATIVE_VALUES) != 0 ? 2.0 : 1.0) * a.value_width;
  d.flops = 2.0 * pairs * widths;
  d.bytes = 4.0 * widths * (static_cast<double>(units) * a.queries + pairs / strategy.rows);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
