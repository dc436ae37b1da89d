// TokenizerEngine: the steps of a tokenizer file, run in order. What Tokenizer holds.
//
// Threading: immutable once made, but for working memory that calls hand on under a lock.
#pragma once

#include <memory>

#include "text/added_tokens.h"
#include "text/decoders.h"
#include "text/kept_memory.h"
#include "text/normalizers.h"
#include "text/post_processors.h"
#include "text/pre_tokenizers.h"
#include "text/token_model.h"
#include "vkformer/tokenizer.h"

namespace vkformer {

class TokenizerEngine {
 public:
  // Reads a file, or "tokenizer.json" in a directory.
  static Result<std::unique_ptr<const TokenizerEngine>> load(const std::string& path);
  // Reads the content of such a file; `name` stands for it in messages.
  static Result<std::unique_ptr<const TokenizerEngine>> parse(std::string_view json,
                                                              const std::string& name);

  // One text, or two that belong together.
  Result<Encoding> encode(std::span<const std::string_view> texts,
                          const EncodeOptions& options) const;
  Result<std::vector<Encoding>> encode_batch(std::span<const std::string> texts,
                                             const EncodeOptions& options) const;
  Result<std::string> decode(std::span<const TokenId> ids, SpecialTokens special_tokens) const;

  // The string that `id` contributes to a decoded text; null for ids that are passed over.
  Result<const std::string*> decoded_token(TokenId id, SpecialTokens special_tokens) const;
  // The bytes that a token adds to a decoded text after others; none for special tokens and for
  // ids without a token.
  Result<std::string> token_bytes(TokenId id) const;
  // The decoder at work on a stream. The engine must outlive it.
  std::unique_ptr<DecodeStage> decode_stage() const;

  size_t vocab_size() const { return model_->table().size() + added_.table().size(); }
  std::optional<TokenId> token_to_id(std::string_view token) const;
  // Null for an id that names no token.
  const std::string* id_to_token(TokenId id) const;

 private:
  TokenizerEngine() = default;

  // The tokens of one text, before truncation and post-processing.
  Result<Encoding> encode_text(std::string_view text, int32_t type_id) const;
  // Splits text between added tokens into words and runs the model on them.
  Status encode_words(AlignedText text, int32_t type_id, TextMemory& memory, Encoding& out) const;
  // Appends the string that an id from 0 on contributes to a decoded text, if it does.
  void append_decoded(TokenId id, SpecialTokens special_tokens,
                      std::vector<std::string>& tokens) const;
  // Everything but padding.
  Result<Encoding> encode_unpadded(std::span<const std::string_view> texts,
                                   const EncodeOptions& options) const;
  Status pad(std::vector<Encoding>& rows, const PaddingOptions& options) const;

  std::unique_ptr<TextNormalizer> normalizer_;     // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer_;    // may be null
  std::unique_ptr<TokenModel> model_;              // never null
  std::unique_ptr<PostProcessor> post_processor_;  // may be null
  std::unique_ptr<TokenDecoder> decoder_;          // may be null
  AddedTokens added_;
  TruncationOptions truncation_;  // the file's
  PaddingOptions padding_;        // the file's
  mutable KeptMemory memory_;
};

}  // namespace vkformer
