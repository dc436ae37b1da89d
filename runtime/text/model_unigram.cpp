// Unigram: a word becomes the tokens whose log-probabilities have the greatest sum (Kudo,
// "Subword Regularization", 2018; the search is Viterbi, 1967).
#include <algorithm>
#include <bitset>
#include <limits>

#include "base/check.h"
#include "base/message.h"
#include "text/token_model.h"
#include "text/word_cache.h"
#include "unicode/char_trie.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

// What a character that no token covers costs, beyond the least likely token.
constexpr double kUnknownPenalty = 10.0;

// Where no token has two characters next to each other, every way to cut a word passes between
// them. Characters go by their codes in the trie.
class NeighborTable {
 public:
  NeighborTable() : seen_(kCommon) {}
  // Some token has these characters next to each other.
  void add(uint32_t left, uint32_t right) {
    if (left < kCommon && right < kCommon) seen_[left].set(right);
  }
  // A character is a token.
  void add_token(uint32_t code) {
    if (code < kCommon) alone_.set(code);
  }
  // Whether a word may be cut between two characters. Not between two that are no tokens: unknown
  // ones next to each other become one piece.
  bool may_cut(uint32_t left, uint32_t right) const {
    if (left >= kCommon || right >= kCommon || seen_[left].test(right)) return false;
    return alone_.test(left) || alone_.test(right);
  }

 private:
  static constexpr uint32_t kCommon = 256;  // rarer characters are not looked at

  std::vector<std::bitset<kCommon>> seen_;  // a bit per pair
  std::bitset<kCommon> alone_;              // characters that are tokens
};

// What a vocabulary comes to.
struct UnigramVocabulary {
  TokenTable table;
  CharTrie trie;               // tokens and their ids
  std::vector<double> scores;  // log-probabilities by id + 1; the first one is of no token
  double lowest = std::numeric_limits<double>::infinity();
  double highest = 0.0;
  NeighborTable neighbors;
};

struct UnigramSettings {
  int32_t unknown = -1;  // id of the unknown token, -1 for none
  // Tokens of the bytes 0 to 255; empty when some byte has none or the file does not ask for it.
  std::vector<int32_t> byte_ids;
};

// The score of what cannot be.
constexpr double kNever = -std::numeric_limits<double>::infinity();

// Scores from here on add up to finite ones over the longest text.
constexpr double kLowestScore = -1e290;

// Parts of a word are searched one by one, each from a score of 0, where rounding surely decides
// nothing. Two ways to a place must be this far apart. With scores and lengths up to these, a sum
// is off by less than a tenth of it.
constexpr double kTie = 1e-5;
constexpr double kMostCutScore = 1e3;
constexpr uint32_t kMostCutLength = 4096;

// Sets the hashes of parts apart that do not begin a word.
constexpr uint32_t kLaterPart = 0x9E3779B9u;

// The best way to reach a place of the word.
struct BestPath {
  double score = kNever;
  int32_t id = 0;  // its last token
  uint32_t begin = 0;

  // A path of the same score does not replace an earlier one. Returns whether they are tied, but
  // for rounding.
  bool offer(double candidate, int32_t token, uint32_t from) {
    const double gain = candidate - score;
    if (!(gain > 0.0)) return gain > -kTie;
    score = candidate;
    id = token;
    begin = from;
    return gain < kTie;
  }
};

class UnigramModel final : public TokenModel {
 public:
  UnigramModel(UnigramVocabulary vocabulary, UnigramSettings settings)
      : vocabulary_(std::move(vocabulary)), settings_(std::move(settings)) {}

  Status tokenize(std::u32string_view text, std::span<const CharSpan> words,
                  PieceSink& sink) const override {
    Run run{text, sink.pieces, WordCache(words.size()), {}, {}};
    for (size_t i = 0; i < words.size(); ++i) {
      sink.pass_on();
      run.cache.look_ahead(text, words, i);
      const WordCache::Slot slot = run.cache.find(text, words, i);
      if (slot.found) {
        run.cache.repeat(slot, words[i], run.pieces);
        continue;
      }
      const size_t first = run.pieces.size();
      VKF_CHECK(add_word(run, words[i]));
      run.cache.store(slot, words[i], run.pieces, first);
    }
    return {};
  }

  const TokenTable& table() const override { return vocabulary_.table; }

 private:
  struct Scratch {
    std::vector<uint32_t> codes;
    std::vector<BestPath> paths;  // by the place where they end
    std::vector<uint32_t> cuts;   // places on the best path, last first
    bool tied = false;            // rounding may have decided between two paths
  };
  // One call.
  struct Run {
    std::u32string_view text;
    std::vector<TokenPiece>& pieces;
    WordCache cache;
    Scratch scratch;
    std::vector<CharSpan> parts;
  };

  // Fills run.parts with the parts of a word that every path passes between.
  void cut_word(Run& run, CharSpan word) const {
    run.parts.clear();
    uint32_t begin = word.begin;
    if (vocabulary_.lowest >= -kMostCutScore && vocabulary_.highest <= kMostCutScore &&
        word.end - word.begin <= kMostCutLength) {
      const CharTrie& trie = vocabulary_.trie;
      uint32_t previous = trie.code_of(run.text[begin]);
      for (uint32_t at = begin + 1; at < word.end; ++at) {
        const uint32_t code = trie.code_of(run.text[at]);
        if (vocabulary_.neighbors.may_cut(previous, code)) {
          run.parts.push_back({begin, at});
          begin = at;
        }
        previous = code;
      }
    }
    run.parts.push_back({begin, word.end});
  }

  // Appends the tokens of a word, by parts that have come before where rounding allows it.
  Status add_word(Run& run, CharSpan word) const {
    cut_word(run, word);
    if (run.parts.size() == 1) return search(run, word);
    const size_t before = run.pieces.size();
    for (const CharSpan part : run.parts) {
      // The first part starts from a score of 0 as a whole word does; others are kept apart.
      const bool is_first = part.begin == word.begin;
      const uint32_t hash = WordCache::hash_of(run.text, part) ^ (is_first ? 0u : kLaterPart);
      const WordCache::Slot slot = run.cache.find(run.text, part, hash);
      if (slot.found) {
        run.cache.repeat(slot, part, run.pieces);
        continue;
      }
      const size_t first = run.pieces.size();
      VKF_CHECK(search(run, part));
      if (run.scratch.tied && !is_first) {
        run.pieces.resize(before);
        return search(run, word);
      }
      run.cache.store(slot, part, run.pieces, first);
    }
    return {};
  }

  // Appends the tokens of a word, or of a part of one as if it were a word.
  Status search(Run& run, CharSpan word) const {
    const auto chars = run.text.substr(word.begin, word.end - word.begin);
    VKF_CHECK(find_best_path(chars, run.scratch));
    append_pieces(chars, word.begin, run.scratch, run.pieces);
    return {};
  }

  // Fills scratch.paths for `word`.
  Status find_best_path(std::u32string_view word, Scratch& scratch) const {
    const CharTrie& trie = vocabulary_.trie;
    const auto size = static_cast<uint32_t>(word.size());
    scratch.codes.resize(size);
    for (uint32_t i = 0; i < size; ++i) scratch.codes[i] = trie.code_of(word[i]);
    scratch.paths.assign(size + 1, BestPath());
    BestPath* const paths = scratch.paths.data();
    paths[0].score = 0.0;
    const uint32_t* const codes = scratch.codes.data();
    const double* const scores = vocabulary_.scores.data() + 1;
    bool tied = false;
    const double unknown_score = vocabulary_.lowest - kUnknownPenalty;
    for (uint32_t begin = 0; begin < size; ++begin) {
      const double so_far = paths[begin].score;
      uint32_t node = trie.next(CharTrie::root(), codes[begin]);
      const bool known = node != CharTrie::kNoNode && trie.value(node) != CharTrie::kNoValue;
      for (uint32_t end = begin + 1; node != CharTrie::kNoNode; ++end) {
        const int32_t id = trie.value(node);
        static_assert(CharTrie::kNoValue == -1);  // has the score kNever
        tied |= paths[end].offer(so_far + scores[id], id, begin);
        if (end == size) break;
        node = trie.next(node, codes[end]);
      }
      if (known) continue;
      // Every place must stay within reach, and a single character always may be unknown.
      tied |= paths[begin + 1].offer(so_far + unknown_score, settings_.unknown, begin);
      if (paths[begin + 1].id < 0) return missing_unknown(word[begin]);
    }
    scratch.tied = tied;
    return {};
  }

  Error missing_unknown(char32_t c) const {
    return invalid_argument(
        message({"The character [", encode_utf8({&c, 1}),
                 "] is not in the vocabulary, and the [model] of the tokenizer file names no "
                 "unknown token (unk_id) that could stand for it."}));
  }

  // The pieces along the best path. Unknown pieces next to each other are one.
  void append_pieces(std::u32string_view word, uint32_t origin, Scratch& scratch,
                     std::vector<TokenPiece>& pieces) const {
    scratch.cuts.clear();
    bool after_unknown = false;
    for (auto end = static_cast<uint32_t>(word.size()); end > 0; end = scratch.paths[end].begin) {
      const bool unknown = scratch.paths[end].id == settings_.unknown;
      if (!(unknown && after_unknown)) scratch.cuts.push_back(end);
      after_unknown = unknown;
    }
    uint32_t begin = 0;
    for (auto cut = scratch.cuts.rbegin(); cut != scratch.cuts.rend(); ++cut) {
      const BestPath& last = scratch.paths[*cut];
      if (last.id != settings_.unknown) {
        pieces.push_back({last.id, origin + begin, origin + *cut});
      } else {
        append_unknown(word.substr(begin, *cut - begin), origin + begin, pieces);
      }
      begin = *cut;
    }
  }

  void append_unknown(std::u32string_view text, uint32_t begin,
                      std::vector<TokenPiece>& pieces) const {
    const uint32_t end = begin + static_cast<uint32_t>(text.size());
    // Joined unknown pieces may spell a token after all, for one the unknown token itself.
    const int32_t known = vocabulary_.trie.find(text);
    if (known != CharTrie::kNoValue) {
      pieces.push_back({known, begin, end});
    } else if (settings_.byte_ids.empty()) {
      pieces.push_back({settings_.unknown, begin, end, true});
    } else {
      append_bytes(text, begin, pieces);
    }
  }

  // A token per byte, each with the range of the whole text; the unknown token if a byte has none.
  void append_bytes(std::u32string_view text, uint32_t begin,
                    std::vector<TokenPiece>& pieces) const {
    const uint32_t end = begin + static_cast<uint32_t>(text.size());
    const size_t first = pieces.size();
    for (const char byte : encode_utf8(text)) {
      const int32_t id = settings_.byte_ids[static_cast<unsigned char>(byte)];
      if (id < 0) {
        pieces.resize(first);
        pieces.push_back({settings_.unknown, begin, end, true});
        return;
      }
      pieces.push_back({id, begin, end});
    }
  }

  UnigramVocabulary vocabulary_;
  UnigramSettings settings_;
};

// Reads [["token", score], ...].
Result<UnigramVocabulary> parse_vocabulary(const JsonRef& json) {
  VKF_ASSIGN(const size_t count, json.array_size());
  if (count > INT32_MAX) {
    return json.malformed("has " + std::to_string(count) + " tokens; the limit is " +
                          std::to_string(INT32_MAX) + ".");
  }
  UnigramVocabulary vocabulary;
  vocabulary.scores.reserve(count + 1);
  vocabulary.scores.push_back(kNever);
  std::vector<CharTrie::Entry> entries;
  entries.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const nlohmann::json& entry = json.node()[i];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      return json.element(i).malformed("must be a list of a token and its score.");
    }
    const auto* token = entry[0].get_ptr<const std::string*>();
    const auto score = entry[1].get<double>();
    if (!(score >= kLowestScore)) {
      return json.element(i).malformed("has the score " + entry[1].dump() +
                                       "; the lowest that can be added up is -1e290.");
    }
    vocabulary.scores.push_back(score);
    vocabulary.lowest = std::min(vocabulary.lowest, score);
    vocabulary.highest = std::max(vocabulary.highest, score);
    VKF_ASSIGN(auto chars,
               decode_utf8(*token, "token " + std::to_string(i) + " of " + json.path()));
    entries.push_back({std::move(chars), static_cast<int32_t>(i)});
  }
  // A token that is listed twice has the last one's id, though both ids stand for it. The table
  // finds what was added first, as long as it does not grow.
  vocabulary.table.reserve(count);
  for (size_t i = count; i-- > 0;) {
    vocabulary.table.add(json.node()[i][0].get<std::string>(), static_cast<int32_t>(i));
  }
  vocabulary.trie = CharTrie(entries);
  const CharTrie& trie = vocabulary.trie;
  for (const CharTrie::Entry& entry : entries) {
    const auto code_at = [&](size_t i) { return trie.code_of(entry.text[i]); };
    if (entry.text.size() == 1) vocabulary.neighbors.add_token(code_at(0));
    for (size_t i = 1; i < entry.text.size(); ++i) {
      vocabulary.neighbors.add(code_at(i - 1), code_at(i));
    }
  }
  return vocabulary;
}

std::vector<int32_t> byte_tokens(const TokenTable& table) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::vector<int32_t> ids;
  for (size_t byte = 0; byte < 256; ++byte) {
    const std::string token = {'<', '0', 'x', kDigits[byte / 16], kDigits[byte % 16], '>'};
    ids.push_back(table.id_of(token).value_or(-1));
  }
  return ids;
}

}  // namespace

Result<std::unique_ptr<TokenModel>> parse_unigram_model(const JsonRef& json, int) {
  VKF_ASSIGN(const auto list, json.member("vocab"));
  VKF_ASSIGN(auto vocabulary, parse_vocabulary(list));
  UnigramSettings settings;
  VKF_ASSIGN(const auto unknown, json.optional_member("unk_id"));
  if (unknown) {
    if (vocabulary.scores.size() == 1) {
      return unknown->malformed("names an unknown token, but the vocabulary is empty.");
    }
    const auto last = static_cast<int64_t>(vocabulary.scores.size()) - 2;
    VKF_ASSIGN(const int64_t id, unknown->integer(0, last));
    settings.unknown = static_cast<int32_t>(id);
  }
  VKF_ASSIGN(const bool byte_fallback, json.boolean_or("byte_fallback", false));
  if (byte_fallback) settings.byte_ids = byte_tokens(vocabulary.table);
  return std::unique_ptr<TokenModel>(
      std::make_unique<UnigramModel>(std::move(vocabulary), std::move(settings)));
}

}  // namespace vkformer
