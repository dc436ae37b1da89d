#include "text/decoders.h"

#include <array>

#include "text/bert_text.h"
#include "text/byte_level.h"
#include "text/metaspace.h"
#include "text/text_pattern.h"
#include "text/type_list.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

using DecoderPtr = std::unique_ptr<TokenDecoder>;
using Strings = std::vector<std::string>;
using Pieces = std::vector<StreamPiece>;

class SequenceStage final : public DecodeStage {
 public:
  explicit SequenceStage(const std::vector<DecoderPtr>& steps) {
    for (const auto& step : steps) stages_.push_back(step->stage());
  }

  Status push(StreamPiece piece, Pieces& out) override {
    Pieces pieces;
    pieces.push_back(std::move(piece));
    for (const auto& stage : stages_) VKF_CHECK(run(*stage, pieces));
    append(std::move(pieces), out);
    return {};
  }

  Status finish(Pieces& out) override {
    Pieces pieces;
    for (const auto& stage : stages_) {
      VKF_CHECK(run(*stage, pieces));
      VKF_CHECK(stage->finish(pieces));
    }
    append(std::move(pieces), out);
    return {};
  }

 private:
  // Replaces `pieces` by what the stage makes of them.
  static Status run(DecodeStage& stage, Pieces& pieces) {
    Pieces next;
    for (StreamPiece& piece : pieces) VKF_CHECK(stage.push(std::move(piece), next));
    pieces = std::move(next);
    return {};
  }
  static void append(Pieces pieces, Pieces& out) {
    for (StreamPiece& piece : pieces) out.push_back(std::move(piece));
  }

  std::vector<std::unique_ptr<DecodeStage>> stages_;
};

class SequenceDecoder final : public TokenDecoder {
 public:
  static Result<DecoderPtr> parse(const JsonRef& json, int depth) {
    auto sequence = std::make_unique<SequenceDecoder>();
    VKF_CHECK(parse_each(
        json, "decoders", [&](const JsonRef& one) { return parse_decoder(one, depth + 1); },
        [&](DecoderPtr step) { sequence->steps_.push_back(std::move(step)); }));
    return DecoderPtr(std::move(sequence));
  }

  Result<Strings> decode(Strings tokens) const override {
    for (const auto& step : steps_) {
      VKF_ASSIGN(tokens, step->decode(std::move(tokens)));
    }
    return tokens;
  }

  std::unique_ptr<DecodeStage> stage() const override {
    return std::make_unique<SequenceStage>(steps_);
  }

  Result<std::string> token_bytes(std::string token, bool& joined) const override {
    for (const auto& step : steps_) {
      VKF_ASSIGN(token, step->token_bytes(std::move(token), joined));
    }
    return token;
  }

 private:
  std::vector<DecoderPtr> steps_;
};

class FuseStage final : public DecodeStage {
 public:
  Status push(StreamPiece piece, Pieces& out) override {
    if (!piece.text.empty()) out.push_back({std::move(piece.text), false});
    return {};
  }
  Status finish(Pieces& out) override {
    out.push_back({"", true});
    return {};
  }
};

class FuseDecoder final : public TokenDecoder {
 public:
  static Result<DecoderPtr> parse(const JsonRef&, int) {
    return DecoderPtr(std::make_unique<FuseDecoder>());
  }

  Result<Strings> decode(Strings tokens) const override {
    size_t bytes = 0;
    for (const auto& token : tokens) bytes += token.size();
    std::string whole;
    whole.reserve(bytes);
    for (const auto& token : tokens) whole += token;
    Strings out;
    out.push_back(std::move(whole));
    return out;
  }

  std::unique_ptr<DecodeStage> stage() const override { return std::make_unique<FuseStage>(); }

  Result<std::string> token_bytes(std::string token, bool& joined) const override {
    joined = true;
    return token;
  }
};

class ReplaceDecoder final : public TokenwiseDecoder {
 public:
  static Result<DecoderPtr> parse(const JsonRef& json, int) {
    auto replace = std::make_unique<ReplaceDecoder>();
    VKF_ASSIGN(const auto pattern, json.member("pattern"));
    VKF_ASSIGN(replace->pattern_, TextPattern::parse(pattern));
    VKF_ASSIGN(const auto content, json.member("content"));
    VKF_ASSIGN(replace->content_, content.code_points());
    replace->literal_ = encode_utf8(replace->pattern_.literal());
    replace->content_bytes_ = encode_utf8(replace->content_);
    return DecoderPtr(std::move(replace));
  }

  Result<std::string> decode_token(std::string token, TokenPlace) const override {
    if (!literal_.empty()) {
      // A string of characters is found as bytes just as well.
      for (size_t at = token.find(literal_); at != token.npos;
           at = token.find(literal_, at + content_bytes_.size())) {
        token.replace(at, literal_.size(), content_bytes_);
      }
      return token;
    }
    VKF_ASSIGN(auto chars, decode_utf8(token, "token"));
    VKF_ASSIGN(const auto found, pattern_.find_all(chars));
    if (found.empty()) return token;
    AlignedText text(std::move(chars));
    text.replace_ranges(found, content_);
    return encode_utf8(text.chars());
  }

 private:
  TextPattern pattern_;
  std::u32string content_;
  std::string literal_;  // of a pattern that is a plain string
  std::string content_bytes_;
};

// What StripDecoder takes off.
struct StripSettings {
  std::string content;  // one character
  int64_t start = 0;    // copies, at most
  int64_t stop = 0;

  // Bytes of copies that `text` begins with, of at most `copies`.
  size_t leading(std::string_view text, int64_t copies) const {
    size_t bytes = 0;
    for (; copies > 0 && text.substr(bytes).starts_with(content); --copies) bytes += content.size();
    return bytes;
  }
  // Bytes of copies that `text` ends with, of at most `stop`.
  size_t trailing(std::string_view text) const {
    const size_t whole = text.size();
    for (int64_t i = 0; i < stop && text.ends_with(content); ++i)
      text.remove_suffix(content.size());
    return whole - text.size();
  }
};

// Holds back what a token's end may still take off.
class StripStage final : public DecodeStage {
 public:
  explicit StripStage(const StripSettings& settings) : settings_(settings) {}

  Status push(StreamPiece piece, Pieces& out) override {
    std::string& text = piece.text;
    if (at_front_) {
      const size_t bytes = settings_.leading(text, settings_.start - dropped_);
      text.erase(0, bytes);
      dropped_ += static_cast<int64_t>(bytes / settings_.content.size());
      at_front_ = text.empty() && dropped_ < settings_.start;
    }
    text.insert(0, held_);
    held_ = text.substr(text.size() - settings_.trailing(text));
    text.resize(text.size() - held_.size());
    if (piece.ends_token) {
      held_.clear();
      at_front_ = true;
      dropped_ = 0;
    }
    if (piece.ends_token || !text.empty()) out.push_back(std::move(piece));
    return {};
  }

  Status finish(Pieces&) override { return {}; }

 private:
  const StripSettings& settings_;
  bool at_front_ = true;  // nothing but dropped copies has come of the token
  int64_t dropped_ = 0;   // copies
  std::string held_;      // copies
};

// Takes copies of a character off each token's front and back.
class StripDecoder final : public TokenDecoder {
 public:
  static Result<DecoderPtr> parse(const JsonRef& json, int) {
    auto strip = std::make_unique<StripDecoder>();
    VKF_ASSIGN(const auto content, json.member("content"));
    VKF_ASSIGN(const auto chars, content.code_points());
    if (chars.size() != 1) return content.malformed("must be a string of one character.");
    append_utf8(strip->settings_.content, chars[0]);
    VKF_ASSIGN(strip->settings_.start, json.count_or("start", 0));
    VKF_ASSIGN(strip->settings_.stop, json.count_or("stop", 0));
    return DecoderPtr(std::move(strip));
  }

  Result<Strings> decode(Strings tokens) const override {
    for (std::string& token : tokens) {
      token.erase(0, settings_.leading(token, settings_.start));
      token.resize(token.size() - settings_.trailing(token));
    }
    return tokens;
  }

  std::unique_ptr<DecodeStage> stage() const override {
    return std::make_unique<StripStage>(settings_);
  }

  Result<std::string> token_bytes(std::string token, bool& joined) const override {
    if (joined) return token;  // the front and back are those of the whole text
    token.erase(0, settings_.leading(token, settings_.start));
    token.resize(token.size() - settings_.trailing(token));
    return token;
  }

 private:
  StripSettings settings_;
};

constexpr std::array<TypeRow<DecoderPtr>, 9> kDecoders = {{
    {"Sequence", SequenceDecoder::parse},
    {"Fuse", FuseDecoder::parse},
    {"Replace", ReplaceDecoder::parse},
    {"Strip", StripDecoder::parse},
    {"WordPiece", parse_word_piece_decoder},
    {"ByteLevel", parse_byte_level_decoder},
    {"ByteFallback", parse_byte_fallback_decoder},
    {"BPEDecoder", parse_bpe_decoder},
    {"Metaspace", parse_metaspace_decoder},
}};

}  // namespace

Result<DecoderPtr> parse_decoder(const JsonRef& json, int depth) {
  return parse_by_type<DecoderPtr>(kDecoders, json, depth, "decoder");
}

}  // namespace vkformer
