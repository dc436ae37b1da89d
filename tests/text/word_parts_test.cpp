// Words that models cut into parts to find these in a cache: the tokens are those of the whole
// word.
#include <random>
#include <string>
#include <thread>

#include "text/tokenizer_files.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

using Ids = std::vector<TokenId>;
using Strings = std::vector<std::string>;

Tokenizer parsed(const std::string& file) {
  auto made = Tokenizer::parse(file);
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  return std::move(made).value();
}

// Words are cut at spaces.
std::string unigram_file(const Strings& tokens, const std::vector<double>& scores) {
  std::string vocab = R"(["<unk>", -9.0])";
  for (size_t i = 0; i < tokens.size(); ++i) {
    vocab += ", [\"" + tokens[i] + "\", " + std::to_string(scores[i]) + "]";
  }
  return R"({"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {"type":)"
         R"( "Unigram", "unk_id": 0, "vocab": [)" +
         vocab + "]}}";
}

// Viterbi's search over a whole ASCII word, with sums in the order in which it goes.
Ids searched(const std::string& word, const Strings& tokens, const std::vector<double>& scores) {
  struct Place {
    bool reached = false;
    double score = 0.0;
    TokenId id = 0;
    size_t from = 0;
  };
  std::vector<Place> places(word.size() + 1);
  places[0].reached = true;
  for (size_t begin = 0; begin < word.size(); ++begin) {
    for (size_t end = begin + 1; end <= word.size(); ++end) {
      for (size_t i = 0; i < tokens.size(); ++i) {
        if (word.substr(begin, end - begin) != tokens[i]) continue;
        const double score = places[begin].score + scores[i];
        Place& place = places[end];
        if (place.reached && !(score > place.score)) continue;
        place = {true, score, static_cast<int32_t>(i) + 1, begin};
      }
    }
  }
  Ids ids;
  for (size_t at = word.size(); at > 0; at = places[at].from) {
    ids.insert(ids.begin(), places[at].id);
  }
  return ids;
}

Tokenizer byte_fallback_bpe(const std::string& more_vocab, const std::string& more_merges) {
  return parsed(R"({"version": "1.0", "model": {"type": "BPE", "byte_fallback": true, "vocab":)"
                R"( {"a": 0, "b": 1, "ab": 2, "<0x0A>": 3, "<unk>": 4)" +
                more_vocab + R"(}, "unk_token": "<unk>", "fuse_unk": true, "merges": [["a", "b"])" +
                more_merges + "]}}");
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("unigram: parts of a word where rounding decides between paths") {
    // 0.1 + 0.2 is not 0.3, and what it is depends on the sum before.
    const Strings tokens = {"a", "aa", "aaa", "b", "ab", "bb", ",", "-", "--"};
    const std::vector<double> scores = {-0.1, -0.2, -0.3, -0.7, -0.8, -1.4, -1.1, -0.6, -1.2};
    const Tokenizer model = parsed(unigram_file(tokens, scores));
    std::mt19937 random(3);
    for (int round = 0; round < 60; ++round) {
      std::string text;
      Ids expected;
      for (int word = 0; word < 12; ++word) {
        std::string letters;
        const unsigned length = 1 + random() % 14;
        while (letters.size() < length) letters += "aaabb,-"[random() % 7];
        text += letters + " ";
        const Ids ids = searched(letters, tokens, scores);
        expected.insert(expected.end(), ids.begin(), ids.end());
      }
      INFO(text);
      CHECK(encoded(model, text).ids == expected);
    }
  }

  TEST_CASE("unigram: unknown characters next to each other are one piece, across parts too") {
    const Tokenizer model = parsed(unigram_file({"a", "b", "xy"}, {-1.0, -1.0, -1.0}));
    const Encoding encoding = encoded(model, "a??xb y?a a??xb");
    CHECK(encoding.tokens == Strings{"a", "?\?x", "b", "y?", "a", "a", "?\?x", "b"});
    CHECK(encoding.ids == Ids{1, 0, 2, 0, 1, 1, 0, 2});
  }

  TEST_CASE("unigram: scores that no sum can hold are refused") {
    const auto made = Tokenizer::parse(
        R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1e300]]}})");
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().message.find("-1e290") != std::string::npos);
  }

  TEST_CASE("bpe: a long word is cut at characters that are no tokens") {
    const Tokenizer model = byte_fallback_bpe("", "");
    std::string text;
    Ids ids;
    Ranges ranges;
    for (int32_t i = 0; i < 40; ++i) {
      const int32_t at = 4 * i;
      text += "ab\n?";
      for (const int32_t id : {2, 3, 4}) ids.push_back(id);
      ranges.insert(ranges.end(), {{at, at + 2}, {at + 2, at + 3}, {at + 3, at + 4}});
    }
    const Encoding encoding = encoded(model, text);
    CHECK(encoding.ids == ids);
    CHECK(ranges_of(encoding) == ranges);
  }

  TEST_CASE("bpe: but not where a merge takes their bytes") {
    const Tokenizer model = byte_fallback_bpe(R"(, "ab<0x0A>": 5)", R"(, ["ab", "<0x0A>"])");
    std::string text;
    for (int i = 0; i < 40; ++i) text += "ab\n";
    CHECK(encoded(model, text).ids == Ids(40, 5));
  }

  TEST_CASE("tokenizers: texts of many threads share no memory") {
    const Tokenizer model = byte_fallback_bpe("", "");
    std::vector<std::string> texts(4);
    for (size_t i = 0; i < texts.size(); ++i) {
      for (size_t j = 0; j < 2000 * (i + 1); ++j) texts[i] += "ab\nba"[(i + j * j) % 5];
    }
    std::vector<Encoding> alone;
    for (const std::string& text : texts) alone.push_back(encoded(model, text));
    std::vector<int> wrong(texts.size(), 0);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < texts.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < 20; ++round) {
          const size_t at = (i + static_cast<size_t>(round)) % texts.size();
          const auto encoding = model.encode(texts[at]);
          if (!encoding.ok() || encoding->ids != alone[at].ids) ++wrong[i];
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(texts.size(), 0));
  }
}
