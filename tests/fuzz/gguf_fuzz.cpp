// Fuzz target: a GGUF file as a model: its configuration, its tensors and its tokenizer; and as an
// adapter of a small model.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "gguf/gguf_adapter.h"
#include "gguf/gguf_store.h"
#include "model/model.h"
#include "vkformer/tokenizer.h"
#include "weights/merge_adapters.h"
#include "weights/read_floats.h"

namespace {

using namespace vkformer;

void decode_ends(const TensorView& view) {
  const auto count = static_cast<size_t>(element_count(view.shape));
  if (!holds_floats(view) || count == 0) return;
  std::array<float, 64> values{};
  const std::span<float> some(values.data(), std::min(count, values.size()));
  read_elements(view, 0, 1, some);
  read_elements(view, count - some.size(), 1, some);
}

void encode_with(const FileStore& files) {
  const auto file = files.open("tokenizer.json");
  if (!file.ok()) return;
  const auto bytes = file->bytes();
  const auto tokenizer =
      Tokenizer::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "fuzz");
  if (!tokenizer.ok()) return;
  const auto encoded = tokenizer->encode(" Hello, w\u00F6rld 12345!\n<s>");
  if (encoded.ok()) (void)tokenizer->decode(encoded->ids, SpecialTokens::kInclude);
}

constexpr std::string_view kSmallConfig =
    R"({"model_type": "llama", "num_attention_heads": 2, "num_key_value_heads": 1})";

const std::vector<std::byte>& small_weights() {
  static const std::vector<std::byte> bytes = [] {
    const std::string header =
        R"({"model.layers.0.self_attn.q_proj.weight":{"dtype":"F32","shape":[4,6],)"
        R"("data_offsets":[0,96]},"model.embed_tokens.weight":{"dtype":"F32","shape":[4,6],)"
        R"("data_offsets":[96,192]}})";
    std::vector<std::byte> made(8 + header.size() + 192);
    made[0] = static_cast<std::byte>(header.size());
    std::transform(header.begin(), header.end(), made.begin() + 8,
                   [](char c) { return static_cast<std::byte>(c); });
    return made;
  }();
  return bytes;
}

void merge_as_adapter(std::span<const std::byte> file) {
  const auto model = make_memory_store({{"config.json", std::as_bytes(std::span(kSmallConfig))},
                                        {"model.safetensors", small_weights()}},
                                       "model");
  auto adapter = open_adapter_for(*model, *make_memory_store({{kGgufAdapterName, file}}, "fuzz"));
  auto checkpoint = Checkpoint::open_store(*model);
  if (!checkpoint.ok()) __builtin_trap();
  if (!adapter.ok()) return;
  const auto opened = std::make_shared<const AdapterFiles>(std::move(*adapter));
  if (!merge_adapters({}, {{opened, 0.5f}}, *checkpoint).ok()) return;
  for (const std::string& name : checkpoint->names()) decode_ends(*checkpoint->find(name));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto store =
      with_gguf(make_memory_store({{"model.gguf", std::as_bytes(std::span(data, size))}}, "fuzz"));
  merge_as_adapter(std::as_bytes(std::span(data, size)));
  encode_with(*store);
  (void)store->open("tokenizer_config.json");
  (void)load_family(*store);
  const auto checkpoint = Checkpoint::open_store(*store);
  if (!checkpoint.ok()) return 0;
  for (const std::string& name : checkpoint->names()) decode_ends(*checkpoint->find(name));
  return 0;
}
