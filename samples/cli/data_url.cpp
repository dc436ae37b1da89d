#include "data_url.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace vkformer::cli {

namespace {

constexpr uint8_t kNoDigit = 64;

std::array<uint8_t, 256> make_digits() {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<uint8_t>(i);
  }
  return values;
}

Error bad_url(const std::string& where, const std::string& what) {
  return {ErrorCode::kInvalidArgument, "[" + where + "] " + what};
}

// Names of schemes and media types are the same in small and in capital letters.
bool begins_with(std::string_view text, std::string_view small) {
  return text.size() >= small.size() &&
         std::equal(small.begin(), small.end(), text.begin(), [](char a, char b) {
           return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
         });
}

// What a message shows of a text that a client wrote.
std::string shown(std::string_view text) {
  std::string start(text.substr(0, 40));
  for (char& c : start) c = c >= ' ' && c <= '~' ? c : '?';
  return "'" + start + (text.size() > 40 ? "...'" : "'");
}

// Groups of four digits are three bytes; the last group may end with one or two '='.
Result<std::vector<std::byte>> decode_base64(std::string_view text, const std::string& where) {
  static const std::array<uint8_t, 256> kValues = make_digits();
  if (text.empty() || text.size() % 4 != 0) {
    return bad_url(where, "has Base64 of " + std::to_string(text.size()) +
                              " characters, but it must be a multiple of 4 and not empty; pad it "
                              "with '='.");
  }
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    const size_t digits = at + 4 == text.size() ? 4 - padding : 4;
    uint32_t group = 0;
    for (size_t i = 0; i < 4; ++i) {
      const uint8_t value = i < digits ? kValues[static_cast<unsigned char>(text[at + i])] : 0;
      if (value == kNoDigit) {
        return bad_url(where, "has a character at " + std::to_string(at + i) +
                                  " of its Base64 that is no digit of it; write A to Z, a to z, 0 "
                                  "to 9, + and / alone.");
      }
      group = group << 6 | value;
    }
    // Bits beyond the last byte have no meaning; two texts would be one picture.
    if ((group & ((1u << 8 * (4 - digits)) - 1)) != 0 && digits < 4) {
      return bad_url(where,
                     "has Base64 whose last digit has bits beyond the last byte; encode the "
                     "file again.");
    }
    for (size_t i = 0; i + 1 < digits; ++i) {
      bytes.push_back(static_cast<std::byte>(group >> (16 - 8 * i)));
    }
  }
  return bytes;
}

}  // namespace

Result<std::vector<std::byte>> read_image_url(std::string_view url, size_t most,
                                              const std::string& where) {
  const std::string wanted = "give the image itself, as data:image/png;base64,...";
  if (!begins_with(url, "data:")) {
    return bad_url(where, "is " + shown(url) + ", but addresses and paths are never opened here; " +
                              wanted + ".");
  }
  const size_t comma = url.find(',');
  const std::string_view type = url.substr(5, comma == url.npos ? url.npos : comma - 5);
  constexpr std::string_view kBase64 = ";base64";
  const bool coded = comma != url.npos && type.size() >= kBase64.size() &&
                     begins_with(type.substr(type.size() - kBase64.size()), kBase64);
  if (!coded || !begins_with(type, "image/")) {
    return bad_url(where, "is " + shown(url) + ", no image in Base64; " + wanted + ".");
  }
  const std::string_view digits = url.substr(comma + 1);
  const size_t bytes = digits.size() / 4 * 3;
  // Up to two of them are padding.
  if (bytes > most && bytes - most > 2) {
    return bad_url(where,
                   "has " + std::to_string(bytes) + " bytes, over the limit of " +
                       std::to_string(most) +
                       " bytes that are left for the pictures of a request; make it smaller.");
  }
  return decode_base64(digits, where);
}

}  // namespace vkformer::cli
