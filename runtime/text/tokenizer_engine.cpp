#include "text/tokenizer_engine.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "base/message.h"
#include "text/batching.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

// The largest published ones have about 35 MB.
constexpr uintmax_t kMaxFileBytes = 256u << 20;
// Offsets are 32-bit.
constexpr size_t kMaxTextBytes = INT32_MAX;

Result<std::string> read_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code fault;
  const uintmax_t size = std::filesystem::file_size(path, fault);
  if (fault) {
    return not_found(message({"[", name, "] The tokenizer file cannot be read (", fault.message(),
                              "); give a model directory or its tokenizer.json."}));
  }
  if (size > kMaxFileBytes) {
    return invalid_file(message({"[", name, "] The tokenizer file has ", size,
                                 " bytes; the limit is ", kMaxFileBytes, "."}));
  }
  std::ifstream file(path, std::ios::binary);
  std::string content(static_cast<size_t>(size), '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file || file.gcount() != static_cast<std::streamsize>(content.size())) {
    return invalid_file(message({"[", name, "] Only ", file.gcount(), " of ", size,
                                 " bytes of the tokenizer file could be read."}));
  }
  return content;
}

// Room for `count` tokens, and for the special tokens that usually follow.
void reserve_tokens(Encoding& encoding, size_t count) {
  constexpr size_t kSpecialTokens = 8;
  if (count <= encoding.ids.capacity()) return;
  const size_t room = count + kSpecialTokens;
  encoding.ids.reserve(room);
  encoding.tokens.reserve(room);
  encoding.offsets.reserve(room);
  encoding.type_ids.reserve(room);
  encoding.attention_mask.reserve(room);
}

TextRange text_range(CharSpan span) {
  return {static_cast<int32_t>(span.begin), static_cast<int32_t>(span.end)};
}

// Writes a model's tokens as ids, strings and offsets.
class EncodingSink final : public PieceSink {
 public:
  EncodingSink(const WordList& words, const TokenTable& table, Encoding& out)
      : words_(words), table_(table), out_(out), before_(out.ids.size()) {}

  void flush() override {
    if (pieces.empty()) return;
    const AlignedText& text = words_.text();
    const size_t first = out_.ids.size();
    make_room(first + pieces.size());
    out_.ids.resize(first + pieces.size());
    out_.offsets.resize(first + pieces.size());
    TokenId* const ids = out_.ids.data() + first;
    TextRange* const offsets = out_.offsets.data() + first;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const TokenPiece& piece = pieces[i];
      ids[i] = piece.id;
      offsets[i] = text_range(text.original_range(piece.begin, piece.end));
      if (!piece.surface) {
        table_.append_token(piece.id, out_.tokens);
      } else {
        const auto chars = words_.chars().substr(piece.begin, piece.end - piece.begin);
        out_.tokens.push_back(encode_utf8(chars));
      }
    }
    pieces.clear();
  }

 private:
  // Room for `count` tokens. Once the beginning of a long text has shown how many characters a
  // token has, there is room for all that will come. Moving many strings to a larger place is slow.
  void make_room(size_t count) {
    if (count <= out_.ids.capacity()) return;
    size_t more = 0;
    const size_t done = pieces.back().end;
    const size_t left = words_.chars().size() - done;
    if (count - before_ >= kShowing && done > 0) {
      const double rate = 1.1 * static_cast<double>(count - before_) / static_cast<double>(done);
      more = static_cast<size_t>(std::min(rate, kMostPerCharacter) * static_cast<double>(left));
    } else if (left > 0) {
      more = count;
    }
    reserve_tokens(out_, count + more);
  }

  static constexpr double kMostPerCharacter = 4.0;  // a token per byte
  static constexpr size_t kShowing = 4096;          // tokens

  const WordList& words_;
  const TokenTable& table_;
  Encoding& out_;
  const size_t before_;  // tokens of other texts
};

// What a file without a decoder means: tokens with spaces between them.
class SpacedStage final : public WholeTokenStage {
 public:
  Status finish(std::vector<StreamPiece>&) override { return {}; }

 protected:
  Status push_token(std::string token, std::vector<StreamPiece>& out) override {
    if (!is_first_) token.insert(0, 1, ' ');
    is_first_ = false;
    out.push_back({std::move(token), true});
    return {};
  }

 private:
  bool is_first_ = true;
};

// Reads the optional step `key` with `parse_step`; the step stays null where the file has none.
template <class Step>
Status parse_step(const JsonRef& root, std::string_view key,
                  Result<std::unique_ptr<Step>> (*parse)(const JsonRef&, int),
                  std::unique_ptr<Step>& step) {
  VKF_ASSIGN(const auto json, root.optional_member(key));
  if (!json) return {};
  VKF_ASSIGN(step, parse(*json, 0));
  return {};
}

}  // namespace

Result<std::unique_ptr<const TokenizerEngine>> TokenizerEngine::load(const std::string& path) {
  std::error_code fault;
  std::filesystem::path file(path);
  if (std::filesystem::is_directory(file, fault)) file /= "tokenizer.json";
  VKF_ASSIGN(const auto content, read_file(file));
  return parse(content, file.string());
}

Result<std::unique_ptr<const TokenizerEngine>> TokenizerEngine::parse(std::string_view json,
                                                                      const std::string& name) {
  VKF_ASSIGN(const auto document, parse_json(json, name));
  const JsonRef root(document, name + ":");
  VKF_ASSIGN(const auto version, root.text_or("version", "1.0"));
  if (version != "1.0") {
    return root.not_supported("is of version [" + version + "]; this build reads version 1.0.");
  }
  std::unique_ptr<TokenizerEngine> engine(new TokenizerEngine);
  VKF_CHECK(parse_step(root, "normalizer", parse_normalizer, engine->normalizer_));
  VKF_CHECK(parse_step(root, "pre_tokenizer", parse_pre_tokenizer, engine->pre_tokenizer_));
  VKF_CHECK(parse_step(root, "post_processor", parse_post_processor, engine->post_processor_));
  VKF_CHECK(parse_step(root, "decoder", parse_decoder, engine->decoder_));
  VKF_ASSIGN(const auto model, root.member("model"));
  VKF_ASSIGN(engine->model_, parse_token_model(model));
  VKF_ASSIGN(engine->added_,
             AddedTokens::parse(root, engine->model_->table(), engine->normalizer_.get()));
  VKF_ASSIGN(engine->truncation_, parse_truncation(root));
  VKF_ASSIGN(engine->padding_, parse_padding(root));
  return std::unique_ptr<const TokenizerEngine>(std::move(engine));
}

Status TokenizerEngine::encode_words(AlignedText text, int32_t type_id, TextMemory& memory,
                                     Encoding& out) const {
  WordList words(std::move(text), std::move(memory.words));
  if (pre_tokenizer_) VKF_CHECK(pre_tokenizer_->apply(words));
  EncodingSink sink(words, model_->table(), out);
  VKF_CHECK(model_->tokenize(words.chars(), words.words(), sink));
  sink.flush();
  out.type_ids.resize(out.ids.size(), type_id);
  out.attention_mask.resize(out.ids.size(), 1);
  memory = words.release();
  return {};
}

Result<Encoding> TokenizerEngine::encode_text(std::string_view text, int32_t type_id) const {
  if (text.size() > kMaxTextBytes) {
    return invalid_argument(message({"[text] has ", text.size(), " bytes; the limit is ",
                                     kMaxTextBytes, ", encode it in parts."}));
  }
  TextMemory memory = memory_.take();
  VKF_ASSIGN(auto chars, decode_utf8(text, "text to encode", std::move(memory.chars)));
  Encoding out;
  const auto add_token = [&](const AddedSplit& split) {
    append_token(out, *split.id, encode_utf8(split.text.chars()),
                 text_range(split.text.original_range(0, split.text.size())), type_id);
  };
  for (AddedSplit& outer : added_.split_original(AlignedText(std::move(chars)))) {
    if (outer.id) {
      add_token(outer);
      continue;
    }
    if (normalizer_) VKF_CHECK(normalizer_->apply(outer.text));
    for (AddedSplit& inner : added_.split_normalized(std::move(outer.text))) {
      if (inner.id) {
        add_token(inner);
      } else {
        VKF_CHECK(encode_words(std::move(inner.text), type_id, memory, out));
      }
    }
  }
  memory_.give(std::move(memory));
  return out;
}

Result<Encoding> TokenizerEngine::encode_unpadded(std::span<const std::string_view> texts,
                                                  const EncodeOptions& options) const {
  std::vector<Encoding> parts;
  for (size_t i = 0; i < texts.size(); ++i) {
    VKF_ASSIGN(auto part, encode_text(texts[i], static_cast<int32_t>(i)));
    parts.push_back(std::move(part));
  }
  const bool adds = options.special_tokens == SpecialTokens::kInclude && post_processor_;
  const size_t added = adds ? post_processor_->added_count(texts.size()) : 0;
  const bool from_file = options.truncation.mode == TruncationMode::kFromFile;
  VKF_CHECK(truncate_encodings(parts, from_file ? truncation_ : options.truncation, added));
  if (post_processor_) {
    VKF_ASSIGN(parts, post_processor_->process(std::move(parts), options.special_tokens));
  }
  Encoding whole;
  for (Encoding& part : parts) append_encoding(whole, std::move(part));
  return whole;
}

Status TokenizerEngine::pad(std::vector<Encoding>& rows, const PaddingOptions& options) const {
  const PaddingOptions& used = options.mode == PaddingMode::kFromFile ? padding_ : options;
  if (used.mode == PaddingMode::kOff) return {};
  const auto id = used.pad_id ? used.pad_id : padding_.pad_id;
  if (!id) {
    return invalid_argument(
        "[padding] No pad_id was given and the tokenizer file names none; set pad_id, for example "
        "to the pad_token_id of the model's configuration.");
  }
  const std::string* token = id_to_token(*id);
  return pad_encodings(rows, used, *id, token != nullptr ? *token : "[PAD]");
}

Result<Encoding> TokenizerEngine::encode(std::span<const std::string_view> texts,
                                         const EncodeOptions& options) const {
  VKF_ASSIGN(auto encoding, encode_unpadded(texts, options));
  std::vector<Encoding> rows;
  rows.push_back(std::move(encoding));
  VKF_CHECK(pad(rows, options.padding));
  return std::move(rows.front());
}

Result<std::vector<Encoding>> TokenizerEngine::encode_batch(std::span<const std::string> texts,
                                                            const EncodeOptions& options) const {
  std::vector<Encoding> rows;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::array<std::string_view, 1> one = {texts[i]};
    auto row = encode_unpadded(one, options);
    if (!row) return row.error().with_context(message({"Text ", i, " of the batch"}));
    rows.push_back(std::move(row).value());
  }
  VKF_CHECK(pad(rows, options.padding));
  return rows;
}

Result<const std::string*> TokenizerEngine::decoded_token(TokenId id,
                                                          SpecialTokens special_tokens) const {
  if (id < 0) {
    return invalid_argument(message({"[ids] has the token id ", id, "; token ids are 0 or more."}));
  }
  const std::string* token = id_to_token(id);
  const bool excluded = special_tokens == SpecialTokens::kExclude && token != nullptr &&
                        added_.is_special(static_cast<int32_t>(id));
  return excluded ? nullptr : token;
}

void TokenizerEngine::append_decoded(TokenId id, SpecialTokens special_tokens,
                                     std::vector<std::string>& tokens) const {
  if (id > INT32_MAX) return;
  const auto row = static_cast<int32_t>(id);
  // Most tokens are the model's own.
  if (!added_.may_have(row) && model_->table().token_of(row) != nullptr) {
    model_->table().append_token(row, tokens);
    return;
  }
  const std::string* token = id_to_token(id);
  if (token == nullptr) return;
  if (special_tokens == SpecialTokens::kExclude && added_.is_special(row)) return;
  tokens.push_back(*token);
}

Result<std::string> TokenizerEngine::decode(std::span<const TokenId> ids,
                                            SpecialTokens special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) {
      return invalid_argument(
          message({"[ids] has ", ids[i], " at index ", i, "; token ids are 0 or more."}));
    }
    append_decoded(ids[i], special_tokens, tokens);
  }
  if (decoder_) {
    VKF_ASSIGN(tokens, decoder_->decode(std::move(tokens)));
    if (tokens.size() == 1) return std::move(tokens.front());
  }
  const std::string_view gap = decoder_ ? "" : " ";
  size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size() + gap.size();
  std::string text;
  text.reserve(bytes);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += gap;
    text += tokens[i];
  }
  return text;
}

Result<std::string> TokenizerEngine::token_bytes(TokenId id) const {
  VKF_ASSIGN(const std::string* token, decoded_token(id, SpecialTokens::kExclude));
  if (token == nullptr) return std::string();
  bool joined = false;
  return decoder_ ? decoder_->token_bytes(*token, joined) : " " + *token;
}

std::unique_ptr<DecodeStage> TokenizerEngine::decode_stage() const {
  return decoder_ ? decoder_->stage() : std::make_unique<SpacedStage>();
}

std::optional<TokenId> TokenizerEngine::token_to_id(std::string_view token) const {
  const auto id = model_->table().id_of(token);
  return id ? id : added_.table().id_of(token);
}

const std::string* TokenizerEngine::id_to_token(TokenId id) const {
  if (id < 0 || id > INT32_MAX) return nullptr;
  const auto row = static_cast<int32_t>(id);  // tables hold ids in 32 bits
  if (const std::string* normalized = added_.normalized_token(row)) return normalized;
  const std::string* token = model_->table().token_of(row);
  return token != nullptr ? token : added_.table().token_of(row);
}

}  // namespace vkformer
