#include "text/decode_stage.h"

#include "base/check.h"
#include "base/utf8_step.h"
#include "text/decoders.h"

namespace vkformer {
namespace {

// Waits for all tokens.
class CollectingStage final : public WholeTokenStage {
 public:
  explicit CollectingStage(const TokenDecoder& decoder) : decoder_(decoder) {}

  Status finish(std::vector<StreamPiece>& out) override {
    VKF_ASSIGN(auto texts, decoder_.decode(std::move(tokens_)));
    for (std::string& text : texts) out.push_back({std::move(text), true});
    return {};
  }

 protected:
  Status push_token(std::string token, std::vector<StreamPiece>&) override {
    tokens_.push_back(std::move(token));
    return {};
  }

 private:
  const TokenDecoder& decoder_;
  std::vector<std::string> tokens_;
};

class TokenwiseStage final : public WholeTokenStage {
 public:
  explicit TokenwiseStage(const TokenwiseDecoder& decoder) : decoder_(decoder) {}

  Status finish(std::vector<StreamPiece>& out) override {
    if (!waiting_) return {};
    waiting_ = false;
    return decode(std::move(waiting_token_), true, out);
  }

 protected:
  Status push_token(std::string token, std::vector<StreamPiece>& out) override {
    if (!decoder_.needs_last()) return decode(std::move(token), false, out);
    waiting_token_.swap(token);
    if (!waiting_) {
      waiting_ = true;
      return {};
    }
    return decode(std::move(token), false, out);
  }

 private:
  Status decode(std::string token, bool is_last, std::vector<StreamPiece>& out) {
    VKF_ASSIGN(auto text, decoder_.decode_token(std::move(token), {is_first_, is_last}));
    is_first_ = false;
    out.push_back({std::move(text), true});
    return {};
  }

  const TokenwiseDecoder& decoder_;
  bool is_first_ = true;
  bool waiting_ = false;
  std::string waiting_token_;
};

}  // namespace

std::unique_ptr<DecodeStage> TokenDecoder::stage() const {
  return std::make_unique<CollectingStage>(*this);
}

std::unique_ptr<DecodeStage> TokenwiseDecoder::stage() const {
  return std::make_unique<TokenwiseStage>(*this);
}

Result<std::string> TokenwiseDecoder::token_bytes(std::string token, bool& joined) const {
  if (joined) {
    return unsupported(
        "[decoder] changes tokens after a step that joins them, so the bytes of one token depend "
        "on "
        "its neighbors; grammars need a tokenizer without such a step.");
  }
  size_t at = 0;
  while (at < token.size()) {
    const Utf8Step step = utf8_step(std::string_view(token).substr(at));
    if (!step.valid) return token;  // a byte of a character, which no step changes
    at += step.length;
  }
  return decode_token(std::move(token), {});
}

Result<std::vector<std::string>> TokenwiseDecoder::decode(std::vector<std::string> tokens) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    VKF_ASSIGN(tokens[i], decode_token(std::move(tokens[i]), {i == 0, i + 1 == tokens.size()}));
  }
  return tokens;
}

}  // namespace vkformer
