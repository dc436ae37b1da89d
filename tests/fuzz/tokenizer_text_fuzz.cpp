// Fuzz target: texts, given to the tokenizer of every kind that the golden cases have. Whatever the
// bytes are: tokens with ranges inside the text, and a decoder that takes them back.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "vkformer/tokenizer.h"

namespace {

using namespace vkformer;

const std::vector<Tokenizer>& golden_tokenizers() {
  static const auto kTokenizers = [] {
    std::vector<Tokenizer> found;
    const std::string folder = std::string(VKFORMER_SOURCE_DIR) + "/tests/golden";
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      if (!entry.path().filename().string().starts_with("tok-")) continue;
      auto made = Tokenizer::load(entry.path().string() + "/model/tokenizer.json");
      if (made) found.push_back(std::move(made).value());
    }
    return found;
  }();
  return kTokenizers;
}

void check(const Tokenizer& tokenizer, std::string_view text) {
  const auto encoded = tokenizer.encode(text);
  if (!encoded.ok()) return;
  if (encoded->offsets.size() != encoded->ids.size()) __builtin_trap();
  for (const TextRange& range : encoded->offsets) {
    if (range.begin < 0 || range.begin > range.end) __builtin_trap();
    if (static_cast<size_t>(range.end) > text.size()) __builtin_trap();
  }
  if (!tokenizer.decode(encoded->ids, SpecialTokens::kInclude).ok()) __builtin_trap();
  DecodeStream stream = tokenizer.decode_stream(SpecialTokens::kInclude);
  for (const TokenId id : encoded->ids) (void)stream.push(id);
  (void)stream.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Tokenizer& tokenizer : golden_tokenizers()) check(tokenizer, text);
  return 0;
}
