// Decoders of byte-pair files: byte-level text, byte tokens, and word-end suffixes.
#include <array>

#include "base/check.h"
#include "base/utf8_step.h"
#include "text/byte_level.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

using DecoderPtr = std::unique_ptr<TokenDecoder>;
using Strings = std::vector<std::string>;

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// The text with U+FFFD for every error.
std::string repair_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  size_t begin = 0;  // of what is good and not yet in the text
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Step step = utf8_step(bytes.substr(at));
    if (!step.valid) {
      text += bytes.substr(begin, at - begin);
      text += kReplacement;
      begin = at + step.length;
    }
    at += step.length;
  }
  text += bytes.substr(begin);
  return text;
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Utf8Step step = utf8_step(bytes);
    if (!step.valid) return false;
    bytes.remove_prefix(step.length);
  }
  return true;
}

// Appends a token's bytes: of the byte alphabet if it is written in it, else, as an added one is,
// its own. The characters of the alphabet have one or two bytes of UTF-8, which tokens are.
void append_bytes(const std::string& token, std::string& bytes) {
  const size_t before = bytes.size();
  for (size_t at = 0; at < token.size();) {
    const Utf8Step step = utf8_step(std::string_view(token).substr(at));
    const auto byte =
        step.length > 2
            ? std::nullopt
            : byte_level_byte(utf8_value(std::string_view(token).substr(at), step.length));
    if (!byte) {
      bytes.resize(before);
      bytes += token;
      return;
    }
    bytes += static_cast<char>(*byte);
    at += step.length;
  }
}

// Hands out characters as soon as they are whole.
class ByteLevelStage final : public WholeTokenStage {
 public:
  Status finish(std::vector<StreamPiece>& out) override {
    out.push_back({repair_utf8(bytes_), true});
    return {};
  }

 protected:
  Status push_token(std::string token, std::vector<StreamPiece>& out) override {
    append_bytes(token, bytes_);
    size_t done = 0;
    while (done < bytes_.size()) {
      const Utf8Step step = utf8_step(std::string_view(bytes_).substr(done));
      if (!step.valid && done + step.length == bytes_.size()) break;  // may go on
      done += step.length;
    }
    if (done > 0) out.push_back({repair_utf8(std::string_view(bytes_).substr(0, done)), false});
    bytes_.erase(0, done);
    return {};
  }

 private:
  std::string bytes_;  // of a character that is not whole
};

class ByteLevelDecoder final : public TokenDecoder {
 public:
  Result<Strings> decode(Strings tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) append_bytes(token, bytes);
    Strings out;
    out.push_back(repair_utf8(bytes));
    return out;
  }

  std::unique_ptr<DecodeStage> stage() const override { return std::make_unique<ByteLevelStage>(); }

  Result<std::string> token_bytes(std::string token, bool& joined) const override {
    joined = true;
    std::string bytes;
    append_bytes(token, bytes);
    return bytes;
  }
};

// Collects the byte tokens in a row: only all of them tell whether they are text.
class ByteFallbackStage final : public WholeTokenStage {
 public:
  // The byte of a token such as "<0x0A>".
  static std::optional<uint8_t> byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
    // The tokenizers library reads the digits as a signed number.
    const int high = token[3] == '+' ? 0 : digit_of(token[3]);
    const int low = digit_of(token[4]);
    if (high < 0 || low < 0) return std::nullopt;
    return static_cast<uint8_t>(high * 16 + low);
  }

  Status finish(std::vector<StreamPiece>& out) override {
    flush(out);
    return {};
  }

 protected:
  Status push_token(std::string token, std::vector<StreamPiece>& out) override {
    const auto byte = byte_of(token);
    if (byte) {
      bytes_ += static_cast<char>(*byte);
      return {};
    }
    flush(out);
    out.push_back({std::move(token), true});
    return {};
  }

 private:
  void flush(std::vector<StreamPiece>& out) {
    if (is_utf8(bytes_)) {
      if (!bytes_.empty()) out.push_back({bytes_, true});
    } else {
      out.insert(out.end(), bytes_.size(), StreamPiece{std::string(kReplacement), true});
    }
    bytes_.clear();
  }

  static int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  }

  std::string bytes_;
};

class ByteFallbackDecoder final : public TokenDecoder {
 public:
  // In place: what byte tokens become is no longer than they are.
  Result<Strings> decode(Strings tokens) const override {
    size_t kept = 0;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (is_utf8(bytes)) {
        tokens[kept++] = bytes;
      } else {
        for (size_t i = 0; i < bytes.size(); ++i) tokens[kept++] = kReplacement;
      }
      bytes.clear();
    };
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (const auto byte = ByteFallbackStage::byte_of(tokens[i])) {
        bytes += static_cast<char>(*byte);
        continue;
      }
      flush();
      if (kept != i) tokens[kept] = std::move(tokens[i]);
      ++kept;
    }
    flush();
    tokens.resize(kept);
    return tokens;
  }

  std::unique_ptr<DecodeStage> stage() const override {
    return std::make_unique<ByteFallbackStage>();
  }

  Result<std::string> token_bytes(std::string token, bool&) const override {
    const auto byte = ByteFallbackStage::byte_of(token);
    return byte ? std::string(1, static_cast<char>(*byte)) : std::move(token);
  }
};

// The suffix that ends a word becomes a space, but for the last token's.
class BpeDecoder final : public TokenwiseDecoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  Result<std::string> decode_token(std::string token, TokenPlace place) const override {
    return replaced(token, place.is_last ? "" : " ");
  }
  bool needs_last() const override { return true; }

 private:
  std::string replaced(const std::string& token, std::string_view replacement) const {
    std::string out;
    size_t at = 0;
    if (suffix_.empty()) {
      // Nothing is found before, between and after all characters.
      for (; at < token.size();) {
        const size_t length = utf8_step(std::string_view(token).substr(at)).length;
        out += replacement;
        out.append(token, at, length);
        at += length;
      }
      out += replacement;
      return out;
    }
    for (size_t found = token.find(suffix_); found != token.npos; found = token.find(suffix_, at)) {
      out.append(token, at, found - at);
      out += replacement;
      at = found + suffix_.size();
    }
    out.append(token, at);
    return out;
  }

  std::string suffix_;
};

}  // namespace

Result<DecoderPtr> parse_byte_level_decoder(const JsonRef&, int) {
  return DecoderPtr(std::make_unique<ByteLevelDecoder>());
}

Result<DecoderPtr> parse_byte_fallback_decoder(const JsonRef&, int) {
  return DecoderPtr(std::make_unique<ByteFallbackDecoder>());
}

Result<DecoderPtr> parse_bpe_decoder(const JsonRef& json, int) {
  VKF_ASSIGN(auto suffix, json.text_or("suffix", "</w>"));
  return DecoderPtr(std::make_unique<BpeDecoder>(std::move(suffix)));
}

}  // namespace vkformer
