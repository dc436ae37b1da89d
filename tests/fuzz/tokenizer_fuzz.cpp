// Fuzz target: tokenizer.json. What loads also encodes and decodes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "vkformer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vkformer;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = Tokenizer::parse(json, "fuzz");
  if (!tokenizer.ok()) return 0;
  EncodeOptions options;
  options.padding.mode = PaddingMode::kFromFile;
  options.truncation.mode = TruncationMode::kFromFile;
  constexpr std::string_view kText = " Hello, w\u00F6rld 12345!\n<s>\u4F60\u597D \U0001F600</s>";
  const auto encoded = tokenizer->encode(kText, options);
  (void)tokenizer->encode_pair("a b", "c", options);
  if (encoded.ok()) (void)tokenizer->decode(encoded->ids, SpecialTokens::kInclude);
  return 0;
}
