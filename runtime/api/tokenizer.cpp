#include "vkformer/tokenizer.h"

#include <array>

#include "base/check.h"
#include "base/guarded.h"
#include "checkpoint/inner_link.h"
#include "text/tokenizer_engine.h"

namespace vkformer {
namespace {

std::string joined(const std::vector<StreamPiece>& pieces) {
  std::string text;
  for (const StreamPiece& piece : pieces) text += piece.text;
  return text;
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerEngine> engine) : engine_(std::move(engine)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::load(const std::string& path) {
  return guarded([&]() -> Result<Tokenizer> {
    // In a directory its tokenizer.json, which a link may not lead out of it; a file is what the
    // caller chose.
    VKF_CHECK(check_inner_link(path, path + "/tokenizer.json"));
    VKF_ASSIGN(auto engine, TokenizerEngine::load(path));
    return Tokenizer(std::move(engine));
  });
}

Result<Tokenizer> Tokenizer::parse(std::string_view json, const std::string& name) {
  return guarded([&]() -> Result<Tokenizer> {
    VKF_ASSIGN(auto engine, TokenizerEngine::parse(json, name));
    return Tokenizer(std::move(engine));
  });
}

Result<Encoding> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return guarded([&]() -> Result<Encoding> {
    return engine_->encode(std::array<std::string_view, 1>{text}, options);
  });
}

Result<Encoding> Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                        const EncodeOptions& options) const {
  return guarded([&]() -> Result<Encoding> {
    return engine_->encode(std::array<std::string_view, 2>{first, second}, options);
  });
}

Result<std::vector<Encoding>> Tokenizer::encode_batch(std::span<const std::string> texts,
                                                      const EncodeOptions& options) const {
  return guarded([&] { return engine_->encode_batch(texts, options); });
}

Result<std::string> Tokenizer::decode(std::span<const int32_t> ids,
                                      SpecialTokens special_tokens) const {
  return guarded([&] { return engine_->decode(ids, special_tokens); });
}

DecodeStream Tokenizer::decode_stream(SpecialTokens special_tokens) const {
  return DecodeStream(*engine_, special_tokens);
}

DecodeStream::DecodeStream(const TokenizerEngine& engine, SpecialTokens special_tokens)
    : engine_(&engine), special_tokens_(special_tokens), stage_(engine.decode_stage()) {}
DecodeStream::DecodeStream(DecodeStream&&) noexcept = default;
DecodeStream& DecodeStream::operator=(DecodeStream&&) noexcept = default;
DecodeStream::~DecodeStream() = default;

Result<std::string> DecodeStream::push(int32_t id) {
  return guarded([&]() -> Result<std::string> {
    VKF_ASSIGN(const std::string* token, engine_->decoded_token(id, special_tokens_));
    std::vector<StreamPiece> pieces;
    if (token != nullptr) VKF_CHECK(stage_->push({*token, true}, pieces));
    return joined(pieces);
  });
}

Result<std::string> DecodeStream::finish() {
  return guarded([&]() -> Result<std::string> {
    std::vector<StreamPiece> pieces;
    VKF_CHECK(stage_->finish(pieces));
    stage_ = engine_->decode_stage();
    return joined(pieces);
  });
}

size_t Tokenizer::vocab_size() const {
  return engine_->vocab_size();
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  return engine_->token_to_id(token);
}

std::optional<std::string> Tokenizer::id_to_token(int32_t id) const {
  const std::string* token = engine_->id_to_token(id);
  return token != nullptr ? std::optional<std::string>(*token) : std::nullopt;
}

Result<std::string> Tokenizer::token_bytes(int32_t id) const {
  return guarded([&] { return engine_->token_bytes(id); });
}

}  // namespace vkformer
