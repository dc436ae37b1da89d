#include "text/decoders.h"

#include <array>

#include "text/text_pattern.h"
#include "text/type_list.h"
#include "text/utf8.h"

namespace vkformer {
namespace {

using DecoderPtr = std::unique_ptr<TokenDecoder>;
using Strings = std::vector<std::string>;

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

 private:
  std::vector<DecoderPtr> steps_;
};

class FuseDecoder final : public TokenDecoder {
 public:
  static Result<DecoderPtr> parse(const JsonRef&, int) {
    return DecoderPtr(std::make_unique<FuseDecoder>());
  }

  Result<Strings> decode(Strings tokens) const override {
    std::string whole;
    for (const auto& token : tokens) whole += token;
    Strings out;
    out.push_back(std::move(whole));
    return out;
  }
};

class ReplaceDecoder final : public TokenDecoder {
 public:
  static Result<DecoderPtr> parse(const JsonRef& json, int) {
    auto replace = std::make_unique<ReplaceDecoder>();
    VKF_ASSIGN(const auto pattern, json.member("pattern"));
    VKF_ASSIGN(replace->pattern_, TextPattern::parse(pattern));
    VKF_ASSIGN(const auto content, json.member("content"));
    VKF_ASSIGN(replace->content_, content.code_points());
    return DecoderPtr(std::move(replace));
  }

  Result<Strings> decode(Strings tokens) const override {
    for (std::string& token : tokens) {
      VKF_ASSIGN(auto chars, decode_utf8(token, "token"));
      VKF_ASSIGN(const auto found, pattern_.find_all(chars));
      if (found.empty()) continue;
      AlignedText text(std::move(chars));
      text.replace_ranges(found, content_);
      token = encode_utf8(text.chars());
    }
    return tokens;
  }

 private:
  TextPattern pattern_;
  std::u32string content_;
};

// Takes at most `start` copies of a character off each token's front and `stop` off its back.
class StripDecoder final : public TokenDecoder {
 public:
  static Result<DecoderPtr> parse(const JsonRef& json, int) {
    auto strip = std::make_unique<StripDecoder>();
    VKF_ASSIGN(const auto content, json.member("content"));
    VKF_ASSIGN(const auto chars, content.code_points());
    if (chars.size() != 1) return content.malformed("must be a string of one character.");
    append_utf8(strip->content_, chars[0]);
    VKF_ASSIGN(strip->start_, json.count_or("start", 0));
    VKF_ASSIGN(strip->stop_, json.count_or("stop", 0));
    return DecoderPtr(std::move(strip));
  }

  Result<Strings> decode(Strings tokens) const override {
    for (std::string& token : tokens) {
      for (int64_t i = 0; i < start_ && token.starts_with(content_); ++i) {
        token.erase(0, content_.size());
      }
      for (int64_t i = 0; i < stop_ && token.ends_with(content_); ++i) {
        token.resize(token.size() - content_.size());
      }
    }
    return tokens;
  }

 private:
  std::string content_;
  int64_t start_ = 0;
  int64_t stop_ = 0;
};

constexpr std::array<TypeRow<DecoderPtr>, 4> kDecoders = {{
    {"Sequence", SequenceDecoder::parse},
    {"Fuse", FuseDecoder::parse},
    {"Replace", ReplaceDecoder::parse},
    {"Strip", StripDecoder::parse},
}};

}  // namespace

Result<DecoderPtr> parse_decoder(const JsonRef& json, int depth) {
  return parse_by_type<DecoderPtr>(kDecoders, json, depth, "decoder");
}

}  // namespace vkformer
