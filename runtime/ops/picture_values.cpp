#include "ops/picture_values.h"

#include <algorithm>
#include <bit>

#include "base/message.h"
#include "ops/row_op.h"
#include "params/picture.h"

namespace vkformer {
namespace {

// Pixels a side, so that no loop over a line's taps is long.
constexpr uint32_t kMostSide = 16384;
constexpr uint64_t kValueWords = uint64_t{3} * 256;
constexpr uint64_t kEntryWords = 3;

Error picture_error(size_t index, const std::string& text) {
  return op_error(OpId::k_picture_values, message({"Picture ", index, " ", text}));
}

uint64_t element_words(const TensorDesc& desc) {
  return static_cast<uint64_t>(element_count(desc.shape));
}

Status check_words(const char* role, const TensorDesc& desc) {
  if (desc.dtype == DType::kU32 && desc.shape.size() == 1) return {};
  return op_error(OpId::k_picture_values,
                  message({role, " is ", dtype_name(desc.dtype), " ", shape_text(desc.shape),
                           ", but must be U32 with one dimension."}));
}

Status check_place(const PictureValuesAttrs& attrs, size_t index, uint64_t pixels,
                   uint64_t tables) {
  const PicturePlace& place = attrs.pictures[index];
  if (place.width == 0 || place.height == 0 || std::max(place.width, place.height) > kMostSide) {
    return picture_error(
        index, "has " + std::to_string(place.width) + " x " + std::to_string(place.height) +
                   " pixels, but a side must be 1 to " + std::to_string(kMostSide) + ".");
  }
  const uint64_t end = place.first_pixel + uint64_t{place.width} * place.height;
  if (end > pixels) {
    return picture_error(index, "ends at pixel " + std::to_string(end) + ", but there are " +
                                    std::to_string(pixels) + ".");
  }
  const uint64_t last =
      std::max(place.columns + kEntryWords * attrs.width, place.rows + kEntryWords * attrs.height);
  if (last > tables || std::min(place.columns, place.rows) < kValueWords) {
    return picture_error(
        index, "has entries in words " + std::to_string(std::min(place.columns, place.rows)) +
                   " to " + std::to_string(last) + " of tables, but must lie in " +
                   std::to_string(kValueWords) + " to " + std::to_string(tables) + ".");
  }
  if (!place.same_columns || place.width == attrs.width) return {};
  return picture_error(index, "is " + std::to_string(place.width) +
                                  " pixels wide, which cannot stay as the result's " +
                                  std::to_string(attrs.width) + ".");
}

}  // namespace

Result<TensorDesc> check_picture_values(const TensorDesc& pixels, const TensorDesc& tables,
                                        const PictureValuesAttrs& attrs) {
  VKF_CHECK(check_words("pixels", pixels));
  VKF_CHECK(check_words("tables", tables));
  if (attrs.pictures.empty() || attrs.width == 0 || attrs.height == 0) {
    return op_error(
        OpId::k_picture_values,
        message({"There are ", attrs.pictures.size(), " pictures of ", attrs.width, " x ",
                 attrs.height, " pixels, but every number must be at least one."}));
  }
  for (size_t i = 0; i < attrs.pictures.size(); ++i) {
    VKF_CHECK(check_place(attrs, i, element_words(pixels), element_words(tables)));
  }
  return TensorDesc{"picture_values",
                    DType::kF32,
                    {static_cast<int64_t>(attrs.pictures.size()), 3, int64_t{attrs.height},
                     int64_t{attrs.width}}};
}

Result<TensorId> add_picture_values(Graph& graph, TensorId pixels, TensorId tables,
                                    const PictureValuesAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out,
             check_picture_values(graph.tensor(pixels), graph.tensor(tables), attrs));
  Node node =
      make_node<OpId::k_picture_values>(attrs, "pictures=" + std::to_string(attrs.pictures.size()));
  node.inputs = {pixels, tables};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_picture_values(LowerContext& context, const Node& node) {
  const auto& attrs = attrs_of<PictureValuesAttrs>(node);
  const uint32_t local = std::bit_floor(
      std::min({128u, context.caps.limits.max_invocations, context.caps.limits.max_group_size[0]}));
  const auto add = [&](uint32_t from, uint32_t to, uint32_t last, const PictureValuesParams& params,
                       uint32_t source) {
    Dispatch d = make_dispatch(node, KernelId::picture_values_run__u32_none_f32);
    d.bindings = {{from, Access::kRead}, {node.inputs[1], Access::kRead}, {to, Access::kWrite}};
    d.set_push(params);
    d.set_constants(PictureValuesConstants{.local_size = local, .last = last});
    const uint64_t results = uint64_t{params.width} * params.lines;
    set_row_groups(context, d, results, local);
    // Bilinear or bicubic: two or four taps, more where the picture shrinks.
    const double taps = 4.0 * std::max(1.0, static_cast<double>(source) /
                                                (last != 0 ? params.lines : params.width));
    d.flops = 6.0 * taps * static_cast<double>(results);
    d.bytes = (4.0 * taps + 12.0) * static_cast<double>(results);
    context.plan.dispatches.push_back(std::move(d));
  };
  for (size_t i = 0; i < attrs.pictures.size(); ++i) {
    const PicturePlace& place = attrs.pictures[i];
    PictureValuesParams params{.width = attrs.width,
                               .lines = place.height,
                               .source_pitch = place.width,
                               .first_pixel = place.first_pixel,
                               .taps = place.columns};
    uint32_t between = node.inputs[0];
    if (!place.same_columns) {
      between = context.add_scratch("picture_values", uint64_t{4} * attrs.width * place.height);
      add(node.inputs[0], between, 0, params, place.width);
      params.first_pixel = 0;
    }
    params.lines = attrs.height;
    params.source_pitch = attrs.width;
    params.taps = place.rows;
    params.first_value = static_cast<uint32_t>(i) * 3 * attrs.width * attrs.height;
    params.swapped = place.swapped ? 1 : 0;
    add(between, node.outputs[0], 1, params, place.height);
  }
  return {};
}

}  // namespace vkformer
