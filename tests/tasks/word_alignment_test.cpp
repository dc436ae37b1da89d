// When tokens are said, against whisper/timing.py's formulas in float64
// (tools/golden/word_times_golden.py), and what words they make.
#include "tasks/word_alignment.h"

#include "tasks/task_cases.h"
#include "text/tokenizer_engine.h"

namespace vkformer::testing {
namespace {

std::unique_ptr<const TokenizerEngine> speech_tokenizer() {
  std::ifstream file(task_path("speech/tokenizer.json"));
  const std::string json((std::istreambuf_iterator<char>(file)), {});
  return value_of(TokenizerEngine::parse(json, "tokenizer.json"));
}

std::vector<std::string> word_texts(const std::vector<TokenWord>& words) {
  std::vector<std::string> texts;
  for (const TokenWord& word : words) texts.push_back(word.text);
  return texts;
}

std::vector<TokenWord> numbered_words(const std::vector<std::string>& texts) {
  std::vector<TokenWord> words;
  for (const std::string& text : texts) words.push_back({text, words.size(), words.size() + 1});
  return words;
}

using WordTexts = std::vector<std::string>;

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("word alignment: a path takes every token and frame, by the least sum") {
    // Token 0 is cheap in frames 0 and 1, token 1 in 2, token 2 in 3 and 4.
    const std::vector<double> costs = {-2, -2, 1,  1,  1,  //
                                       1,  1,  -2, 1,  1,  //
                                       1,  1,  1,  -2, -2};
    CHECK(first_frames(costs, 3, 5) == std::vector<size_t>{0, 2, 3});
    // Of ways that cost the same, the one that stays with its token is taken.
    CHECK(first_frames(std::vector<double>(4, 0.0), 2, 2) == std::vector<size_t>{0, 0});
    CHECK(first_frames(std::vector<double>{1, 1, 1}, 3, 1) == std::vector<size_t>{0, 0, 0});
    CHECK(first_frames(std::vector<double>{1, 1, 1}, 1, 3) == std::vector<size_t>{0});
    // Costs that are no numbers end the path, too.
    const std::vector<double> broken(12, std::numeric_limits<double>::quiet_NaN());
    CHECK(first_frames(broken, 3, 4).front() == 0);
  }

  TEST_CASE("word alignment: weights are normalized over tokens and smoothed over frames") {
    // Both tokens attend alike: no frame says anything.
    const HeadScores alike{2, 3, {1, 2, 3, 1, 2, 3}};
    CHECK(alignment_matrix(alike, 7) == std::vector<double>(6, 0.0));
    // Two tokens, two frames: each frame has one token above the mean and one below.
    const HeadScores apart{2, 2, {5, 0, 0, 5}};
    const std::vector<double> matrix = alignment_matrix(apart, 7);
    const double wanted[] = {1, -1, -1, 1};
    for (size_t i = 0; i < 4; ++i) CHECK(matrix[i] == doctest::Approx(wanted[i]));
    // A median of three takes a single frame away.
    const HeadScores peak{2, 5, {0, 0, 9, 0, 0, 0, 0, 0, 0, 0}};
    const std::vector<double> smooth = alignment_matrix(peak, 3);
    CHECK(smooth[2] == doctest::Approx(smooth[1]));
  }

  TEST_CASE("word alignment: words begin with spaces, and punctuation joins them") {
    const auto tokenizer = speech_tokenizer();
    const std::string_view text = " one (two), three \xC3\xA9!";
    const Encoding encoding =
        value_of(tokenizer->encode({&text, 1}, {.special_tokens = SpecialTokens::kExclude}));
    const auto words = value_of(words_of_tokens(*tokenizer, encoding.ids, WordBreaks::kSpaces));
    std::string joined;
    size_t at = 0;
    for (const TokenWord& word : words) {
      CHECK(word.begin == at);
      at = word.end;
      joined += word.text;
    }
    CHECK(at == encoding.ids.size());
    CHECK(joined == text);
    const auto merged = merge_punctuation(words);
    CHECK(word_texts(merged) == WordTexts{"one", "(two),", "three", "\xC3\xA9!"});
    // Their tokens stay those of the letters.
    CHECK(merged[1].begin == words[2].begin);
    const auto pieces =
        value_of(words_of_tokens(*tokenizer, encoding.ids, WordBreaks::kCharacters));
    CHECK(pieces.size() > words.size());
    for (const TokenWord& piece : pieces) CHECK(piece.text != "\xEF\xBF\xBD");
    CHECK(value_of(words_of_tokens(*tokenizer, {}, WordBreaks::kSpaces)).empty());
  }

  TEST_CASE("word alignment: signs belong to the word that they open or close") {
    const auto merged = [](const WordTexts& texts) {
      return word_texts(merge_punctuation(numbered_words(texts)));
    };
    CHECK(merged({" \"", "hello", ",", " world", "!"}) == WordTexts{"\"hello,", "world!"});
    CHECK(merged({" a", " -", " b"}) == WordTexts{"a", "- b"});
    CHECK(merged({}) == WordTexts{});
    CHECK(merged({" "}) == WordTexts{});
    CHECK(merged({"..."}) == WordTexts{"..."});
  }
}

TEST_SUITE("model") {
  TEST_CASE("a decoder's words have the times at which its heads attend to them") {
    if (!have_test_device()) return;
    const Json golden = read_json(task_path("speech/words.json"));
    const TaskCopy copy("speech");
    copy.change("generation_config.json", "alignment_heads", golden["alignment_heads"]);
    const auto tokenizer = speech_tokenizer();
    TranscribeOptions options;
    options.language = golden["language"];
    options.max_new_tokens = golden["max_new_tokens"].get<int>();
    std::vector<Sound> sounds;
    for (const Json& found : golden["found"]) {
      sounds.push_back(value_of(load_wav(task_path(found["sound"]))));
    }
    for (const int batch : {1, 3}) {
      TaskOptions tasks;
      tasks.batch = batch;
      auto task = load_task<Transcriber>(copy.folder.path(), tasks);
      const auto heard = value_of(task.transcribe_words(sounds, options));
      REQUIRE(heard.size() == sounds.size());
      for (size_t i = 0; i < heard.size(); ++i) {
        const Json& found = golden["found"][i];
        const auto tokens = found["tokens"].get<std::vector<TokenId>>();
        const auto words =
            merge_punctuation(value_of(words_of_tokens(*tokenizer, tokens, WordBreaks::kSpaces)));
        REQUIRE(heard[i].words.size() == words.size());
        for (size_t w = 0; w < words.size(); ++w) {
          const SpokenWord& word = heard[i].words[w];
          CHECK(word.text == words[w].text);
          CHECK(word.begin == doctest::Approx(found["begins"][words[w].begin].get<double>()));
          CHECK(word.end == doctest::Approx(found["begins"][words[w].end].get<double>()));
        }
      }
    }
    copy.change("generation_config.json", "alignment_heads", {{2, 0}});
    auto wrong = load_task<Transcriber>(copy.folder.path());
    const auto refused = wrong.transcribe_words(sounds, options);
    REQUIRE_FALSE(refused.ok());
    CHECK(test::contains(refused.error().message, "[alignment_heads]"));
    copy.change("generation_config.json", "alignment_heads", golden["alignment_heads"]);
    copy.change("config.json", "median_filter_width", 6);
    auto even = load_task<Transcriber>(copy.folder.path());
    const auto odd = even.transcribe_words(sounds, options);
    REQUIRE_FALSE(odd.ok());
    CHECK(test::contains(odd.error().message, "[median_filter_width]"));
  }
}

}  // namespace vkformer::testing
