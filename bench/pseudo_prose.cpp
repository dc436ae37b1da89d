#include "pseudo_prose.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <queue>
#include <random>
#include <set>
#include <string_view>
#include <utility>

namespace vkformer::bench {
namespace {

constexpr const char* kCommonWords[] = {
    "the",   "of",    "and",   "to",    "a",     "in",   "is",   "that",   "it",      "was",
    "for",   "he",    "as",    "with",  "on",    "be",   "by",   "his",    "at",      "i",
    "are",   "this",  "not",   "but",   "had",   "have", "from", "or",     "which",   "you",
    "one",   "an",    "were",  "her",   "she",   "all",  "they", "there",  "been",    "will",
    "their", "would", "when",  "who",   "has",   "more", "no",   "if",     "out",     "so",
    "said",  "what",  "its",   "about", "into",  "than", "them", "can",    "only",    "other",
    "new",   "some",  "could", "time",  "these", "two",  "may",  "then",   "do",      "first",
    "any",   "my",    "now",   "such",  "like",  "our",  "over", "man",    "me",      "even",
    "most",  "made",  "after", "also",  "did",   "many", "must", "before", "back",    "through",
    "years", "where", "much",  "your",  "way",   "well", "down", "should", "because", "each"};
constexpr std::string_view kOnsets[] = {"b", "br", "c",  "ch", "d", "f", "g",  "h", "l",  "m",
                                        "n", "p",  "pr", "r",  "s", "t", "tr", "v", "st", ""};
constexpr std::string_view kVowels[] = {"a", "e", "i", "o", "u", "ea", "ou", "io"};
constexpr std::string_view kCodas[] = {"", "", "n", "r", "s", "t", "l", "nt", "ng", "d"};

// std distributions differ between libraries; this does not.
size_t pick(std::mt19937& random, size_t count) {
  return static_cast<size_t>(static_cast<uint64_t>(random()) * count >> 32);
}

// How often a word of a rank comes, by Zipf's law as Mandelbrot has it ("An informational theory of
// the statistical structure of language", 1953). Beyond the words that everybody uses it falls
// twice as steeply (Ferrer i Cancho and Sole, "Two regimes in the frequency of words", 2001). With
// these constants 1 MB has about as many distinct words as English books have.
double frequency_of(size_t rank) {
  constexpr double kShift = 2.7;
  constexpr double kCommonRanks = 5000.0;
  const double place = static_cast<double>(rank) + kShift;
  return place < kCommonRanks ? 1.0 / place : kCommonRanks / (place * place);
}

// Words as symbols, and where each pair of neighbors occurs.
class PairTrainer {
 public:
  PairTrainer(const std::vector<std::string>& words, const std::string& space) {
    for (size_t rank = 0; rank < words.size(); ++rank) {
      Word word{{symbol_of(space)}, frequency_of(rank)};
      for (const char c : words[rank]) word.symbols.push_back(symbol_of(std::string(1, c)));
      words_.push_back(std::move(word));
    }
    out_.frequencies.assign(out_.symbols.size(), 0.0);
    for (const Word& word : words_) {
      for (const int symbol : word.symbols) {
        out_.frequencies[static_cast<size_t>(symbol)] += word.frequency;
      }
    }
    for (size_t i = 0; i < words_.size(); ++i) count(i, 1.0);
    for (const auto& [pair, place] : pairs_) queue_.push({place.frequency, pair});
  }

  TrainedPairs run(size_t symbols) {
    while (out_.symbols.size() < symbols && !queue_.empty()) {
      const auto [frequency, pair] = queue_.top();
      queue_.pop();
      if (pairs_[pair].frequency != frequency) continue;  // counted anew since
      if (frequency <= kLeast) break;
      merge(pair, frequency);
    }
    return std::move(out_);
  }

 private:
  using Pair = std::pair<int, int>;
  struct Word {
    std::vector<int> symbols;
    double frequency = 0.0;
  };
  struct Place {
    double frequency = 0.0;
    std::set<size_t> words;
  };
  static constexpr double kLeast = 1e-9;  // what rounding may leave of a pair that is gone

  int symbol_of(const std::string& text) {
    const auto [found, is_new] = ids_.emplace(text, static_cast<int>(out_.symbols.size()));
    if (is_new) out_.symbols.push_back(text);
    return found->second;
  }

  // Adds (sign 1) or takes away (-1) the pairs of a word.
  void count(size_t index, double sign) {
    const Word& word = words_[index];
    for (size_t i = 0; i + 1 < word.symbols.size(); ++i) {
      const Pair pair(word.symbols[i], word.symbols[i + 1]);
      Place& place = pairs_[pair];
      place.frequency += sign * word.frequency;
      if (sign > 0.0) {
        place.words.insert(index);
      } else {
        place.words.erase(index);
      }
      changed_.insert(pair);
    }
  }

  void merge(Pair pair, double frequency) {
    const int merged = symbol_of(out_.symbols[static_cast<size_t>(pair.first)] +
                                 out_.symbols[static_cast<size_t>(pair.second)]);
    out_.merges.push_back(pair);
    out_.frequencies.resize(out_.symbols.size(), 0.0);
    out_.frequencies[static_cast<size_t>(merged)] += frequency;
    changed_.clear();
    const std::set<size_t> places = pairs_[pair].words;
    for (const size_t index : places) {
      count(index, -1.0);
      std::vector<int>& symbols = words_[index].symbols;
      size_t kept = 0;
      for (size_t i = 0; i < symbols.size(); ++i) {
        const bool here = i + 1 < symbols.size() && Pair(symbols[i], symbols[i + 1]) == pair;
        symbols[kept++] = here ? merged : symbols[i];
        if (here) ++i;
      }
      symbols.resize(kept);
      count(index, 1.0);
    }
    pairs_.erase(pair);
    changed_.erase(pair);
    for (const Pair& one : changed_) queue_.push({pairs_[one].frequency, one});
  }

  std::vector<Word> words_;
  std::map<std::string, int> ids_;
  std::map<Pair, Place> pairs_;
  std::set<Pair> changed_;
  std::priority_queue<std::pair<double, Pair>> queue_;
  TrainedPairs out_;
};

// JSON of the vocabulary {"token": 0, ...}. Tokens need no escapes.
class Vocabulary {
 public:
  // Passes over one that is there already.
  void add(const std::string& token) {
    if (!known_.insert(token).second) return;
    json_ +=
        (known_.size() == 1 ? "\"" : ", \"") + token + "\": " + std::to_string(known_.size() - 1);
  }
  size_t size() const { return known_.size(); }
  std::string json() const { return "{" + json_ + "}"; }

 private:
  std::set<std::string> known_;
  std::string json_;
};

// The merges as JSON strings. Symbols need no escapes.
std::string merge_list(const TrainedPairs& pairs) {
  std::string merges;
  for (const auto& [left, right] : pairs.merges) {
    merges += (merges.empty() ? "\"" : ", \"") + pairs.symbols[static_cast<size_t>(left)] + " " +
              pairs.symbols[static_cast<size_t>(right)] + "\"";
  }
  return merges;
}

constexpr std::string_view kPunctuation = ".,;:!?'()-";

}  // namespace

std::vector<std::string> make_words(size_t count) {
  std::vector<std::string> words(std::begin(kCommonWords), std::end(kCommonWords));
  std::set<std::string> known(words.begin(), words.end());
  std::mt19937 random(1);
  std::vector<std::string> made;
  while (words.size() + made.size() < count) {
    std::string word;
    const size_t syllables = 1 + pick(random, 2) + pick(random, 3);
    for (size_t i = 0; i < syllables; ++i) {
      word += kOnsets[pick(random, std::size(kOnsets))];
      word += kVowels[pick(random, std::size(kVowels))];
      word += kCodas[pick(random, std::size(kCodas))];
    }
    if (known.insert(word).second) made.push_back(word);
  }
  // Frequent words are short, by and large.
  std::stable_sort(made.begin(), made.end(), [](const std::string& a, const std::string& b) {
    return a.size() / 4 < b.size() / 4;
  });
  words.insert(words.end(), made.begin(), made.end());
  return words;
}

std::string make_prose(const std::vector<std::string>& words, size_t bytes) {
  std::vector<double> below(words.size());  // how often a word of this rank or before comes
  double sum = 0.0;
  for (size_t i = 0; i < words.size(); ++i) below[i] = sum += frequency_of(i);
  std::mt19937 random(2);
  std::string prose;
  while (prose.size() < bytes) {
    const size_t length = 5 + pick(random, 20);
    for (size_t i = 0; i < length; ++i) {
      const double at = sum * (static_cast<double>(random()) / 4294967296.0);
      const auto rank = std::upper_bound(below.begin(), below.end(), at) - below.begin();
      std::string word = words[std::min(static_cast<size_t>(rank), words.size() - 1)];
      if (i == 0 || pick(random, 40) == 0) word[0] = static_cast<char>(word[0] - 'a' + 'A');
      prose += word;
      if (i + 1 == length) {
        prose += pick(random, 8) == 0 ? "?" : ".";
      } else if (pick(random, 9) == 0) {
        prose += ",";
      }
      prose += i + 1 == length && pick(random, 6) == 0 ? '\n' : ' ';
    }
  }
  return prose;
}

TrainedPairs train_pairs(const std::vector<std::string>& words, const std::string& space,
                         size_t symbols) {
  return PairTrainer(words, space).run(symbols);
}

std::string word_piece_file(const std::vector<std::string>& words, size_t vocab_size) {
  Vocabulary vocab;
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) vocab.add(token);
  for (const char c : kPunctuation) vocab.add(std::string(1, c));
  for (char c = 'a'; c <= 'z'; ++c) vocab.add(std::string(1, c));
  const TrainedPairs pairs = train_pairs(words, " ", vocab_size);
  for (const std::string& symbol : pairs.symbols) {
    if (vocab.size() >= vocab_size || symbol == " ") continue;
    vocab.add(symbol[0] == ' ' ? symbol.substr(1) : "##" + symbol);
  }
  return R"({"normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type":)"
         R"( "BertPreTokenizer"}, "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3],)"
         R"( "cls": ["[CLS]", 2]}, "decoder": {"type": "WordPiece"}, "added_tokens": [)"
         R"({"id": 2, "content": "[CLS]", "special": true},)"
         R"( {"id": 3, "content": "[SEP]", "special": true}], "model": {"type": "WordPiece",)"
         R"( "vocab": )" +
         vocab.json() + "}}";
}

std::string byte_level_bpe_file(const std::vector<std::string>& words, size_t vocab_size) {
  Vocabulary vocab;
  // The byte alphabet: two blocks of printable bytes, and U+0100 on for the others.
  for (unsigned c = 0x21; c <= 0x143; ++c) {
    if ((c > 0x7E && c < 0xA1) || c == 0xAD) continue;
    if (c < 0x80) {
      vocab.add(std::string(c == '"' || c == '\\' ? "\\" : "") + static_cast<char>(c));
    } else {
      vocab.add({static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))});
    }
  }
  const std::string space = "\xC4\xA0";  // U+0120 stands for the space
  const TrainedPairs pairs = train_pairs(words, space, vocab_size - vocab.size());
  for (const std::string& symbol : pairs.symbols) vocab.add(symbol);
  return R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},)"
         R"( "post_processor": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets":)"
         R"( false}, "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": )" +
         vocab.json() + R"(, "merges": [)" + merge_list(pairs) + "]}}";
}

std::string sentence_piece_bpe_file(const std::vector<std::string>& words, size_t vocab_size) {
  const std::string space = "\xE2\x96\x81";  // U+2581 stands for the space
  Vocabulary vocab;
  vocab.add("<unk>");
  for (unsigned byte = 0; byte < 256; ++byte) {
    char token[8];
    std::snprintf(token, sizeof token, "<0x%02X>", byte);
    vocab.add(token);
  }
  for (const char c : kPunctuation) vocab.add(std::string(1, c));
  for (char c = 'A'; c <= 'Z'; ++c) vocab.add(std::string(1, c));
  const TrainedPairs pairs = train_pairs(words, space, vocab_size - vocab.size());
  for (const std::string& symbol : pairs.symbols) vocab.add(symbol);
  return R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": ")" +
         space + R"("}, {"type": "Replace", "pattern": {"String": " "}, "content": ")" + space +
         R"("}]}, "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern":)" +
         R"( {"String": ")" + space + R"("}, "content": " "}, {"type": "ByteFallback"}, {"type":)" +
         R"( "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}, "model": {"type":)" +
         R"( "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "vocab": )" +
         vocab.json() + R"(, "merges": [)" + merge_list(pairs) + "]}}";
}

std::string unigram_file(const std::vector<std::string>& words, size_t vocab_size) {
  const std::string space = "\xE2\x96\x81";  // U+2581 stands for the space
  const TrainedPairs pairs = train_pairs(words, space, vocab_size - 64);
  double sum = 0.0;
  for (const double frequency : pairs.frequencies) sum += frequency;
  std::string vocab = R"(["<unk>", 0])";
  const auto add = [&](const std::string& piece, double score) {
    char number[32];
    std::snprintf(number, sizeof number, "%.6f", score);
    vocab += ", [\"" + piece + "\", " + number + "]";
  };
  for (size_t i = 0; i < pairs.symbols.size(); ++i) {
    add(pairs.symbols[i], std::log(pairs.frequencies[i] / sum));
  }
  for (char c = 'A'; c <= 'Z'; ++c) add(std::string(1, c), -12.0);
  for (const char c : kPunctuation) add(std::string(1, c), -6.0);
  return R"({"normalizer": {"type": "NFKC"}, "pre_tokenizer": {"type": "Metaspace", "replacement":)"
         " \"" +
         space +
         R"(", "prepend_scheme": "always"}, "decoder": {"type": "Metaspace", "replacement": ")" +
         space + R"(", "prepend_scheme": "always"}, "model": {"type": "Unigram", "unk_id": 0,)" +
         R"( "vocab": [)" + vocab + "]}}";
}

}  // namespace vkformer::bench
