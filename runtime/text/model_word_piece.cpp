// WordPiece (Schuster and Nakajima, 2012; Devlin et al., 2019). A word is cut into the longest
// token that it starts with, then the longest continuing token, and onwards. One that cannot be cut
// like this is the unknown token.
#include "base/check.h"
#include "base/message.h"
#include "text/token_model.h"
#include "unicode/char_trie.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

class WordPieceModel final : public TokenModel {
 public:
  static Result<std::unique_ptr<TokenModel>> parse(const JsonRef& json, int) {
    auto model = std::make_unique<WordPieceModel>();
    VKF_ASSIGN(const auto vocabulary, json.member("vocab"));
    VKF_ASSIGN(model->table_, parse_token_table(vocabulary));
    VKF_ASSIGN(model->unknown_, json.text_or("unk_token", "[UNK]"));
    VKF_ASSIGN(const auto prefix, json.text_or("continuing_subword_prefix", "##"));
    VKF_ASSIGN(const int64_t longest, json.count_or("max_input_chars_per_word", 100));
    model->longest_word_ = static_cast<size_t>(longest);
    VKF_CHECK(model->build_trie(vocabulary, prefix));
    return std::unique_ptr<TokenModel>(std::move(model));
  }

  Status tokenize(std::u32string_view text, std::span<const CharSpan> words,
                  PieceSink& sink) const override {
    std::vector<TokenPiece>& pieces = sink.pieces;
    for (const CharSpan& word : words) {
      sink.pass_on();
      const size_t first = pieces.size();
      if (word.end - word.begin <= longest_word_ && cut(text, word, pieces)) continue;
      pieces.resize(first);
      const auto id = table_.id_of(unknown_);
      if (!id) {
        return invalid_argument(
            message({"The word [", encode_utf8(text.substr(word.begin, word.end - word.begin)),
                     "] cannot be made from the vocabulary, which lacks the unknown token [",
                     unknown_, "] that should stand for it, too."}));
      }
      pieces.push_back({*id, word.begin, word.end});
    }
    return {};
  }

  const TokenTable& table() const override { return table_; }

 private:
  Status build_trie(const JsonRef& vocabulary, const std::string& prefix) {
    std::vector<CharTrie::Entry> entries;
    entries.reserve(table_.size());
    for (const auto& [token, id] : vocabulary.node().items()) {
      VKF_ASSIGN(auto chars, decode_utf8(token, "token"));
      entries.push_back({std::move(chars), id.get<int32_t>()});
    }
    trie_ = CharTrie(std::move(entries));
    VKF_ASSIGN(const auto prefix_chars, decode_utf8(prefix, "continuing_subword_prefix"));
    continuing_ = CharTrie::root();
    for (const char32_t c : prefix_chars) {
      if (continuing_ == CharTrie::kNoNode) break;
      continuing_ = trie_.next(continuing_, trie_.code_of(c));
    }
    return {};
  }

  // Appends the pieces of a word; false when it cannot be cut to its end.
  bool cut(std::u32string_view text, CharSpan word, std::vector<TokenPiece>& pieces) const {
    uint32_t node = CharTrie::root();
    for (uint32_t begin = word.begin; begin < word.end; node = continuing_) {
      TokenPiece longest{0, begin, begin};
      for (uint32_t at = begin; at < word.end && node != CharTrie::kNoNode;) {
        node = trie_.next(node, trie_.code_of(text[at++]));
        if (node == CharTrie::kNoNode) break;
        const int32_t id = trie_.value(node);
        if (id != CharTrie::kNoValue) longest = {id, begin, at};
      }
      if (longest.end == begin) return false;
      pieces.push_back(longest);
      begin = longest.end;
    }
    return true;
  }

  TokenTable table_;
  CharTrie trie_;                            // every token
  uint32_t continuing_ = CharTrie::kNoNode;  // where tokens with the prefix go on from
  std::string unknown_;
  size_t longest_word_ = 0;  // characters
};

}  // namespace

Result<std::unique_ptr<TokenModel>> parse_word_piece_model(const JsonRef& json, int depth) {
  return WordPieceModel::parse(json, depth);
}

}  // namespace vkformer
