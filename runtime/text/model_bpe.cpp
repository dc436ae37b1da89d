// BPE: a word's characters, joined pair by pair by the file's merge rules.
#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "text/byte_pair_merger.h"
#include "text/token_model.h"
#include "text/utf8.h"
#include "text/word_cache.h"

namespace vkformer {
namespace {

// Words up to here are merged by looking at all their pairs, longer ones by a queue.
constexpr size_t kShortWord = 32;
// Words from here on are cut where no merge can join, so that their parts are found in the cache.
constexpr size_t kLongWord = 24;

// How far ahead of the word at hand the cache is asked for; a few are enough to hide a memory's
// latency.
constexpr size_t kWordsAhead = 4;
// Tokens that are looked up whole, when words are not: ids below, and bytes at most.
constexpr size_t kMostWholeTokens = 1 << 20;
constexpr size_t kLongestWholeToken = 128;

constexpr int32_t kNoToken = -1;

uint32_t utf8_length(char32_t c) {
  return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

// Tokens of one character, by code point: pages of 256.
class CharTokens {
 public:
  void add(char32_t c, int32_t id) {
    uint16_t& page = page_of_[c >> 8];
    if (page == 0) {
      page = static_cast<uint16_t>(pages_.size());
      pages_.push_back(pages_[0]);
    }
    pages_[page][c & 0xFF] = id;
  }
  // The token of a character, or kNoToken. Precondition: a Unicode scalar value.
  int32_t find(char32_t c) const { return pages_[page_of_[c >> 8]][c & 0xFF]; }

  CharTokens() : pages_(1) { pages_[0].fill(kNoToken); }

 private:
  std::array<uint16_t, 0x1100> page_of_{};  // page 0 is empty
  std::vector<std::array<int32_t, 256>> pages_;
};

// What the file says, but for the rules themselves.
struct BpeSettings {
  std::optional<std::string> unknown;
  std::string prefix;  // of characters that do not begin a word
  std::string suffix;  // of the character that ends a word
  bool fuse_unknown = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
};

class BpeModel final : public TokenModel {
 public:
  static Result<std::unique_ptr<TokenModel>> parse(const JsonRef& json);

  Status tokenize(std::u32string_view text, std::span<const CharSpan> words,
                  std::vector<TokenPiece>& pieces) const override {
    Run run{text, pieces, WordCache(words.size() == 1 ? text.size() / 4 : words.size()), {}, {}};
    for (size_t i = 0; i < words.size(); ++i) {
      if (i + kWordsAhead < words.size()) run.cache.prefetch(text, words[i + kWordsAhead]);
      VKF_CHECK(add_word(run, words[i]));
    }
    return {};
  }

  const TokenTable& table() const override { return table_; }

 private:
  // One call: its text, where its tokens go, and working memory.
  struct Run {
    std::u32string_view text;
    std::vector<TokenPiece>& pieces;
    WordCache cache;
    MergeScratch scratch;
    std::string bytes;
  };

  Status parse_vocabulary(const JsonRef& json);
  Status parse_merges(const JsonRef& json);
  Status add_merge(const JsonRef& json, std::pair<std::string_view, std::string_view> parts,
                   uint32_t rank);

  // Whether parts of a word may be merged one by one.
  bool can_cut(const Run& run, CharSpan word) const;
  // Finds the tokens that merging their characters gives.
  Status find_whole_tokens(const JsonRef& json);
  bool merges_whole(int32_t id) const {
    return static_cast<size_t>(id) < merges_whole_.size() && merges_whole_[static_cast<size_t>(id)];
  }

  Status add_word(Run& run, CharSpan word) const;
  Status add_cached(Run& run, CharSpan word) const;
  // The token that is the whole word, where that is known to be the result.
  bool add_whole(Run& run, CharSpan word) const;
  // Merges a word all of whose characters are tokens; the result is in scratch.symbols, lengths are
  // characters. False for another word.
  bool merge_plain(std::u32string_view word, MergeScratch& scratch) const;
  // Tokens of such a word.
  bool add_plain(Run& run, CharSpan word) const;
  // Tokens of any word.
  Status add_general(Run& run, CharSpan word) const;
  // Puts the symbols of a word into run.scratch; lengths are bytes.
  Status general_symbols(Run& run, CharSpan word) const;
  // The tokens "<0xNN>" of all bytes of `text`, or false when one is missing.
  bool add_byte_symbols(std::string_view text, std::vector<MergeSymbol>& symbols) const;

  TokenTable table_;
  BpeSettings settings_;
  CharTokens chars_;
  PairTable rules_;
  // Pairs of one-character tokens that some merge may join across; the rules in it mean nothing.
  PairTable joinable_;
  std::vector<bool> merges_whole_;       // by id; ids beyond it are not known to
  size_t longest_token_ = 0;             // characters of the longest token to look up
  std::array<int32_t, 256> byte_ids_{};  // of "<0x00>" to "<0xFF>", or kNoToken
};

bool BpeModel::can_cut(const Run& run, CharSpan word) const {
  if (!settings_.prefix.empty() || !settings_.suffix.empty() || settings_.ignore_merges) {
    return false;
  }
  // Without an unknown token, characters that are no tokens are dropped, and the ranges of all
  // tokens behind them in the word move forward.
  if (settings_.unknown) return true;
  const auto chars = run.text.substr(word.begin, word.end - word.begin);
  return std::all_of(chars.begin(), chars.end(),
                     [&](char32_t c) { return chars_.find(c) != kNoToken; });
}

Status BpeModel::add_word(Run& run, CharSpan word) const {
  if (word.end - word.begin < kLongWord || !can_cut(run, word)) return add_cached(run, word);
  // A merge joins the last character of its left token with the first of its right token. Where no
  // merge has these two, the parts of a word cannot influence each other.
  uint32_t begin = word.begin;
  int32_t previous = chars_.find(run.text[begin]);
  for (uint32_t at = word.begin + 1; at < word.end; ++at) {
    const int32_t id = chars_.find(run.text[at]);
    const bool cut = previous != kNoToken && id != kNoToken && !joinable_.find(previous, id);
    previous = id;
    if (!cut) continue;
    VKF_CHECK(add_cached(run, {begin, at}));
    begin = at;
  }
  return add_cached(run, {begin, word.end});
}

Status BpeModel::add_cached(Run& run, CharSpan word) const {
  const WordCache::Slot slot = run.cache.find(run.text, word);
  if (slot.found) {
    run.cache.repeat(slot, word, run.pieces);
    return {};
  }
  const size_t before = run.pieces.size();
  if (!add_whole(run, word) && !add_plain(run, word)) VKF_CHECK(add_general(run, word));
  run.cache.store(slot, word, before, run.pieces.size());
  return {};
}

bool BpeModel::add_whole(Run& run, CharSpan word) const {
  if (word.end - word.begin > longest_token_) return false;
  run.bytes.clear();
  for (uint32_t at = word.begin; at < word.end; ++at) append_utf8(run.bytes, run.text[at]);
  const auto id = table_.id_of(run.bytes);
  if (!id || (!settings_.ignore_merges && !merges_whole(*id))) return false;
  run.pieces.push_back({*id, word.begin, word.end});
  return true;
}

bool BpeModel::merge_plain(std::u32string_view word, MergeScratch& scratch) const {
  if (!settings_.prefix.empty() || !settings_.suffix.empty()) return false;
  auto& symbols = scratch.symbols;
  symbols.clear();
  for (const char32_t c : word) {
    const int32_t id = chars_.find(c);
    if (id == kNoToken) return false;
    symbols.push_back({id, 1});
  }
  if (symbols.size() <= kShortWord) {
    scratch.merge_short(rules_);
  } else {
    scratch.merge(rules_);
  }
  return true;
}

bool BpeModel::add_plain(Run& run, CharSpan word) const {
  const auto chars = run.text.substr(word.begin, word.end - word.begin);
  if (!merge_plain(chars, run.scratch)) return false;
  uint32_t at = word.begin;
  for (const MergeSymbol& symbol : run.scratch.symbols) {
    run.pieces.push_back({symbol.id, at, at + symbol.length});
    at += symbol.length;
  }
  return true;
}

bool BpeModel::add_byte_symbols(std::string_view text, std::vector<MergeSymbol>& symbols) const {
  const auto id_of = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
  if (!std::all_of(text.begin(), text.end(), [&](char c) { return id_of(c) != kNoToken; })) {
    return false;
  }
  for (const char c : text) symbols.push_back({id_of(c), 1});
  return true;
}

Status BpeModel::general_symbols(Run& run, CharSpan word) const {
  auto& symbols = run.scratch.symbols;
  symbols.clear();
  MergeSymbol unknown{kNoToken, 0};  // not in `symbols` yet, as more may fuse with it
  const auto flush = [&] {
    if (unknown.id != kNoToken) symbols.push_back(unknown);
    unknown = {kNoToken, 0};
  };
  for (uint32_t at = word.begin; at < word.end; ++at) {
    std::string& token = run.bytes;
    token.clear();
    if (at > word.begin) token += settings_.prefix;
    append_utf8(token, run.text[at]);
    const auto bytes =
        static_cast<uint32_t>(token.size() - (at > word.begin ? settings_.prefix.size() : 0));
    if (at + 1 == word.end) token += settings_.suffix;
    if (const auto id = table_.id_of(token)) {
      flush();
      symbols.push_back({*id, bytes});
      continue;
    }
    // As in the tokenizers library, bytes overtake an unknown token that is being fused.
    if (settings_.byte_fallback && add_byte_symbols(token, symbols)) continue;
    if (!settings_.unknown) continue;  // the character is dropped
    const auto id = table_.id_of(*settings_.unknown);
    if (!id) {
      return invalid_argument("The character [" + token +
                              "] is not in the vocabulary, and neither is the unknown token [" +
                              *settings_.unknown + "] that should stand for it.");
    }
    if (!settings_.fuse_unknown) flush();
    unknown = {*id, unknown.length + bytes};
  }
  flush();
  return {};
}

Status BpeModel::add_general(Run& run, CharSpan word) const {
  VKF_CHECK(general_symbols(run, word));
  run.scratch.merge(rules_);
  // Lengths are bytes, which may begin and end within characters.
  uint32_t at = word.begin;  // the character that byte `begin` belongs to
  uint64_t char_begin = 0;   // its first byte
  uint64_t begin = 0;
  const auto advance = [&](uint64_t byte) {
    while (at < word.end && char_begin + utf8_length(run.text[at]) <= byte) {
      char_begin += utf8_length(run.text[at++]);
    }
  };
  for (const MergeSymbol& symbol : run.scratch.symbols) {
    const uint64_t end = begin + symbol.length;
    advance(begin);
    const uint32_t first = at;
    advance(end - 1);
    run.pieces.push_back({symbol.id, first, std::min(at + 1, word.end)});
    begin = end;
  }
  return {};
}

Status BpeModel::parse_vocabulary(const JsonRef& json) {
  VKF_ASSIGN(const auto vocabulary, json.member("vocab"));
  VKF_ASSIGN(table_, parse_token_table(vocabulary));
  for (const auto& [token, id] : vocabulary.node().items()) {
    if (token.empty() || token.size() > 4) continue;
    VKF_ASSIGN(const auto chars, decode_utf8(token, "token"));
    if (chars.size() == 1) chars_.add(chars[0], id.get<int32_t>());
  }
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    const std::string token = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
    byte_ids_[byte] = table_.id_of(token).value_or(kNoToken);
  }
  return {};
}

Status BpeModel::add_merge(const JsonRef& json, std::pair<std::string_view, std::string_view> parts,
                           uint32_t rank) {
  const auto& [left, right] = parts;
  const size_t cut = settings_.prefix.size();
  if (right.size() < cut) {
    return json.malformed("has the right part [" + std::string(right) +
                          "], which is shorter than the [continuing_subword_prefix] [" +
                          settings_.prefix + "].");
  }
  const std::string whole = std::string(left) + std::string(right.substr(cut));
  std::array<int32_t, 3> ids{};
  size_t i = 0;
  for (const std::string_view token : {left, right, std::string_view(whole)}) {
    const auto id = table_.id_of(token);
    if (!id) {
      return json.malformed("needs the token [" + std::string(token) +
                            "], which the vocabulary lacks.");
    }
    ids[i++] = *id;
  }
  rules_.set(ids[0], ids[1], {rank, ids[2]});
  if (left.empty() || right.empty()) return {};
  VKF_ASSIGN(const auto left_chars, decode_utf8(left, "token"));
  VKF_ASSIGN(const auto right_chars, decode_utf8(right, "token"));
  const int32_t last = chars_.find(left_chars.back());
  const int32_t first = chars_.find(right_chars.front());
  if (last != kNoToken && first != kNoToken) joinable_.set(last, first, {});
  return {};
}

Status BpeModel::parse_merges(const JsonRef& json) {
  VKF_ASSIGN(const auto merges, json.member("merges"));
  VKF_ASSIGN(const size_t count, merges.array_size());
  rules_.reserve(count);
  joinable_.reserve(count);
  uint32_t rank = 0;
  for (size_t i = 0; i < count; ++i) {
    const JsonRef merge = merges.element(i);
    if (merge.node().is_array()) {
      VKF_ASSIGN(const size_t parts, merge.array_size());
      if (parts != 2) {
        return merge.malformed("has " + std::to_string(parts) + " parts; a merge has 2.");
      }
      VKF_ASSIGN(const auto left, merge.element(0).text());
      VKF_ASSIGN(const auto right, merge.element(1).text());
      VKF_CHECK(add_merge(merge, {left, right}, rank++));
      continue;
    }
    VKF_ASSIGN(const auto line, merge.text());
    if (line.starts_with("#version")) continue;
    const size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos) {
      return merge.malformed("is [" + line +
                             "]; it must be two tokens with one space between them.");
    }
    const std::string_view view = line;
    VKF_CHECK(add_merge(merge, {view.substr(0, space), view.substr(space + 1)}, rank++));
  }
  return {};
}

Status BpeModel::find_whole_tokens(const JsonRef& json) {
  VKF_ASSIGN(const auto vocabulary, json.member("vocab"));
  if (settings_.ignore_merges) {
    longest_token_ = SIZE_MAX;  // every token is
    return {};
  }
  merges_whole_.resize(std::min(table_.id_limit(), kMostWholeTokens));
  MergeScratch scratch;
  for (const auto& [token, value] : vocabulary.node().items()) {
    if (token.empty() || token.size() > kLongestWholeToken) continue;
    VKF_ASSIGN(const auto chars, decode_utf8(token, "token"));
    const auto id = value.get<int32_t>();
    if (static_cast<size_t>(id) >= merges_whole_.size() || !merge_plain(chars, scratch)) continue;
    if (scratch.symbols.size() != 1 || scratch.symbols[0].id != id) continue;
    merges_whole_[static_cast<size_t>(id)] = true;
    longest_token_ = std::max(longest_token_, chars.size());
  }
  return {};
}

Result<std::unique_ptr<TokenModel>> BpeModel::parse(const JsonRef& json) {
  auto model = std::make_unique<BpeModel>();
  BpeSettings& settings = model->settings_;
  VKF_ASSIGN(const auto dropout, json.optional_member("dropout"));
  if (dropout) {
    if (!dropout->node().is_number()) return dropout->wrong_type("a number or null");
    if (dropout->node().get<double>() != 0) {
      return dropout->not_supported(
          "is " + dropout->node().dump() +
          "; it must be 0 or null, as this build does not drop merges at random. Dropout is for "
          "training, so set it to null.");
    }
  }
  VKF_ASSIGN(const auto unknown, json.optional_member("unk_token"));
  if (unknown) {
    VKF_ASSIGN(settings.unknown, unknown->text());
  }
  VKF_ASSIGN(settings.prefix, json.text_or("continuing_subword_prefix", ""));
  VKF_ASSIGN(settings.suffix, json.text_or("end_of_word_suffix", ""));
  VKF_ASSIGN(settings.fuse_unknown, json.boolean_or("fuse_unk", false));
  VKF_ASSIGN(settings.byte_fallback, json.boolean_or("byte_fallback", false));
  VKF_ASSIGN(settings.ignore_merges, json.boolean_or("ignore_merges", false));
  VKF_CHECK(model->parse_vocabulary(json));
  VKF_CHECK(model->parse_merges(json));
  VKF_CHECK(model->find_whole_tokens(json));
  return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace

Result<std::unique_ptr<TokenModel>> parse_bpe_model(const JsonRef& json, int) {
  return BpeModel::parse(json);
}

}  // namespace vkformer
