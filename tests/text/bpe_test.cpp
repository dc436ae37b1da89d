// The BPE model: merging, characters that are no tokens, and the settings of its file.
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "text/byte_pair_merger.h"
#include "text/tokenizer_files.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

using nlohmann::json;
using Ids = std::vector<TokenId>;
using Strings = std::vector<std::string>;
using Merge = std::pair<std::string, std::string>;

// A model with ids by the order of `vocab`.
json bpe_model(const Strings& vocab, const std::vector<Merge>& merges) {
  json model = {{"type", "BPE"}, {"vocab", json::object()}, {"merges", merges}};
  for (const std::string& token : vocab) model["vocab"].emplace(token, model["vocab"].size());
  return model;
}

std::string with_model(const json& model) {
  json file = json::parse(tokenizer_json({}));
  file["model"] = model;
  return file.dump();
}

Tokenizer make_bpe(const json& model) {
  auto made = Tokenizer::parse(with_model(model));
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  return std::move(made).value();
}

void check_error(const json& model, ErrorCode code, const std::string& says) {
  const auto made = Tokenizer::parse(with_model(model));
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().code == code);
  CHECK_MESSAGE(made.error().message.find(says) != std::string::npos, made.error().message);
}

// The algorithm as the paper states it: merge the best pair, look again.
Strings merged(Strings symbols, const std::vector<Merge>& merges) {
  std::map<Merge, size_t> ranks;
  for (size_t i = 0; i < merges.size(); ++i) ranks[merges[i]] = i;
  while (true) {
    size_t best = symbols.size();
    size_t best_rank = merges.size();
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found == ranks.end() || found->second >= best_rank) continue;
      best = i;
      best_rank = found->second;
    }
    if (best == symbols.size()) return symbols;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

struct RandomBpe {
  Strings vocab = {"a", "b", "c", "d", "e", "_"};
  std::vector<Merge> merges;
};

RandomBpe random_bpe(std::mt19937& random, size_t merges) {
  RandomBpe made;
  std::map<std::string, int> known;
  for (const std::string& token : made.vocab) known[token] = 1;
  while (made.merges.size() < merges) {
    const Merge merge(made.vocab[random() % made.vocab.size()],
                      made.vocab[random() % made.vocab.size()]);
    const std::string whole = merge.first + merge.second;
    if (whole.size() > 12 || known[whole]++ != 0) continue;
    made.vocab.push_back(whole);
    made.merges.push_back(merge);
  }
  // Any order of ranks is a valid file.
  std::shuffle(made.merges.begin(), made.merges.end(), random);
  return made;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("bpe: the lowest rank goes first, then the leftmost pair") {
    const Strings vocab = {"a", "b", "c", "aa", "ab", "bc", "abc"};
    const Tokenizer tokenizer =
        make_bpe(bpe_model(vocab, {{"b", "c"}, {"a", "a"}, {"a", "b"}, {"a", "bc"}}));
    CHECK(encoded(tokenizer, "aaa").tokens == Strings{"aa", "a"});
    CHECK(encoded(tokenizer, "abc").tokens == Strings{"abc"});
    CHECK(encoded(tokenizer, "aabc").tokens == Strings{"aa", "bc"});
    const Encoding encoding = encoded(tokenizer, "abaabcb");
    CHECK(encoding.tokens == Strings{"ab", "aa", "bc", "b"});
    CHECK(ranges_of(encoding) == Ranges{{0, 2}, {2, 4}, {4, 6}, {6, 7}});
  }

  TEST_CASE("bpe: merges agree with the plain algorithm on random rules and words") {
    std::mt19937 random(11);
    for (int round = 0; round < 12; ++round) {
      const RandomBpe bpe = random_bpe(random, 60);
      const Tokenizer tokenizer = make_bpe(bpe_model(bpe.vocab, bpe.merges));
      for (const size_t length : {1, 2, 7, 23, 24, 31, 32, 33, 70, 150}) {
        std::string word;
        Strings symbols;
        for (size_t i = 0; i < length; ++i) {
          symbols.push_back(bpe.vocab[random() % 6]);
          word += symbols.back();
        }
        CAPTURE(word);
        CHECK(encoded(tokenizer, word).tokens == merged(symbols, bpe.merges));
      }
    }
  }

  TEST_CASE("bpe: words that come again give the same tokens, at their own place") {
    std::mt19937 random(12);
    const RandomBpe bpe = random_bpe(random, 40);
    json file = json::parse(with_model(bpe_model(bpe.vocab, bpe.merges)));
    file["pre_tokenizer"] = json::parse(R"({"type": "WhitespaceSplit"})");
    const auto tokenizer = Tokenizer::parse(file.dump());
    REQUIRE(tokenizer.ok());
    std::string text;
    Strings expected;
    Ranges ranges;
    for (int i = 0; i < 2000; ++i) {
      Strings symbols;
      for (size_t n = 1 + random() % 4; n > 0; --n) symbols.push_back(bpe.vocab[random() % 6]);
      auto at = static_cast<int32_t>(text.size());
      for (const std::string& token : merged(symbols, bpe.merges)) {
        expected.push_back(token);
        ranges.emplace_back(at, at + static_cast<int32_t>(token.size()));
        at += static_cast<int32_t>(token.size());
      }
      for (const std::string& symbol : symbols) text += symbol;
      text += ' ';
    }
    const Encoding encoding = encoded(*tokenizer, text);
    CHECK(encoding.tokens == expected);
    CHECK(ranges_of(encoding) == ranges);
  }

  TEST_CASE("bpe: a word of a million characters takes no quadratic time") {
    const Tokenizer tokenizer =
        make_bpe(bpe_model({"a", "b", "ab", "abab", "ba"}, {{"a", "b"}, {"ab", "ab"}}));
    std::string word;
    for (int i = 0; i < 500'000; ++i) word += "ab";
    const Encoding encoding = encoded(tokenizer, word);
    REQUIRE(encoding.ids.size() == 250'000);
    CHECK(encoding.tokens.back() == "abab");
    CHECK(encoding.offsets.back() == TextRange{999'996, 1'000'000});
  }

  TEST_CASE("bpe: characters that are no tokens") {
    json model = bpe_model({"<u>", "a", "b", "ab"}, {{"a", "b"}});
    SUBCASE("dropped without an unknown token, moving the ranges behind them") {
      const Encoding encoding = encoded(make_bpe(model), "xa\u4E2Db");
      CHECK(encoding.tokens == Strings{"ab"});
      CHECK(ranges_of(encoding) == Ranges{{0, 2}});
      const Encoding longer = encoded(make_bpe(model), std::string(40, 'b') + "xa");
      CHECK(ranges_of(longer).back() == std::pair<int32_t, int32_t>(40, 41));
    }
    SUBCASE("one unknown token each") {
      model["unk_token"] = "<u>";
      const Encoding encoding = encoded(make_bpe(model), "xy\u4E2Dab");
      CHECK(encoding.ids == Ids{0, 0, 0, 3});
      CHECK(ranges_of(encoding) == Ranges{{0, 1}, {1, 2}, {2, 3}, {3, 5}});
    }
    SUBCASE("one unknown token together") {
      model["unk_token"] = "<u>";
      model["fuse_unk"] = true;
      const Encoding encoding = encoded(make_bpe(model), "xy\u4E2Dabz");
      CHECK(encoding.ids == Ids{0, 3, 0});
      CHECK(ranges_of(encoding) == Ranges{{0, 3}, {3, 5}, {5, 6}});
      const Encoding longer = encoded(make_bpe(model), std::string(30, 'x') + "a");
      CHECK(ranges_of(longer) == Ranges{{0, 30}, {30, 31}});
    }
    SUBCASE("an unknown token that is not in the vocabulary") {
      model["unk_token"] = "<none>";
      const Tokenizer tokenizer = make_bpe(model);
      CHECK(encoded(tokenizer, "ab").ids == Ids{3});
      const auto failed = tokenizer.encode("x");
      REQUIRE_FALSE(failed.ok());
      CHECK(failed.error().message.find("[<none>]") != std::string::npos);
    }
  }

  TEST_CASE("bpe: byte fallback") {
    json model = bpe_model({"<u>", "a", "<0xC3>", "<0xA9>", "<0xE4>", "<0xC3><0xA9>"},
                           {{"<0xC3>", "<0xA9>"}});
    model["unk_token"] = "<u>";
    model["byte_fallback"] = true;
    const Encoding merged_bytes = encoded(make_bpe(model), "a\u00E9a");
    CHECK(merged_bytes.ids == Ids{1, 5, 1});
    CHECK(ranges_of(merged_bytes) == Ranges{{0, 1}, {1, 2}, {2, 3}});
    model["merges"] = json::array();
    const Encoding bytes = encoded(make_bpe(model), "a\u00E9a");
    CHECK(bytes.ids == Ids{1, 2, 3, 1});
    CHECK(ranges_of(bytes) == Ranges{{0, 1}, {1, 2}, {1, 2}, {2, 3}});
    // A character that lacks one of its bytes is unknown as a whole.
    CHECK(encoded(make_bpe(model), "\u4E2Da").ids == Ids{0, 1});
  }

  TEST_CASE("bpe: prefixes within words and suffixes at their end") {
    json model = bpe_model({"a", "##a", "##b", "ab", "##ab"}, {{"a", "##b"}, {"##a", "##b"}});
    model["continuing_subword_prefix"] = "##";
    CHECK(encoded(make_bpe(model), "abab").tokens == Strings{"ab", "##ab"});
    CHECK(ranges_of(encoded(make_bpe(model), "aba")) == Ranges{{0, 2}, {2, 3}});
    model = bpe_model({"a", "b", "b</w>", "ab</w>", "ab"}, {{"a", "b</w>"}, {"a", "b"}});
    model["end_of_word_suffix"] = "</w>";
    CHECK(encoded(make_bpe(model), "abab").tokens == Strings{"ab", "ab</w>"});
    CHECK(ranges_of(encoded(make_bpe(model), "abab")) == Ranges{{0, 2}, {2, 4}});
  }

  TEST_CASE("bpe: with ignore_merges a word in the vocabulary is one token") {
    json model = bpe_model({"a", "b", "c", "ab", "abc"}, {{"a", "b"}});
    CHECK(encoded(make_bpe(model), "abc").tokens == Strings{"ab", "c"});
    model["ignore_merges"] = true;
    CHECK(encoded(make_bpe(model), "abc").tokens == Strings{"abc"});
    CHECK(encoded(make_bpe(model), "abcc").tokens == Strings{"ab", "c", "c"});
    const std::string long_token(300, 'a');
    model["vocab"][long_token] = 9;
    CHECK(encoded(make_bpe(model), long_token).ids == Ids{9});
  }

  TEST_CASE("bpe: both spellings of merges") {
    json model = bpe_model({"a", "b", "ab", " ", "a "}, {});
    model["merges"] = json::array({"#version: 0.2", "a b"});
    CHECK(encoded(make_bpe(model), "ab").ids == Ids{2});
    // Only a pair can hold a space.
    model["merges"] = json::array({json::array({"a", " "})});
    CHECK(encoded(make_bpe(model), "a ").ids == Ids{4});
    for (const char* merge : {"ab", "a b c", "a  b", ""}) {
      CAPTURE(merge);
      model["merges"] = json::array({merge});
      check_error(model, ErrorCode::kInvalidFile, "model.merges[0]");
    }
  }

  TEST_CASE("bpe: damaged and unsupported files") {
    const json good = bpe_model({"a", "b", "ab"}, {{"a", "b"}});
    const auto with = [&](const char* key, const json& value) {
      json model = good;
      model[key] = value;
      return model;
    };
    check_error(with("dropout", 0.1), ErrorCode::kUnsupported, "model.dropout] is 0.1");
    check_error(with("dropout", "x"), ErrorCode::kInvalidFile, "a number or null");
    CHECK(Tokenizer::parse(with_model(with("dropout", 0.0))).ok());
    CHECK(Tokenizer::parse(with_model(with("dropout", nullptr))).ok());
    check_error(with("vocab", 3), ErrorCode::kInvalidFile, "model.vocab]");
    check_error(with("merges", 3), ErrorCode::kInvalidFile, "model.merges]");
    const auto merge = [](auto... parts) { return json::array({json::array({parts...})}); };
    check_error(with("merges", merge("a")), ErrorCode::kInvalidFile, "has 1 parts");
    check_error(with("merges", merge("a", "b", "b")), ErrorCode::kInvalidFile, "has 3 parts");
    check_error(with("merges", merge("a", "x")), ErrorCode::kInvalidFile, "needs the token [x]");
    check_error(with("merges", merge("b", "a")), ErrorCode::kInvalidFile, "needs the token [ba]");
    check_error(with("merges", merge("a", 3)), ErrorCode::kInvalidFile, "model.merges[0]");
    json prefixed = with("continuing_subword_prefix", "####");
    check_error(prefixed, ErrorCode::kInvalidFile, "shorter than");
    check_error(with("unk_token", 3), ErrorCode::kInvalidFile, "model.unk_token]");
    check_error(with("fuse_unk", "yes"), ErrorCode::kInvalidFile, "model.fuse_unk]");
  }

  TEST_CASE("bpe: the largest ids, and pairs of tokens whose string is empty") {
    json model = bpe_model({"a", "b"}, {});
    model["vocab"]["ab"] = INT32_MAX;
    model["vocab"][""] = 7;
    model["merges"] = std::vector<Merge>{{"a", "b"}, {"", "a"}, {"", ""}};
    const Tokenizer tokenizer = make_bpe(model);
    CHECK(encoded(tokenizer, "abba").ids == Ids{INT32_MAX, 1, 0});
  }

  TEST_CASE("bpe: threads share a tokenizer") {
    std::mt19937 random(13);
    const RandomBpe bpe = random_bpe(random, 50);
    const Tokenizer tokenizer = make_bpe(bpe_model(bpe.vocab, bpe.merges));
    std::string text;
    for (int i = 0; i < 5000; ++i) text += bpe.vocab[random() % 6];
    const Ids expected = encoded(tokenizer, text).ids;
    std::vector<Ids> results(4);
    std::vector<std::thread> threads;
    for (Ids& result : results) {
      threads.emplace_back([&] {
        const auto encoding = tokenizer.encode(text);
        if (encoding) result = encoding->ids;
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Ids& result : results) CHECK(result == expected);
  }

  TEST_CASE("pair table: every pair is found, none else") {
    std::mt19937 random(14);
    PairTable table;
    CHECK(table.find(0, 0) == nullptr);
    std::map<std::pair<int32_t, int32_t>, uint32_t> pairs;
    for (uint32_t i = 0; i < 1000; ++i) {
      pairs[{static_cast<int32_t>(random() >> 1) >> (random() % 30),
             static_cast<int32_t>(random() >> 1) >> (random() % 30)}] = i;
    }
    table.reserve(pairs.size());
    for (const auto& [pair, rank] : pairs) table.set(pair.first, pair.second, {rank, 1});
    for (const auto& [pair, rank] : pairs) {
      const MergeRule* rule = table.find(pair.first, pair.second);
      REQUIRE(rule != nullptr);
      CHECK(rule->rank == rank);
      if (!pairs.contains({pair.second, pair.first})) {
        CHECK(table.find(pair.second, pair.first) == nullptr);
      }
    }
    CHECK(table.find(INT32_MAX, INT32_MAX) == nullptr);
  }
}
