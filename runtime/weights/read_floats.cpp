#include "weights/read_floats.h"

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

// One loop for each type: a test per weight costs more than its conversion.
template <typename Stored, typename Widen>
void read_stored(const TensorView& view, size_t first, size_t stride, std::span<float> out,
                 Widen widen) {
  const std::byte* at = view.bytes.data() + first * sizeof(Stored);
  for (float& value : out) {
    Stored stored{};
    std::memcpy(&stored, at, sizeof stored);
    value = widen(stored);
    at += stride * sizeof(Stored);
  }
}

}  // namespace

void read_elements(const TensorView& view, size_t first, size_t stride, std::span<float> out) {
  if (stride == 1 && decodes_rows(view)) {
    quantized_elements(view, first, out);
    return;
  }
  if (view.blocks == nullptr && view.dtype == DType::kF32) {
    read_stored<float>(view, first, stride, out, [](float value) { return value; });
    return;
  }
  if (view.blocks == nullptr && view.dtype == DType::kF16) {
    read_stored<uint16_t>(view, first, stride, out, float_from_half);
    return;
  }
  if (view.blocks == nullptr && view.dtype == DType::kBF16) {
    read_stored<uint16_t>(view, first, stride, out, float_from_bfloat);
    return;
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] = element_as_float(view, first + i * stride);
}

bool holds_floats(const TensorView& view) {
  return view.blocks != nullptr || view.dtype == DType::kF32 || view.dtype == DType::kF16 ||
         view.dtype == DType::kBF16 || view.dtype == DType::kF64;
}

Result<std::vector<float>> read_floats(const Checkpoint& checkpoint, const std::string& name,
                                       const Shape& expected) {
  const TensorView* view = checkpoint.find(name);
  if (view == nullptr) {
    return invalid_file(message({"[", name, "] is missing from ", checkpoint.directory(),
                                 "; the model needs it with shape ", shape_text(expected), "."}));
  }
  checkpoint.note_read(name);
  const std::string where = "[" + name + "] in " + checkpoint.file_of(name);
  if (!holds_floats(*view)) {
    return invalid_file(message({where, " has dtype ", dtype_name(view->dtype),
                                 ", but weights must be F16, BF16, F32 or F64."}));
  }
  if (view->shape != expected) {
    return invalid_file(message({where, " has shape ", shape_text(view->shape),
                                 ", but the configuration asks for ", shape_text(expected), "."}));
  }
  if (!checkpoint.has_values(name)) {
    return internal_error(where + " is read, but the pack has it only as GPUs read it");
  }
  std::vector<float> values(static_cast<size_t>(element_count(view->shape)));
  read_elements(*view, 0, 1, values);
  return values;
}

}  // namespace vkformer
