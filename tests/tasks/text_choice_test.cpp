// Texts while they are written: pieces that make up the whole, stop strings, words, grammars, and
// log-probabilities, with a model that writes byte by byte.
#include <cmath>

#include "base/utf8_step.h"
#include "tasks/task_cases.h"

namespace vkformer::testing {
namespace {

TextGenerator& shakespeare() {
  static Kept<TextGenerator> generator;
  return generator.get([] {
    const std::string directory = std::string(VKFORMER_SOURCE_DIR) + "/models/shakespeare";
    return value_of(TextGenerator::load(*test_device(), ModelSource::directory(directory)));
  });
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    if (!step.valid) return false;
    text.remove_prefix(step.length);
  }
  return true;
}

const std::vector<std::string> kPrompts = {"ROMEO:\n", "First Citizen:\nBefore", "K"};

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("pieces are whole characters that make up the text, at any temperature") {
    if (!have_test_device()) return;
    TextOptions options;
    options.max_new_tokens = 40;
    options.return_sequences = 2;
    options.seed = 5;
    options.top_k = 0;
    // So hot that bytes come which are no UTF-8 together.
    for (double temperature : {0.7, 8.0}) {
      options.temperature = temperature;
      options.on_text = nullptr;
      const auto plain = value_of(shakespeare().generate(kPrompts, options));
      std::vector<std::vector<std::string>> pieces(3, std::vector<std::string>(2));
      options.on_text = [&](const TextPiece& piece) {
        CHECK(is_utf8(piece.text));
        pieces[piece.input][piece.sequence] += piece.text;
        return TokenVerdict::kGoOn;
      };
      const auto streamed = value_of(shakespeare().generate(kPrompts, options));
      for (size_t i = 0; i < 3; ++i) {
        for (size_t s = 0; s < 2; ++s) {
          CHECK(streamed[i][s].ids == plain[i][s].ids);
          CHECK(streamed[i][s].text == plain[i][s].text);
          CHECK(pieces[i][s] == plain[i][s].text);
        }
      }
    }
  }

  TEST_CASE("a stop string ends a text before it, across tokens; a caller ends and cancels one") {
    if (!have_test_device()) return;
    TextOptions options;
    options.max_new_tokens = 60;
    const std::string whole = value_of(shakespeare().generate(kPrompts, options))[0][0].text;
    REQUIRE(whole.size() > 30);
    options.stop = {"never comes", whole.substr(20, 5)};
    const size_t at = std::min(whole.find(options.stop[1]), whole.size());
    const auto stopped = value_of(shakespeare().generate(kPrompts, options))[0][0];
    CHECK(stopped.text == whole.substr(0, at));
    CHECK(stopped.ids.size() == at + 5);
    std::string seen;
    options.on_text = [&](const TextPiece& piece) {
      if (piece.input != 0) return TokenVerdict::kGoOn;
      seen += piece.text;
      return seen.size() >= 9 ? TokenVerdict::kEnd : TokenVerdict::kGoOn;
    };
    options.stop.clear();
    CHECK(value_of(shakespeare().generate(kPrompts, options))[0][0].text == whole.substr(0, 9));
    options.on_text = [](const TextPiece&) { return TokenVerdict::kCancel; };
    const auto cancelled = shakespeare().generate(kPrompts, options);
    REQUIRE_FALSE(cancelled.ok());
    CHECK(cancelled.error().code == ErrorCode::kCancelled);
    options.on_text = nullptr;
    options.beams = 2;
    options.stop = {"e"};
    for (const auto& found : value_of(shakespeare().generate(kPrompts, options)))
      CHECK(found[0].text.find('e') == std::string::npos);
  }

  TEST_CASE("words that are bad or biased, and texts that keep to a grammar") {
    if (!have_test_device()) return;
    TextOptions options;
    options.max_new_tokens = 50;
    options.bad_words = {"the", "e"};
    for (const auto& found : value_of(shakespeare().generate(kPrompts, options)))
      CHECK(found[0].text.find('e') == std::string::npos);
    options.bad_words.clear();
    options.biases = {{"q", 100}};
    options.max_new_tokens = 4;
    CHECK(value_of(shakespeare().generate(kPrompts, options))[0][0].text == "qqqq");
    options.biases.clear();
    options.max_new_tokens = 24;
    options.grammar =
        value_of(Grammar::from_gbnf("root ::= name \"\\n\"\nname ::= [A-Z]{2,8} (\" \" name)?"));
    for (const auto& found : value_of(shakespeare().generate(kPrompts, options)))
      CHECK(value_of(options.grammar->matches(found[0].text)));
    options.beams = 2;
    CHECK_FALSE(shakespeare().generate(kPrompts, options).ok());
  }

  TEST_CASE("log-probabilities of continuations; empty prompts are refused") {
    if (!have_test_device()) return;
    TextOptions options;
    options.max_new_tokens = 12;
    const auto found = value_of(shakespeare().generate(kPrompts, options));
    std::vector<std::string> continuations;
    for (const auto& texts : found) continuations.push_back(texts[0].text);
    const auto scores = value_of(shakespeare().score(kPrompts, continuations));
    for (size_t i = 0; i < kPrompts.size(); ++i) {
      const GeneratedText& text = found[i][0];
      REQUIRE(scores[i].size() == text.log_probabilities.size());
      double sum = 0;
      for (size_t t = 0; t < scores[i].size(); ++t) {
        CHECK(scores[i][t] == doctest::Approx(text.log_probabilities[t]).epsilon(1e-2));
        sum += static_cast<double>(text.log_probabilities[t]);
      }
      CHECK(text.score == doctest::Approx(sum));
    }
    CHECK_FALSE(shakespeare().score(kPrompts, std::vector<std::string>{"a"}).ok());
    const std::vector<std::string> empty = {"a", ""};
    const auto refused = shakespeare().generate(empty, options);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message.find("[text 2]") != std::string::npos);
  }
}

}  // namespace vkformer::testing
