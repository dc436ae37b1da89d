// Fuzz target: a quantized safetensors model: config.json up to the first zero byte, then the file.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "checkpoint/checkpoint.h"
#include "weights/read_floats.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vkformer;
  const uint8_t* end = std::find(data, data + size, uint8_t{0});
  if (end == data + size) return 0;
  const auto config = std::as_bytes(std::span(data, end));
  const auto weights = std::as_bytes(std::span(end + 1, data + size));
  const auto store =
      make_memory_store({{"config.json", config}, {"model.safetensors", weights}}, "fuzz");
  const auto checkpoint = Checkpoint::open_store(*store);
  if (!checkpoint.ok()) return 0;
  for (const std::string& name : checkpoint->names()) {
    const TensorView& view = *checkpoint->find(name);
    const auto count = static_cast<size_t>(element_count(view.shape));
    if (!holds_floats(view) || count == 0) continue;
    std::array<float, 64> values{};
    const std::span<float> some(values.data(), std::min(count, values.size()));
    read_elements(view, 0, 1, some);
    read_elements(view, count - some.size(), 1, some);
    if (view.blocks == nullptr || !is_quantized(view.blocks->format)) continue;
    const QuantizedSize matrix = quantized_size(view);
    (void)quantized_block(view, matrix.n - 1, (matrix.k - 1) / kBlockSteps * kBlockSteps);
  }
  return 0;
}
