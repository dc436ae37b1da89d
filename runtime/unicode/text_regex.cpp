#include "unicode/text_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "base/check.h"
#include "base/message.h"
#include "unicode/regex_alphabet.h"
#include "unicode/regex_tree.h"
#include "unicode/regex_writer.h"

namespace vkformer {
namespace {

// Backtracking steps one match may take; a hostile pattern ends with an error instead of hanging.
constexpr uint32_t kMatchLimit = 10'000'000;
constexpr uint32_t kHeapLimitKib = 64 * 1024;

struct CompileContextDeleter {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};
struct MatchContextDeleter {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct MatchDataDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

std::string error_text(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

Error no_memory(const std::string& where) {
  return {ErrorCode::kOutOfMemory, "[" + where + "] There is no memory for a regular expression."};
}

}  // namespace

struct TextRegex::Compiled {
  struct CodeDeleter {
    void operator()(pcre2_code* compiled) const { pcre2_code_free(compiled); }
  };

  RegexAlphabet alphabet;
  std::string where;
  std::unique_ptr<pcre2_code, CodeDeleter> code;
};

Result<TextRegex> TextRegex::compile(const std::string& pattern, const std::string& where) {
  using Symbols = RegexAlphabet::Symbols;
  VKF_ASSIGN(const RegexTree tree, parse_regex(pattern, where));
  const auto symbols = tree.has_back_references ? Symbols::kCharacters : Symbols::kKinds;
  auto compiled = std::make_shared<Compiled>(Compiled{{tree.sets, symbols}, where, nullptr});
  const auto translated = write_regex(tree, compiled->alphabet);
  if (!translated) {
    return translated.error().with_context(
        message({"[", where, "] The regular expression [", pattern, "]"}));
  }
  std::unique_ptr<pcre2_compile_context, CompileContextDeleter> context(
      pcre2_compile_context_create(nullptr));
  if (!context) return no_memory(where);
  // The system's PCRE2 may be built for other line ends; these files mean \n.
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  const uint32_t options = PCRE2_MULTILINE | (compiled->alphabet.is_bytes() ? 0 : PCRE2_UTF);
  int code = 0;
  PCRE2_SIZE at = 0;
  compiled->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()),
                                     translated->size(), options, &code, &at, context.get()));
  if (!compiled->code) {
    return invalid_file(message({"[", where, "] The regular expression [", pattern,
                                 "] does not compile: ", error_text(code), " at offset ", at,
                                 " of its translation [", *translated, "]."}));
  }
  return TextRegex(std::move(compiled));
}

Result<std::vector<CharSpan>> TextRegex::find_all(std::u32string_view text) const {
  std::vector<CharSpan> found;
  const bool is_bytes = compiled_->alphabet.is_bytes();
  const std::string bytes = compiled_->alphabet.symbols_of(text);
  std::unique_ptr<pcre2_match_data, MatchDataDeleter> data(pcre2_match_data_create(1, nullptr));
  std::unique_ptr<pcre2_match_context, MatchContextDeleter> context(
      pcre2_match_context_create(nullptr));
  if (!data || !context) return no_memory(compiled_->where);
  pcre2_set_match_limit(context.get(), kMatchLimit);
  pcre2_set_heap_limit(context.get(), kHeapLimitKib);
  const auto is_tail = [&](size_t at) {
    return !is_bytes && at < bytes.size() && (static_cast<unsigned char>(bytes[at]) & 0xC0) == 0x80;
  };
  size_t counted_bytes = 0;
  uint32_t counted_chars = 0;
  const auto char_index = [&](size_t byte) {
    if (is_bytes) return static_cast<uint32_t>(byte);
    for (; counted_bytes < byte; ++counted_bytes) counted_chars += is_tail(counted_bytes) ? 0 : 1;
    return counted_chars;
  };
  size_t at = 0;
  size_t last_end = SIZE_MAX;
  while (at <= bytes.size()) {
    const int count = pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(bytes.data()),
                                  bytes.size(), at, PCRE2_NO_UTF_CHECK, data.get(), context.get());
    if (count == PCRE2_ERROR_NOMATCH) break;
    if (count < 0) {
      return unsupported(
          message({"[", compiled_->where, "] The regular expression gave up on a text of ",
                   bytes.size(), " bytes at byte ", at, ": ", error_text(count), "."}));
    }
    const PCRE2_SIZE* ovector = pcre2_get_ovector_pointer(data.get());
    const size_t begin = ovector[0];
    const size_t end = ovector[1];
    // \K in a lookaround can put the ends outside what is left; no tokenizer means that.
    if (begin < at || end < begin) {
      return unsupported(
          message({"[", compiled_->where, "] The regular expression moves its match backwards."}));
    }
    if (begin == end && end == last_end) {
      ++at;
      while (is_tail(at)) ++at;
      continue;
    }
    const uint32_t first = char_index(begin);
    found.push_back({first, char_index(end)});
    at = end;
    last_end = end;
  }
  return found;
}

}  // namespace vkformer
