// Tokenizer files for the tests of tests/text, put together from parts.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "vkformer/tokenizer.h"

namespace vkformer::test {

// The parts of a tokenizer file, each as JSON.
struct TokenizerParts {
  std::string added_tokens = "[]";
  std::string normalizer = "null";
  std::string pre_tokenizer = "null";
  std::string post_processor = "null";
  std::string decoder = "null";
  std::string vocab = R"({"[UNK]": 0})";
  std::string truncation = "null";
  std::string padding = "null";
};

inline std::string tokenizer_json(const TokenizerParts& parts) {
  return R"({"version": "1.0", "truncation": )" + parts.truncation + R"(, "padding": )" +
         parts.padding + R"(, "added_tokens": )" + parts.added_tokens + R"(, "normalizer": )" +
         parts.normalizer + R"(, "pre_tokenizer": )" + parts.pre_tokenizer +
         R"(, "post_processor": )" + parts.post_processor + R"(, "decoder": )" + parts.decoder +
         R"(, "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": )" + parts.vocab + "}}";
}

inline Tokenizer make_tokenizer(const TokenizerParts& parts) {
  auto made = Tokenizer::parse(tokenizer_json(parts));
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  return std::move(made).value();
}

inline Encoding encoded(const Tokenizer& tokenizer, std::string_view text,
                        const EncodeOptions& options = {}) {
  auto result = tokenizer.encode(text, options);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? std::string() : result.error().message));
  return std::move(result).value();
}

using Ranges = std::vector<std::pair<int32_t, int32_t>>;

inline Ranges ranges_of(const Encoding& encoding) {
  Ranges out;
  for (const TextRange& range : encoding.offsets) out.emplace_back(range.begin, range.end);
  return out;
}

}  // namespace vkformer::test
