// Unigram models: the search, unknown characters, byte tokens, and what files may get wrong.
#include <nlohmann/json.hpp>

#include "text/tokenizer_files.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

using Ids = std::vector<TokenId>;
using Strings = std::vector<std::string>;

// The tokenizer file of a model that is given as the members after its type.
std::string unigram_file(const std::string& model) {
  return R"({"version": "1.0", "model": {"type": "Unigram", )" + model + "}}";
}

Tokenizer unigram(const std::string& model) {
  auto made = Tokenizer::parse(unigram_file(model));
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  return std::move(made).value();
}

void check_error(const std::string& model, const std::string& says) {
  const auto made = Tokenizer::parse(unigram_file(model));
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().code == ErrorCode::kInvalidFile);
  CHECK_MESSAGE(made.error().message.find(says) != std::string::npos, made.error().message);
}

// Every JSON value below `node`.
void collect_nodes(nlohmann::json& node, std::vector<nlohmann::json*>& out) {
  out.push_back(&node);
  if (!node.is_structured()) return;
  for (auto& child : node) collect_nodes(child, out);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("unigram: the tokens of the greatest sum") {
    // Kudo's example of a sentence with a better path that starts with a worse token.
    const Tokenizer model = unigram(R"("unk_id": 0, "vocab": [["<unk>", 0], ["a", 0.0], ["b", 0.0],
      ["c", 0.0], ["d", 0.0], ["cd", 1.0], ["ab", 2.0], ["abc", 5.0], ["abcd", 10.0]])");
    CHECK(encoded(model, "abcd").tokens == Strings{"abcd"});
    CHECK(encoded(model, "abcabcd").tokens == Strings{"abc", "abcd"});
    CHECK(encoded(model, "abcabd").tokens == Strings{"abc", "ab", "d"});
    CHECK(encoded(model, "cdd").tokens == Strings{"cd", "d"});
    CHECK(encoded(model, "").ids.empty());
    CHECK(ranges_of(encoded(model, "abcabd")) == Ranges{{0, 3}, {3, 5}, {5, 6}});
  }

  TEST_CASE("unigram: of equal sums the path whose last token starts first") {
    const Tokenizer model = unigram(R"("unk_id": 0, "vocab": [["<unk>", -1], ["a", -1.0],
      ["aa", -2.0], ["aaa", -3.0], ["b", -1.0], ["ab", -2.0]])");
    CHECK(encoded(model, "aa").tokens == Strings{"aa"});
    CHECK(encoded(model, "aaa").tokens == Strings{"aaa"});
    CHECK(encoded(model, "aaaa").tokens == Strings{"a", "aaa"});
    CHECK(encoded(model, "aab").tokens == Strings{"a", "ab"});
  }

  TEST_CASE("unigram: unknown characters join and keep their text") {
    const Tokenizer model = unigram(R"("unk_id": 1, "vocab": [["a", -1.0], ["<unk>", -2.0],
      ["xyz", -9.0]])");
    const Encoding odd = encoded(model, "aé\U0001F600a?");
    CHECK(odd.ids == Ids{0, 1, 0, 1});
    CHECK(odd.tokens == Strings{"a", "é\U0001F600", "a", "?"});
    CHECK(ranges_of(odd) == Ranges{{0, 1}, {1, 3}, {3, 4}, {4, 5}});
    // An unknown character costs the lowest score less ten: 3 of them cost more than "xyz".
    CHECK(encoded(model, "xyz").ids == Ids{2});
    CHECK(encoded(model, "xy").ids == Ids{1});
    CHECK(encoded(model, "a<unk>b").tokens == Strings{"a", "<unk>b"});
    CHECK(encoded(model, "a<unk>a").ids == Ids{0, 1, 0});
  }

  TEST_CASE("unigram: without an unknown token every character must be known") {
    const Tokenizer model =
        unigram(R"("unk_id": null, "vocab": [["a", -1.0], ["b", -1.0], ["bc", -1.0]])");
    CHECK(encoded(model, "aabc").ids == Ids{0, 0, 2});
    // Every character needs its own token or a way that passes it.
    CHECK_FALSE(model.encode("c").ok());
    const auto failed = model.encode("aüa");
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().code == ErrorCode::kInvalidArgument);
    CHECK(failed.error().message.find("[ü]") != std::string::npos);
    // A known way around an unknown character is taken ...
    CHECK(encoded(unigram(R"("vocab": [["b", -1.0], ["bü", -1.0]])"), "bü").ids == Ids{1});
    // ... only while it is the better one.
    CHECK_FALSE(unigram(R"("vocab": [["b", 50.0], ["bü", -900.0]])").encode("bü").ok());
  }

  TEST_CASE("unigram: bytes for unknown characters, if all of them have tokens") {
    const std::string vocab = R"("vocab": [["<unk>", 0.0], ["a", -1.0], ["<0xC3>", -3.0],
      ["<0xA9>", -3.0], ["<0x62>", -3.0]])";
    const Tokenizer model = unigram(R"("unk_id": 0, "byte_fallback": true, )" + vocab);
    const Encoding bytes = encoded(model, "aéa");
    CHECK(bytes.tokens == Strings{"a", "<0xC3>", "<0xA9>", "a"});
    CHECK(bytes.ids == Ids{1, 2, 3, 1});
    CHECK(ranges_of(bytes) == Ranges{{0, 1}, {1, 2}, {1, 2}, {2, 3}});
    // The bytes of joined characters each get the range of all.
    CHECK(ranges_of(encoded(model, "bé")) == Ranges{{0, 2}, {0, 2}, {0, 2}});
    CHECK(encoded(model, "bü").tokens == Strings{"bü"});
    CHECK(encoded(model, "bü").ids == Ids{0});
    CHECK(encoded(unigram(R"("unk_id": 0, )" + vocab), "é").ids == Ids{0});
  }

  TEST_CASE("unigram: a token that is listed twice") {
    const Tokenizer model = unigram(R"("unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0],
      ["b", -1.0], ["a", -1.0]])");
    CHECK(encoded(model, "a").ids == Ids{3});
    CHECK(model.token_to_id("a") == 3);
    CHECK(model.id_to_token(1) == "a");
    CHECK(model.decode(Ids{1, 2, 3}).value() == "a b a");
  }

  TEST_CASE("unigram: repeated and very long words") {
    const Tokenizer model = unigram(R"("unk_id": 0, "vocab": [["<unk>", 0.0], ["ab", -1.0],
      ["a", -1.5], ["b", -1.5], ["bb", -2.0], ["", -1.0]])");
    std::string text;
    for (int i = 0; i < 50000; ++i) text += i % 3 == 0 ? "abb" : "ab";
    const Encoding whole = encoded(model, text);
    int32_t at = 0;
    for (const TextRange& range : whole.offsets) {
      REQUIRE(range.begin == at);
      at = range.end;
    }
    CHECK(at == static_cast<int32_t>(text.size()));
    CHECK(whole.ids[0] == 1);
    CHECK(whole.ids[1] == 3);
    CHECK(whole.ids[2] == 1);
    // Words that come again have the same tokens in other places.
    TokenizerParts parts;
    std::string file = unigram_file(R"("unk_id": 0, "vocab": [["<unk>", 0.0], ["ab", -1.0],
      ["a", -1.5]])");
    file.insert(1, R"("pre_tokenizer": {"type": "WhitespaceSplit"}, )");
    const auto words = Tokenizer::parse(file);
    REQUIRE(words.ok());
    const Encoding again = encoded(*words, "aba ab aba éab aba éab");
    CHECK(again.ids == Ids{1, 2, 1, 1, 2, 0, 1, 1, 2, 0, 1});
    CHECK(again.tokens[5] == "é");
    CHECK(again.tokens[9] == "é");
    CHECK(ranges_of(again) == Ranges{{0, 2},
                                     {2, 3},
                                     {4, 6},
                                     {7, 9},
                                     {9, 10},
                                     {11, 12},
                                     {12, 14},
                                     {15, 17},
                                     {17, 18},
                                     {19, 20},
                                     {20, 22}});
  }

  TEST_CASE("unigram: damaged models") {
    check_error(R"("unk_id": 0)", "vocab");
    check_error(R"("unk_id": 0, "vocab": {"a": 0})", "array");
    check_error(R"("unk_id": 0, "vocab": [["a", -1], ["b"]])", "vocab[1]");
    check_error(R"("unk_id": 0, "vocab": [["a", "-1"]])", "a token and its score");
    check_error(R"("unk_id": 0, "vocab": [[1, -1]])", "a token and its score");
    check_error(R"("unk_id": 1, "vocab": [["a", -1]])", "unk_id");
    check_error(R"("unk_id": -1, "vocab": [["a", -1]])", "unk_id");
    check_error(R"("unk_id": 0, "vocab": [])", "the vocabulary is empty");
    check_error(R"("byte_fallback": 1, "vocab": [])", "byte_fallback");
    CHECK_FALSE(unigram(R"("vocab": [])").encode("a").ok());
  }

  TEST_CASE("unigram: many tokens in many scripts") {
    // Enough branches to fill the trie's gaps; each word must come out whole.
    nlohmann::json vocab = nlohmann::json::array({nlohmann::json::array({"<unk>", 0.0})});
    Strings words;
    uint32_t state = 7;
    const auto draw = [&](uint32_t below) {
      state = state * 1664525 + 1013904223;
      return (state >> 8) % below;
    };
    const Strings letters = {"a", "b", "c", "é", "ß", "ж", "я", "あ", "字", "한", "\U0001F600"};
    for (int i = 0; i < 20000; ++i) {
      std::string word = "<" + std::to_string(i);
      for (uint32_t n = draw(6); n > 0; --n) word += letters[draw(11)];
      word += ">";
      vocab.push_back({word, -1.0});
      words.push_back(word);
    }
    const auto model = Tokenizer::parse(unigram_file(R"("unk_id": 0, "vocab": )" + vocab.dump()));
    REQUIRE(model.ok());
    for (int i = 0; i < 20000; i += 7) {
      const Encoding one = encoded(*model, words[static_cast<size_t>(i)] + "?");
      REQUIRE(one.ids == Ids{i + 1, 0});
    }
  }

  TEST_CASE("unigram: every value of a file replaced by one of another type") {
    const auto original = nlohmann::json::parse(R"({"version": "1.0",
      "normalizer": {"type": "Sequence", "normalizers": [{"type": "Nmt"},
        {"type": "Precompiled", "precompiled_charsmap": "BAAAAAAAAAAAYQA="}]},
      "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first",
        "split": true},
      "decoder": {"type": "Metaspace", "replacement": "▁", "add_prefix_space": true},
      "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true,
        "vocab": [["<unk>", 0], ["a", -1.5], ["▁b", -2], ["<0xC3>", -9]]}})");
    auto counted = original;
    std::vector<nlohmann::json*> places;
    collect_nodes(counted, places);
    int refused = 0;
    int accepted = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      for (const char* value : {"null", "true", "-1", "1e300", "-1e308", "7", "\"\"", "\"zz\"",
                                "\"é\"", "[]", "[[]]", "{}"}) {
        auto document = original;
        std::vector<nlohmann::json*> nodes;
        collect_nodes(document, nodes);
        *nodes[i] = nlohmann::json::parse(value);
        const auto made = Tokenizer::parse(document.dump());
        if (!made.ok()) {
          ++refused;
          REQUIRE(made.error().message.find("[tokenizer.json") != std::string::npos);
          continue;
        }
        ++accepted;
        // A model without an unknown token may refuse the text, but says so.
        const auto text = made->encode(" ab é\r\nxa b");
        if (text.ok()) CHECK(made->decode(text->ids).ok());
      }
    }
    CHECK(refused > 150);
    CHECK(accepted > 20);
  }
}
