// Fuzz target: a GGUF file as a model: its configuration, its tensors and its tokenizer.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "checkpoint/checkpoint.h"
#include "gguf/gguf_store.h"
#include "model/model.h"
#include "vkformer/tokenizer.h"
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto store =
      with_gguf(make_memory_store({{"model.gguf", std::as_bytes(std::span(data, size))}}, "fuzz"));
  encode_with(*store);
  (void)store->open("tokenizer_config.json");
  (void)load_family(*store);
  const auto checkpoint = Checkpoint::open_store(*store);
  if (!checkpoint.ok()) return 0;
  for (const std::string& name : checkpoint->names()) decode_ends(*checkpoint->find(name));
  return 0;
}
