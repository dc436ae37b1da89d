// Tokenizer: text to token ids and back, from a Hugging Face `tokenizer.json`.
//
// Threading: immutable once loaded; any number of threads may call its functions at the same time.
// Lifetime: owns everything it needs; the file is not read again. Move-only; a moved-from
// one may only be assigned to or destroyed. Texts are UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vkformer/export.h"
#include "vkformer/result.h"
#include "vkformer/token.h"

namespace vkformer {

class DecodeStreamState;
class TokenizerEngine;

// A half-open range of Unicode code points of the text as the caller gave it.
struct TextRange {
  int32_t begin = 0;
  int32_t end = 0;

  bool operator==(const TextRange&) const = default;
};

// One encoded text, or pair of texts. All vectors have the same length, one entry per token. Ids,
// type ids and mask are the data of a model's input tensors as they are (Tensor::from_ints).
struct Encoding {
  std::vector<TokenId> ids;
  std::vector<std::string> tokens;
  // Where each token came from; (0, 0) for padding and for special tokens that were added.
  std::vector<TextRange> offsets;
  // Which text of a pair a token belongs to, as the file's post-processor numbers them.
  std::vector<int64_t> type_ids;
  // 1 for tokens, 0 for padding.
  std::vector<int64_t> attention_mask;
};

// What to do with special tokens such as "</s>": when encoding, whether the post-processor adds its
// own; when decoding, whether they are written.
enum class SpecialTokens : uint8_t { kInclude, kExclude };

// Which end of a token list is cut or padded.
enum class TextSide : uint8_t { kRight, kLeft };

enum class TruncationMode : uint8_t { kOff, kToLength, kFromFile };
// Which text of a pair loses tokens.
enum class TruncationStrategy : uint8_t { kLongestFirst, kOnlyFirst, kOnlySecond };

struct TruncationOptions {
  // kFromFile takes everything below from the file's "truncation", and does nothing when it has
  // none.
  TruncationMode mode = TruncationMode::kOff;
  // Tokens kept at most, special tokens that get added included.
  int32_t max_length = 512;
  TruncationStrategy strategy = TruncationStrategy::kLongestFirst;
  // The end that is cut.
  TextSide side = TextSide::kRight;
};

enum class PaddingMode : uint8_t { kOff, kToLongest, kToLength, kFromFile };

struct PaddingOptions {
  // kFromFile takes everything below from the file's "padding", and does nothing when it has none.
  PaddingMode mode = PaddingMode::kOff;
  // Tokens per row with kToLength; longer rows stay as they are.
  int32_t length = 0;
  // Rounds the row length up to a multiple of this many tokens; 0 for no rounding.
  int32_t multiple_of = 0;
  // The id to pad with. Without one the file's "padding" decides, and it is an error if it does
  // not.
  std::optional<TokenId> pad_id;
  // The type id of padding.
  int32_t pad_type_id = 0;
  TextSide side = TextSide::kRight;
};

struct EncodeOptions {
  // kInclude lets the file's post-processor add its special tokens.
  SpecialTokens special_tokens = SpecialTokens::kInclude;
  TruncationOptions truncation;
  PaddingOptions padding;
};

// Decoding while ids still arrive, as generation gives them. What push() and finish() return, one
// after the other, is what Tokenizer::decode gives for all ids, cut between characters. Text that
// later ids may still change is held back.
//
// Threading: one thread at a time. Lifetime: move-only; keeps what it needs of its tokenizer, which
// may be moved or destroyed first.
class VKFORMER_API DecodeStream {
 public:
  DecodeStream(DecodeStream&&) noexcept;
  DecodeStream& operator=(DecodeStream&&) noexcept;
  ~DecodeStream();

  // The text that is certain with this id; often empty. A negative id is an error and changes
  // nothing.
  Result<std::string> push(TokenId id);
  // The rest of the text. The stream is then ready for another one.
  Result<std::string> finish();

 private:
  friend struct HandleAccess;
  explicit DecodeStream(std::unique_ptr<DecodeStreamState> impl);

  std::unique_ptr<DecodeStreamState> impl_;
};

class VKFORMER_API Tokenizer {
 public:
  // Reads `tokenizer.json`, or the file of that name in the directory `path`, or the tokenizer of a
  // GGUF file.
  static Result<Tokenizer> load(const std::string& path);
  // The same from the file's content. `name` stands for the file in messages.
  static Result<Tokenizer> parse(std::string_view json, const std::string& name = "tokenizer.json");

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Tokens of one text. Text that is not UTF-8 is an error that names the byte offset.
  Result<Encoding> encode(std::string_view text, const EncodeOptions& options = {}) const;
  // Tokens of two texts that belong together. Offsets are each within their own text.
  Result<Encoding> encode_pair(std::string_view first, std::string_view second,
                               const EncodeOptions& options = {}) const;
  // Tokens of several texts, padded to a common length if the options say so.
  Result<std::vector<Encoding>> encode_batch(std::span<const std::string> texts,
                                             const EncodeOptions& options = {}) const;

  // The text of `ids`. Ids that name no token are passed over; a negative one is an error.
  Result<std::string> decode(std::span<const TokenId> ids,
                             SpecialTokens special_tokens = SpecialTokens::kExclude) const;
  Result<std::string> decode(std::initializer_list<TokenId> ids,
                             SpecialTokens special_tokens = SpecialTokens::kExclude) const;
  // The same for ids that arrive one at a time.
  DecodeStream decode_stream(SpecialTokens special_tokens = SpecialTokens::kExclude) const;

  // Distinct tokens, added ones included. Ids may have gaps, so the highest can be larger.
  size_t vocab_size() const;
  std::optional<TokenId> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(TokenId id) const;
  // The bytes that a token adds to a decoded text when it follows others: not always whole
  // characters. None for special tokens and for ids that name no token.
  Result<std::string> token_bytes(TokenId id) const;

 private:
  friend struct HandleAccess;
  explicit Tokenizer(std::shared_ptr<const TokenizerEngine> impl);

  std::shared_ptr<const TokenizerEngine> impl_;
};

}  // namespace vkformer
