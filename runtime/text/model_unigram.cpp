// Unigram: a word becomes the tokens whose log-probabilities have the greatest sum (Kudo,
// "Subword Regularization", 2018; the search is Viterbi, 1967).
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "text/char_trie.h"
#include "text/token_model.h"
#include "text/utf8.h"
#include "text/word_cache.h"

namespace vkformer {
namespace {

// What a character that no token covers costs, beyond the least likely token.
constexpr double kUnknownPenalty = 10.0;

// What a vocabulary comes to.
struct UnigramVocabulary {
  TokenTable table;
  CharTrie trie;               // tokens and their ids
  std::vector<double> scores;  // log-probabilities by id
  double lowest = std::numeric_limits<double>::infinity();
};

struct UnigramSettings {
  int32_t unknown = -1;  // id of the unknown token, -1 for none
  // Tokens of the bytes 0 to 255; empty when some byte has none or the file does not ask for it.
  std::vector<int32_t> byte_ids;
};

// The best way to reach a place of the word.
struct BestPath {
  double score = 0.0;
  int32_t id = 0;  // its last token
  uint32_t begin = kUnreached;

  static constexpr uint32_t kUnreached = 0xFFFFFFFF;

  // A path of the same score does not replace an earlier one.
  void offer(double candidate, int32_t token, uint32_t from) {
    if (begin != kUnreached && !(candidate > score)) return;
    score = candidate;
    id = token;
    begin = from;
  }
};

class UnigramModel final : public TokenModel {
 public:
  UnigramModel(UnigramVocabulary vocabulary, UnigramSettings settings)
      : vocabulary_(std::move(vocabulary)), settings_(std::move(settings)) {}

  Status tokenize(std::u32string_view text, std::span<const CharSpan> words,
                  std::vector<TokenPiece>& pieces) const override {
    Scratch scratch;
    WordCache cache(words.size());
    for (const CharSpan& word : words) {
      const WordCache::Slot slot = cache.find(text, word);
      if (slot.found) {
        cache.repeat(slot, word, pieces);
        continue;
      }
      const size_t first = pieces.size();
      const auto chars = text.substr(word.begin, word.end - word.begin);
      VKF_CHECK(find_best_path(chars, scratch));
      append_pieces(chars, word.begin, scratch, pieces);
      cache.store(slot, word, first, pieces.size());
    }
    return {};
  }

  const TokenTable& table() const override { return vocabulary_.table; }

 private:
  struct Scratch {
    std::vector<uint32_t> codes;
    std::vector<BestPath> paths;  // by the place where they end
    std::vector<uint32_t> cuts;   // places on the best path, last first
  };

  // Fills scratch.paths for `word`.
  Status find_best_path(std::u32string_view word, Scratch& scratch) const {
    const CharTrie& trie = vocabulary_.trie;
    const auto size = static_cast<uint32_t>(word.size());
    scratch.codes.resize(size);
    for (uint32_t i = 0; i < size; ++i) scratch.codes[i] = trie.code_of(word[i]);
    scratch.paths.assign(size + 1, BestPath());
    BestPath* const paths = scratch.paths.data();
    const double unknown_score = vocabulary_.lowest - kUnknownPenalty;
    for (uint32_t begin = 0; begin < size; ++begin) {
      const double so_far = paths[begin].score;
      uint32_t node = trie.next(CharTrie::root(), scratch.codes[begin]);
      const bool known = node != CharTrie::kNoNode && trie.value(node) != CharTrie::kNoValue;
      for (uint32_t end = begin + 1; node != CharTrie::kNoNode; ++end) {
        const int32_t id = trie.value(node);
        if (id != CharTrie::kNoValue) {
          paths[end].offer(so_far + vocabulary_.scores[static_cast<size_t>(id)], id, begin);
        }
        if (end == size) break;
        node = trie.next(node, scratch.codes[end]);
      }
      if (known) continue;
      // Every place must stay within reach, and a single character always may be unknown.
      paths[begin + 1].offer(so_far + unknown_score, settings_.unknown, begin);
      if (paths[begin + 1].id < 0) return missing_unknown(word[begin]);
    }
    return {};
  }

  Error missing_unknown(char32_t c) const {
    return invalid_argument("The character [" + encode_utf8({&c, 1}) +
                            "] is not in the vocabulary, and the [model] of the tokenizer file "
                            "names no unknown token (unk_id) that could stand for it.");
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
  vocabulary.scores.reserve(count);
  std::vector<CharTrie::Entry> entries;
  entries.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const nlohmann::json& entry = json.node()[i];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      return json.element(i).malformed("must be a list of a token and its score.");
    }
    const auto* token = entry[0].get_ptr<const std::string*>();
    const auto score = entry[1].get<double>();
    vocabulary.scores.push_back(score);
    vocabulary.lowest = std::min(vocabulary.lowest, score);
    VKF_ASSIGN(auto chars,
               decode_utf8(*token, "token " + std::to_string(i) + " of " + json.path()));
    entries.push_back({std::move(chars), static_cast<int32_t>(i)});
  }
  // A token that is listed twice has the last one's id, though both ids stand for it: the table
  // finds what was added first, as long as it does not grow.
  vocabulary.table.reserve(count);
  for (size_t i = count; i-- > 0;) {
    vocabulary.table.add(json.node()[i][0].get<std::string>(), static_cast<int32_t>(i));
  }
  vocabulary.trie = CharTrie(std::move(entries));
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
    if (vocabulary.scores.empty()) {
      return unknown->malformed("names an unknown token, but the vocabulary is empty.");
    }
    const auto last = static_cast<int64_t>(vocabulary.scores.size()) - 1;
    VKF_ASSIGN(const int64_t id, unknown->integer(0, last));
    settings.unknown = static_cast<int32_t>(id);
  }
  VKF_ASSIGN(const bool byte_fallback, json.boolean_or("byte_fallback", false));
  if (byte_fallback) settings.byte_ids = byte_tokens(vocabulary.table);
  return std::unique_ptr<TokenModel>(
      std::make_unique<UnigramModel>(std::move(vocabulary), std::move(settings)));
}

}  // namespace vkformer
