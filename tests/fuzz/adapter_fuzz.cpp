// Fuzz target: an adapter: adapter_config.json up to the first zero byte, then its weights, merged
// into a small model and beside it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weights/merge_adapters.h"
#include "weights/read_floats.h"
#include "weights/request_adapters.h"

namespace {

using namespace vkformer;

const std::vector<std::byte>& model_bytes() {
  static const std::vector<std::byte> bytes = [] {
    const std::string header =
        R"({"m.q.weight":{"dtype":"F32","shape":[4,6],"data_offsets":[0,96]}})";
    std::vector<std::byte> made(8 + header.size() + 96);
    made[0] = static_cast<std::byte>(header.size());
    std::transform(header.begin(), header.end(), made.begin() + 8,
                   [](char c) { return static_cast<std::byte>(c); });
    return made;
  }();
  return bytes;
}

// The weights of an adapter beside the model's.
void pack_beside(const std::shared_ptr<const AdapterFiles>& adapter, const Checkpoint& checkpoint) {
  WeightTable table{.rows = {{.name = "q", .sources = {"m.q.weight"}, .rows = 4, .width = 6}}};
  if (!add_request_adapters({{"a", adapter}, {"b", adapter}}, checkpoint, table).ok()) return;
  const auto weights = resolve_weights(table, checkpoint, WeightFormat::kAsStored);
  if (!weights.ok()) return;
  for (const PackedWeight& weight : *weights) {
    std::vector<std::byte> packed(weight.bytes);
    (void)pack_weight(weight, checkpoint, packed);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const uint8_t* end = std::find(data, data + size, uint8_t{0});
  if (end == data + size) return 0;
  const auto files = make_memory_store(
      {{"adapter_config.json", std::as_bytes(std::span(data, end))},
       {"adapter_model.safetensors", std::as_bytes(std::span(end + 1, data + size))}},
      "fuzz");
  auto adapter = open_adapter(*files);
  auto checkpoint =
      Checkpoint::open_store(*make_memory_store({{"model.safetensors", model_bytes()}}, "model"));
  if (!adapter.ok() || !checkpoint.ok()) return 0;
  const auto opened = std::make_shared<const AdapterFiles>(std::move(*adapter));
  pack_beside(opened, *checkpoint);
  const WeightTable table{.rows = {{.name = "q", .sources = {"m.q.weight"}}}};
  if (!merge_adapters(table, {{opened, 0.5f}}, *checkpoint).ok()) return 0;
  std::array<float, 24> values{};
  read_elements(*checkpoint->find("m.q.weight"), 0, 1, values);
  return 0;
}
