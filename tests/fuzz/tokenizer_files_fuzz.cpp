// Fuzz target: a tokenizer in another file than tokenizer.json. The first byte chooses its name.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tokenizer_files/tokenizer_store.h"
#include "vkformer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vkformer;
  if (size == 0) return 0;
  constexpr const char* kNames[] = {"tokenizer.model", "tekken.json", "cl100k_base.tiktoken",
                                    "vocab.txt", "vocab.json"};
  const std::string name = kNames[data[0] % std::size(kNames)];
  const auto content = std::as_bytes(std::span(data + 1, data + size));
  constexpr std::string_view kMerges = "#version: 0.2\na b\n";
  const auto files = make_memory_store(
      {{name, content}, {"merges.txt", std::as_bytes(std::span(kMerges))}}, "fuzz");
  const auto json = tokenizer_json_of(*files, name);
  if (!json.ok()) return 0;
  const auto tokenizer = Tokenizer::parse(*json, "fuzz");
  if (!tokenizer.ok()) return 0;
  const auto encoded = tokenizer->encode(" Hello, w\u00F6rld 12345!\n<s>");
  if (encoded.ok()) (void)tokenizer->decode(encoded->ids, SpecialTokens::kInclude);
  return 0;
}
