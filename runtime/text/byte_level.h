// Byte-level text: UTF-8 bytes written as 256 printable characters (Radford et al., 2019, "Language
// Models are Unsupervised Multitask Learners"). It has the steps of a tokenizer file that use it.
// Needs: the steps' base classes, JsonRef, Encoding.
#pragma once

#include <memory>
#include <optional>

#include "json/json_access.h"
#include "text/decoders.h"
#include "text/normalizers.h"
#include "text/post_processors.h"
#include "text/pre_tokenizers.h"

namespace vkformer {

// The character that stands for a byte: itself where it is a visible Latin-1 character, else one
// of U+0100 to U+0143.
char32_t byte_level_char(uint8_t byte);
// The byte that a character stands for, if any.
std::optional<uint8_t> byte_level_byte(char32_t c);

// Whether the range of the first token keeps its leading space, as one that a prefix put there.
enum class PrefixSpace : uint8_t { kAdded, kNotAdded };

// Takes the spaces that tokens begin and end with out of their ranges.
void trim_byte_level_offsets(Encoding& encoding, PrefixSpace prefix_space);

// The steps of the type ByteLevel.
Result<std::unique_ptr<TextNormalizer>> parse_byte_level_normalizer(const JsonRef& json, int depth);
Result<std::unique_ptr<PreTokenizer>> parse_byte_level_pre_tokenizer(const JsonRef& json,
                                                                     int depth);
Result<std::unique_ptr<PostProcessor>> parse_byte_level_processor(const JsonRef& json, int depth);
Result<std::unique_ptr<TokenDecoder>> parse_byte_level_decoder(const JsonRef& json, int depth);

// Decoders of other byte-pair files: tokens such as "<0x0A>" that stand for bytes, and tokens that
// end with a suffix where a word ends.
Result<std::unique_ptr<TokenDecoder>> parse_byte_fallback_decoder(const JsonRef& json, int depth);
Result<std::unique_ptr<TokenDecoder>> parse_bpe_decoder(const JsonRef& json, int depth);

}  // namespace vkformer
