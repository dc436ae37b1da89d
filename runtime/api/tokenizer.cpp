#include "vkformer/tokenizer.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "checkpoint/inner_link.h"
#include "checkpoint/pack_file.h"
#include "gguf/gguf_store.h"
#include "text/tokenizer_engine.h"
#include "tokenizer_files/tokenizer_store.h"

namespace vkformer {
namespace {

std::string joined(const std::vector<StreamPiece>& pieces) {
  std::string text;
  for (const StreamPiece& piece : pieces) text += piece.text;
  return text;
}

Result<std::unique_ptr<const TokenizerEngine>> parse_bytes(std::span<const std::byte> bytes,
                                                           const std::string& name) {
  return TokenizerEngine::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
}

// The tokenizer of a GGUF file, of a directory with other tokenizer files than tokenizer.json, or
// of one of those files; else null.
Result<std::unique_ptr<const TokenizerEngine>> load_other_tokenizer(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path given = path_from_utf8(path);
  const bool whole_model = is_gguf_file(path) || is_pack_file(path);
  if (std::filesystem::is_regular_file(given, ignored) && !whole_model) {
    const std::string name = given.filename().string();
    const std::vector<std::string> known = tokenizer_file_names();
    const bool other = std::find(known.begin(), known.end(), name) != known.end() ||
                       name.ends_with(".tiktoken") || name.ends_with(".model");
    if (!other) return std::unique_ptr<const TokenizerEngine>();
    const std::string folder = given.parent_path().string();
    VKF_ASSIGN(const std::string json,
               tokenizer_json_of(*make_directory_store(folder.empty() ? "." : folder), name));
    return TokenizerEngine::parse(json, path);
  }
  if (std::filesystem::exists(path_from_utf8(path + "/tokenizer.json"), ignored)) {
    return std::unique_ptr<const TokenizerEngine>();
  }
  const auto files = make_model_store(path);
  if (!whole_model && !files->has("tokenizer.json")) {
    return std::unique_ptr<const TokenizerEngine>();
  }
  VKF_ASSIGN(const MappedFile file, files->open("tokenizer.json"));
  return parse_bytes(file.bytes(), file.path());
}

}  // namespace

class DecodeStreamState {
 public:
  std::shared_ptr<const TokenizerEngine> engine;
  SpecialTokens special_tokens;
  std::unique_ptr<DecodeStage> stage;  // refers to the engine
};

Tokenizer::Tokenizer(std::shared_ptr<const TokenizerEngine> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::load(const std::string& path) {
  return guarded([&]() -> Result<Tokenizer> {
    VKF_ASSIGN(auto made, load_other_tokenizer(path));
    if (made != nullptr) return HandleAccess::make<Tokenizer>(std::move(made));
    // In a directory its tokenizer.json, which a link may not lead out of it; a file is what the
    // caller chose.
    VKF_CHECK(check_inner_link(path, path + "/tokenizer.json"));
    VKF_ASSIGN(auto engine, TokenizerEngine::load(path));
    return HandleAccess::make<Tokenizer>(std::move(engine));
  });
}

Result<Tokenizer> Tokenizer::parse(std::string_view json, const std::string& name) {
  return guarded([&]() -> Result<Tokenizer> {
    VKF_ASSIGN(auto engine, TokenizerEngine::parse(json, name));
    return HandleAccess::make<Tokenizer>(std::move(engine));
  });
}

Result<Encoding> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return guarded([&]() -> Result<Encoding> {
    return impl_->encode(std::array<std::string_view, 1>{text}, options);
  });
}

Result<Encoding> Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                        const EncodeOptions& options) const {
  return guarded([&]() -> Result<Encoding> {
    return impl_->encode(std::array<std::string_view, 2>{first, second}, options);
  });
}

Result<std::vector<Encoding>> Tokenizer::encode_batch(std::span<const std::string> texts,
                                                      const EncodeOptions& options) const {
  return guarded([&] { return impl_->encode_batch(texts, options); });
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids,
                                      SpecialTokens special_tokens) const {
  return guarded([&] { return impl_->decode(ids, special_tokens); });
}

Result<std::string> Tokenizer::decode(std::initializer_list<TokenId> ids,
                                      SpecialTokens special_tokens) const {
  return guarded([&] { return impl_->decode(std::span(ids), special_tokens); });
}

DecodeStream Tokenizer::decode_stream(SpecialTokens special_tokens) const {
  auto state = std::make_unique<DecodeStreamState>();
  state->engine = impl_;
  state->special_tokens = special_tokens;
  state->stage = impl_->decode_stage();
  return HandleAccess::make<DecodeStream>(std::move(state));
}

DecodeStream::DecodeStream(std::unique_ptr<DecodeStreamState> impl) : impl_(std::move(impl)) {}
DecodeStream::DecodeStream(DecodeStream&&) noexcept = default;
DecodeStream& DecodeStream::operator=(DecodeStream&&) noexcept = default;
DecodeStream::~DecodeStream() = default;

Result<std::string> DecodeStream::push(TokenId id) {
  return guarded([&]() -> Result<std::string> {
    VKF_ASSIGN(const std::string* token, impl_->engine->decoded_token(id, impl_->special_tokens));
    std::vector<StreamPiece> pieces;
    if (token != nullptr) VKF_CHECK(impl_->stage->push({*token, true}, pieces));
    return joined(pieces);
  });
}

Result<std::string> DecodeStream::finish() {
  return guarded([&]() -> Result<std::string> {
    std::vector<StreamPiece> pieces;
    VKF_CHECK(impl_->stage->finish(pieces));
    impl_->stage = impl_->engine->decode_stage();
    return joined(pieces);
  });
}

size_t Tokenizer::vocab_size() const {
  return impl_->vocab_size();
}

std::optional<TokenId> Tokenizer::token_to_id(std::string_view token) const {
  return impl_->token_to_id(token);
}

std::optional<std::string> Tokenizer::id_to_token(TokenId id) const {
  const std::string* token = impl_->id_to_token(id);
  return token != nullptr ? std::optional<std::string>(*token) : std::nullopt;
}

Result<std::string> Tokenizer::token_bytes(TokenId id) const {
  return guarded([&] { return impl_->token_bytes(id); });
}

}  // namespace vkformer
