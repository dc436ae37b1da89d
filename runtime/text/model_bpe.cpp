// BPE: a word's characters, joined pair by pair by the file's merge rules.
#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/message.h"
#include "base/utf8_step.h"
#include "text/bpe_tables.h"
#include "text/byte_pair_merger.h"
#include "text/token_model.h"
#include "text/word_cache.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

// Words up to here are merged by looking at all their pairs, longer ones by a queue.
constexpr size_t kShortWord = 32;
// Words from here on are cut where no merge can join, so that their parts are found in the cache.
constexpr size_t kLongWord = 24;

// Bytes of the longest token that may be looked up whole before a word's characters are merged.
constexpr size_t kLongestWholeToken = 128;

uint32_t utf8_length(char32_t c) {
  return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

// Preconditions: not empty, valid UTF-8.
char32_t first_character(std::string_view text) {
  return utf8_value(text, utf8_step(text).length);
}
char32_t last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return first_character(text.substr(begin));
}

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
                  PieceSink& sink) const override {
    std::vector<CharSpan> cut;
    const std::span<const CharSpan> parts = cut_long_words(text, words, cut);
    std::vector<TokenPiece>& pieces = sink.pieces;
    Run run{text, pieces, WordCache(parts.size()), {}, {}};
    for (size_t i = 0; i < parts.size(); ++i) {
      sink.pass_on();
      if (const auto hash = run.cache.look_ahead(text, parts, i)) whole_.prefetch(*hash);
      const WordCache::Slot slot = run.cache.find(text, parts, i);
      if (slot.found) {
        run.cache.repeat(slot, parts[i], pieces);
        continue;
      }
      const size_t first = pieces.size();
      VKF_CHECK(add_word(run, parts[i], slot.hash));
      run.cache.store(slot, parts[i], pieces, first);
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
  Status add_merge(const JsonRef& merges, size_t index,
                   std::pair<std::string_view, std::string_view> parts, uint32_t rank);

  // The words, long ones in parts that no merge can join. They are `words` or in `parts`.
  std::span<const CharSpan> cut_long_words(std::u32string_view text,
                                           std::span<const CharSpan> words,
                                           std::vector<CharSpan>& parts) const;
  // Whether parts of a word may be merged one by one.
  bool can_cut(std::u32string_view word) const;
  // Appends the parts of a word.
  void cut_word(std::u32string_view text, CharSpan word, std::vector<CharSpan>& parts) const;
  // Finds the tokens that merging their characters gives.
  Status find_whole_tokens();

  // Tokens of a word, given its hash of WordCache.
  Status add_word(Run& run, CharSpan word, uint32_t hash) const;
  // The token that is the whole word, where that is known to be the result.
  bool add_whole(Run& run, CharSpan word, uint32_t hash) const;
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
  // Whether no merge takes what stands for characters that are no tokens.
  bool unknowns_stay_ = true;
  WholeTokens whole_;  // tokens that merging their characters gives, or with ignore_merges all
  std::array<int32_t, 256> byte_ids_{};  // of "<0x00>" to "<0xFF>", or kNoToken
};

std::span<const CharSpan> BpeModel::cut_long_words(std::u32string_view text,
                                                   std::span<const CharSpan> words,
                                                   std::vector<CharSpan>& parts) const {
  const auto is_long = [](CharSpan word) { return word.end - word.begin >= kLongWord; };
  if (std::none_of(words.begin(), words.end(), is_long)) return words;
  parts.reserve(words.size() + text.size() / 5);
  for (const CharSpan& word : words) {
    if (is_long(word) && can_cut(text.substr(word.begin, word.end - word.begin))) {
      cut_word(text, word, parts);
    } else {
      parts.push_back(word);
    }
  }
  return parts;
}

bool BpeModel::can_cut(std::u32string_view word) const {
  if (!settings_.prefix.empty() || !settings_.suffix.empty() || settings_.ignore_merges) {
    return false;
  }
  // Without an unknown token, characters that are no tokens are dropped, and the ranges of all
  // tokens after them in the word move forward.
  if (settings_.unknown) return true;
  return std::all_of(word.begin(), word.end(),
                     [&](char32_t c) { return chars_.find(c).id != kNoToken; });
}

void BpeModel::cut_word(std::u32string_view text, CharSpan word,
                        std::vector<CharSpan>& parts) const {
  // A merge joins the last character of its left token with the first of its right token. Where no
  // merge has these two, the parts of a word cannot influence each other. Unknown characters next
  // to each other may become one token.
  uint32_t begin = word.begin;
  const CharToken* previous = &chars_.find(text[begin]);
  for (uint32_t at = word.begin + 1; at < word.end; ++at) {
    const CharToken* token = &chars_.find(text[at]);
    const bool both_known = previous->id != kNoToken && token->id != kNoToken;
    const bool cut =
        both_known ? !chars_.joins(*previous, *token) : unknowns_stay_ && previous->id != token->id;
    previous = token;
    if (!cut) continue;
    parts.push_back({begin, at});
    begin = at;
  }
  parts.push_back({begin, word.end});
}

Status BpeModel::add_word(Run& run, CharSpan word, uint32_t hash) const {
  if (add_whole(run, word, hash) || add_plain(run, word)) return {};
  return add_general(run, word);
}

bool BpeModel::add_whole(Run& run, CharSpan word, uint32_t hash) const {
  const auto is_word = [&](int32_t id) {
    run.bytes.clear();
    for (uint32_t at = word.begin; at < word.end; ++at) append_utf8(run.bytes, run.text[at]);
    return table_.is_token(id, run.bytes);
  };
  const int32_t id = whole_.find(hash, is_word);
  if (id == kNoToken) return false;
  run.pieces.push_back({id, word.begin, word.end});
  return true;
}

bool BpeModel::merge_plain(std::u32string_view word, MergeScratch& scratch) const {
  if (!settings_.prefix.empty() || !settings_.suffix.empty()) return false;
  auto& symbols = scratch.symbols;
  symbols.clear();
  for (const char32_t c : word) {
    const int32_t id = chars_.find(c).id;
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
      return invalid_argument(
          message({"The character [", token,
                   "] is not in the vocabulary, and neither is the unknown token [",
                   *settings_.unknown, "] that should stand for it."}));
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
  VKF_CHECK(table_.for_each([&](const std::string& token, int32_t id) -> Status {
    if (token.empty() || token.size() > 4) return {};
    VKF_ASSIGN(const auto chars, decode_utf8(token, "token"));
    if (chars.size() == 1) chars_.add(chars[0], id);
    return {};
  }));
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    const std::string token = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
    byte_ids_[byte] = table_.id_of(token).value_or(kNoToken);
  }
  return {};
}

Status BpeModel::add_merge(const JsonRef& merges, size_t index,
                           std::pair<std::string_view, std::string_view> parts, uint32_t rank) {
  const auto& [left, right] = parts;
  const size_t cut = settings_.prefix.size();
  if (right.size() < cut) {
    return merges.element(index).malformed(
        "has the right part [" + std::string(right) +
        "], which is shorter than the [continuing_subword_prefix] [" + settings_.prefix + "].");
  }
  const std::string whole = std::string(left) + std::string(right.substr(cut));
  std::array<int32_t, 3> ids{};
  size_t i = 0;
  for (const std::string_view token : {left, right, std::string_view(whole)}) {
    const auto id = table_.id_of(token);
    if (!id) {
      return merges.element(index).malformed("needs the token [" + std::string(token) +
                                             "], which the vocabulary lacks.");
    }
    ids[i++] = *id;
  }
  rules_.set(ids[0], ids[1], {rank, ids[2]});
  const auto stands_in = [&](std::string_view token) {
    return token == settings_.unknown || (token.size() == 6 && token.starts_with("<0x"));
  };
  unknowns_stay_ = unknowns_stay_ && !stands_in(left) && !stands_in(right);
  if (left.empty() || right.empty()) return {};
  const char32_t last = last_character(left);
  const char32_t first = first_character(right);
  if (chars_.find(last).id != kNoToken && chars_.find(first).id != kNoToken) {
    chars_.add_join(last, first);
  }
  return {};
}

// What is wrong with a merge that is neither a string nor two of them.
Error bad_merge(const JsonRef& merge) {
  if (!merge.node().is_array()) return merge.text().error();
  if (merge.node().size() != 2) {
    return merge.malformed("has " + std::to_string(merge.node().size()) + " parts; a merge has 2.");
  }
  const auto left = merge.element(0).text();
  return left ? merge.element(1).text().error() : left.error();
}

Status BpeModel::parse_merges(const JsonRef& json) {
  VKF_ASSIGN(const auto merges, json.member("merges"));
  VKF_ASSIGN(const size_t count, merges.array_size());
  rules_.reserve(count);
  chars_.reserve_joins(count);
  uint32_t rank = 0;
  for (size_t i = 0; i < count; ++i) {
    // Places are named where something is wrong only: to name them all costs more than the merges.
    const auto& node = merges.node()[i];
    if (node.is_array() && node.size() == 2 && node[0].is_string() && node[1].is_string()) {
      const auto& left = node[0].get_ref<const std::string&>();
      const auto& right = node[1].get_ref<const std::string&>();
      VKF_CHECK(add_merge(merges, i, {left, right}, rank++));
      continue;
    }
    if (!node.is_string()) return bad_merge(merges.element(i));
    const std::string_view line = node.get_ref<const std::string&>();
    if (line.starts_with("#version")) continue;
    const size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos) {
      return merges.element(i).malformed("is [" + std::string(line) +
                                         "]; it must be two tokens with one space between them.");
    }
    VKF_CHECK(add_merge(merges, i, {line.substr(0, space), line.substr(space + 1)}, rank++));
  }
  return {};
}

Status BpeModel::find_whole_tokens() {
  whole_.reserve(table_.size());
  MergeScratch scratch;
  std::u32string chars;  // memory for all tokens
  return table_.for_each([&](const std::string& token, int32_t id) -> Status {
    if (token.empty() || (token.size() > kLongestWholeToken && !settings_.ignore_merges)) return {};
    VKF_ASSIGN(chars, decode_utf8(token, "token", std::move(chars)));
    if (!settings_.ignore_merges) {
      if (!merge_plain(chars, scratch)) return {};
      if (scratch.symbols.size() != 1 || scratch.symbols[0].id != id) return {};
    }
    whole_.add(chars, id);
    return {};
  });
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
  VKF_CHECK(model->find_whole_tokens());
  return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace

Result<std::unique_ptr<TokenModel>> parse_bpe_model(const JsonRef& json, int) {
  return BpeModel::parse(json);
}

}  // namespace vkformer
