// Fuzz target: a pattern of a tokenizer file, a zero byte, and a text. What compiles gives matches
// that are in order, disjoint and inside the text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "unicode/text_regex.h"
#include "unicode/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vkformer;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const auto regex = TextRegex::compile(std::string(input.substr(0, end)), "fuzz");
  if (!regex.ok()) {
    if (regex.error().message.find("fuzz") == std::string::npos) __builtin_trap();
    return 0;
  }
  // Long texts show nothing that short ones do not, and a pattern may take seconds on them.
  const std::string_view bytes = end == input.npos ? " a1" : input.substr(end + 1, 64);
  const auto text = decode_utf8(bytes, "text");
  if (!text.ok()) return 0;
  const auto found = regex->find_all(*text);
  if (!found.ok()) return 0;
  uint32_t last = 0;
  for (const CharSpan& match : *found) {
    if (match.begin < last || match.end < match.begin || match.end > text->size()) {
      __builtin_trap();
    }
    last = match.end;
  }
  return 0;
}
