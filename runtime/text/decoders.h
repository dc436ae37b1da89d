// Decoders: token strings back to text. Needs: DecodeStage, JsonRef.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "json/json_access.h"
#include "text/decode_stage.h"

namespace vkformer {

// One decoding step. Immutable; threads may share it.
class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  // The pieces of text that `tokens` stand for; the pieces of the last step are joined without a
  // gap.
  virtual Result<std::vector<std::string>> decode(std::vector<std::string> tokens) const = 0;
  // The same for tokens that arrive one at a time. The decoder must outlive the stage. This one
  // works for any step: it waits for the last token.
  virtual std::unique_ptr<DecodeStage> stage() const;
  // The bytes that a token adds to a text after other tokens; not always whole characters.
  // `joined` says whether an earlier step has joined the tokens, or that this one does.
  virtual Result<std::string> token_bytes(std::string token, bool& joined) const = 0;
};

// Where a token stands.
struct TokenPlace {
  bool is_first = false;
  bool is_last = false;
};

// A step that decodes each token by itself.
class TokenwiseDecoder : public TokenDecoder {
 public:
  Result<std::vector<std::string>> decode(std::vector<std::string> tokens) const final;
  std::unique_ptr<DecodeStage> stage() const final;
  Result<std::string> token_bytes(std::string token, bool& joined) const final;

  virtual Result<std::string> decode_token(std::string token, TokenPlace place) const = 0;
  // Whether decode_token() looks at is_last, so that a stream must lag by one token.
  virtual bool needs_last() const { return false; }
};

// Reads the file's "decoder" by the list in decoders.cpp.
Result<std::unique_ptr<TokenDecoder>> parse_decoder(const JsonRef& json, int depth = 0);

}  // namespace vkformer
