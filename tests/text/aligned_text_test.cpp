// AlignedText, WordList and TokenTable: what every step of encoding stands on.
#include "unicode/aligned_text.h"

#include <doctest/doctest.h>

#include "text/token_table.h"
#include "text/word_list.h"

using namespace vkformer;

namespace {

using Spans = std::vector<CharSpan>;

Spans spans_of(const AlignedText& text) {
  Spans out;
  for (size_t i = 0; i < text.size(); ++i) out.push_back(text.span(i));
  return out;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("aligned text: one to one until something else happens") {
    AlignedText text(U"abcdef");
    text.mutable_chars()[0] = U'A';
    CHECK(text.original_range(1, 4) == CharSpan{1, 4});
    AlignedText slice = text.slice(2, 5);
    CHECK(slice.chars() == U"cde");
    CHECK(slice.origin() == 2);
    CHECK(slice.original_range(1, 3) == CharSpan{3, 5});
    CHECK(slice.original_range(3, 3) == CharSpan{5, 5});
    slice.filter({1, 0, 1});
    CHECK(spans_of(slice) == Spans{{2, 3}, {4, 5}});
    CHECK(slice.original_range(0, 2) == CharSpan{2, 5});
    CHECK(slice.origin() == 2);
    slice.filter({0, 0});
    CHECK(slice.empty());
    CHECK(slice.original_range(0, 0) == CharSpan{2, 2});
  }

  TEST_CASE("aligned text: prepending and replacing") {
    AlignedText text = AlignedText(U"xa b").slice(1, 4);
    text.prepend(U"__");
    CHECK(text.chars() == U"__a b");
    CHECK(spans_of(text) == Spans{{1, 2}, {1, 2}, {1, 2}, {2, 3}, {3, 4}});
    const Spans space = {{3, 4}};
    text.replace_ranges(space, U"<>");
    CHECK(text.chars() == U"__a<>b");
    CHECK(spans_of(text) == Spans{{1, 2}, {1, 2}, {1, 2}, {2, 3}, {2, 3}, {3, 4}});
    const Spans all = {{0, 6}};
    text.replace_ranges(all, U"");
    CHECK(text.empty());
  }

  TEST_CASE("aligned text: what is put in front needs no stored ranges, and moves along") {
    AlignedText text(U"abc");
    text.prepend(U"_");
    text.prepend(U"^");
    CHECK(spans_of(text) == Spans{{0, 1}, {0, 1}, {0, 1}, {1, 2}, {2, 3}});
    CHECK(text.original_range(0, 2) == CharSpan{0, 1});
    CHECK(text.original_range(1, 4) == CharSpan{0, 2});
    const AlignedText front = text.slice(1, 4);
    CHECK(front.chars() == U"_ab");
    CHECK(spans_of(front) == Spans{{0, 1}, {0, 1}, {1, 2}});
    CHECK(spans_of(text.slice(3, 5)) == Spans{{1, 2}, {2, 3}});
    AlignedText copy = text.empty_copy();
    copy.append(text, 0, 1);
    copy.append(text, 1, 5);
    CHECK(spans_of(copy) == spans_of(text));
    copy.append(U'!', {1, 2});
    CHECK(spans_of(copy) == Spans{{0, 1}, {0, 1}, {0, 1}, {1, 2}, {2, 3}, {1, 2}});
    const Spans one = {{3, 4}};
    text.replace_ranges(one, U"B");
    CHECK(text.chars() == U"^_aBc");
    text.replace_ranges(one, U"bb");
    CHECK(spans_of(text) == Spans{{0, 1}, {0, 1}, {0, 1}, {1, 2}, {1, 2}, {2, 3}});
    text.filter({0, 1, 0, 0, 0, 1});
    CHECK(spans_of(text) == Spans{{0, 1}, {2, 3}});
  }

  TEST_CASE("aligned text: insertions share a range, swallowing joins none") {
    AlignedText text(U"abcd");
    const std::vector<CharChange> changes = {
        {U'1', 1}, {U'a', 0}, {U'2', 1}, {U'c', -1}, {U'd', 0}};
    text.rewrite(changes, 0);
    CHECK(text.chars() == U"1a2cd");
    CHECK(spans_of(text) == Spans{{0, 0}, {0, 1}, {0, 1}, {1, 2}, {3, 4}});
  }

  TEST_CASE("aligned text: building from pieces") {
    const AlignedText source(U"abcdef");
    AlignedText out = source.empty_copy();
    out.append(source, 1, 3);
    out.append(source, 3, 4);
    CHECK(spans_of(out) == Spans{{1, 2}, {2, 3}, {3, 4}});
    out.append(source, 5, 6);
    out.append(U'!', {5, 6});
    out.append(source, 2, 2);
    CHECK(out.chars() == U"bcdf!");
    CHECK(spans_of(out) == Spans{{1, 2}, {2, 3}, {3, 4}, {5, 6}, {5, 6}});
    AlignedText from_stored;
    from_stored.append(out, 3, 5);
    CHECK(spans_of(from_stored) == Spans{{5, 6}, {5, 6}});
  }

  TEST_CASE("word list: cutting drops empty parts and stays within words") {
    WordList words(AlignedText(U"ab cd ef"));
    CHECK(words.origin({0, 8}) == 0);
    const auto at_spaces = [](std::u32string_view word, Spans& parts) -> Status {
      uint32_t begin = 0;
      for (uint32_t i = 0; i <= word.size(); ++i) {
        if (i < word.size() && word[i] != U' ') continue;
        parts.push_back({begin, i});
        parts.push_back({i, i});
        begin = i + 1;
      }
      return {};
    };
    REQUIRE(words.cut(at_spaces).ok());
    REQUIRE(words.words().size() == 3);
    CHECK(words.words()[1] == CharSpan{3, 5});
    CHECK(words.origin(words.words()[1]) == 3);
    const auto first_only = [](std::u32string_view, Spans& parts) -> Status {
      parts.push_back({0, 1});
      return {};
    };
    REQUIRE(words.cut(first_only).ok());
    CHECK(words.words()[2] == CharSpan{6, 7});
    CHECK(WordList(AlignedText()).words().empty());
  }

  TEST_CASE("word list: rewriting and splitting keep the original ranges") {
    WordList words(AlignedText(U"ab cd"));
    REQUIRE(words
                .cut([](std::u32string_view, Spans& parts) -> Status {
                  parts.push_back({0, 2});
                  parts.push_back({2, 3});
                  parts.push_back({3, 5});
                  return {};
                })
                .ok());
    REQUIRE(
        words
            .rewrite_each([](const AlignedText& text, CharSpan word, AlignedText& out) -> Status {
              if (text.chars()[word.begin] == U' ') return {};
              out.append(U'<', text.span(word.begin));
              out.append(text, word.begin, word.end);
              return {};
            })
            .ok());
    CHECK(words.chars() == U"<ab<cd");
    REQUIRE(words.words().size() == 2);
    CHECK(words.words()[1] == CharSpan{3, 6});
    CHECK(words.text().original_range(3, 6) == CharSpan{3, 5});
    REQUIRE(words
                .split_each([](const AlignedText& word) -> Result<std::vector<AlignedText>> {
                  std::vector<AlignedText> parts;
                  parts.push_back(word.slice(1, 2));
                  parts.push_back(word.slice(2, 2));
                  parts.push_back(word.slice(2, 3));
                  return parts;
                })
                .ok());
    CHECK(words.chars() == U"abcd");
    REQUIRE(words.words().size() == 4);
    CHECK(words.text().original_range(2, 3) == CharSpan{3, 4});
    const Status failed = words.cut([](std::u32string_view, Spans&) -> Status {
      return Error{ErrorCode::kUnsupported, "no"};
    });
    CHECK_FALSE(failed.ok());
  }

  TEST_CASE("token table: both ways, dense and sparse ids") {
    TokenTable table;
    CHECK_FALSE(table.id_of("a").has_value());
    CHECK(table.token_of(0) == nullptr);
    table.reserve(3);
    constexpr int32_t count = 5000;
    for (int32_t i = 0; i < count; ++i) table.add("token" + std::to_string(i), i * 7);
    table.add("", INT32_MAX);
    table.add("exactly fifteen", 3);
    table.add("sixteen letters!", 4);
    CHECK(table.size() == count + 3);
    CHECK(table.id_limit() == size_t{INT32_MAX} + 1);
    const TokenTable moved = std::move(table);
    for (int32_t i = 0; i < count; ++i) {
      const std::string token = "token" + std::to_string(i);
      REQUIRE(moved.id_of(token) == i * 7);
      REQUIRE(*moved.token_of(i * 7) == token);
    }
    CHECK(moved.id_of("") == INT32_MAX);
    CHECK_FALSE(moved.id_of("token5000").has_value());
    CHECK(moved.token_of(1) == nullptr);
    std::vector<std::string> tokens;
    for (const int32_t id : {0, 3, 4, 1, 7 * (count - 1), INT32_MAX})
      moved.append_token(id, tokens);
    CHECK(tokens == std::vector<std::string>{"token0", "exactly fifteen", "sixteen letters!", "",
                                             "token4999", ""});
  }
}
