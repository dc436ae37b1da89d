// WordLevel: each word is one token, or the unknown token.
#include "base/check.h"
#include "base/message.h"
#include "text/token_model.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

class WordLevelModel final : public TokenModel {
 public:
  WordLevelModel(TokenTable table, std::string unknown)
      : table_(std::move(table)), unknown_(std::move(unknown)) {}

  Status tokenize(std::u32string_view text, std::span<const CharSpan> words,
                  PieceSink& sink) const override {
    for (const CharSpan& word : words) {
      const std::string token = encode_utf8(text.substr(word.begin, word.end - word.begin));
      auto id = table_.id_of(token);
      if (!id) id = table_.id_of(unknown_);
      if (!id) {
        return invalid_argument(message(
            {"The word [", token, "] is not in the vocabulary, and neither is the unknown token [",
             unknown_, "] that should stand for it."}));
      }
      sink.pieces.push_back({*id, word.begin, word.end});
      sink.pass_on();
    }
    return {};
  }

  const TokenTable& table() const override { return table_; }

 private:
  TokenTable table_;
  std::string unknown_;
};

}  // namespace

Result<std::unique_ptr<TokenModel>> parse_word_level_model(const JsonRef& json, int) {
  VKF_ASSIGN(const auto vocabulary, json.member("vocab"));
  VKF_ASSIGN(auto table, parse_token_table(vocabulary));
  VKF_ASSIGN(const auto unknown, json.member("unk_token"));
  VKF_ASSIGN(auto unknown_token, unknown.text());
  return std::unique_ptr<TokenModel>(
      std::make_unique<WordLevelModel>(std::move(table), std::move(unknown_token)));
}

}  // namespace vkformer
