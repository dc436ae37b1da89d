#include "generate/token_watch.h"

#include <doctest/doctest.h>

#include <memory>

#include "ops/token_candidates.h"

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("a watch needs the options of its generation no more once it is made") {
    const SearchParams params{.batch = 1, .beams = 1, .capacity = 8, .vocab = 40};
    const SearchLayout layout{params};
    std::vector<int64_t> told;
    auto options = std::make_unique<GenerateOptions>();
    options->on_token = [&](const NewToken& token) {
      told.push_back(token.id);
      return token.id == 9 ? TokenVerdict::kEnd : TokenVerdict::kGoOn;
    };
    TokenWatch watch(*options, params, {0}, 2, 4);
    // As when a caller starts a generation in slices and goes on: other options, or none.
    options->on_token = [](const NewToken&) { return TokenVerdict::kCancel; };
    options.reset();
    std::vector<uint32_t> search(search_words(params), 0u);
    search[layout.item(0) + VKF_ITEM_ACTIVE] = 1;
    for (uint32_t i = 0; i < 5; ++i) search[layout.tokens(0) + i] = 5 + i;
    auto ended = watch.read(search, 4);
    REQUIRE_MESSAGE(ended.ok(), ended.error().message);
    CHECK(ended->empty());
    CHECK(told == std::vector<int64_t>{7, 8});
    ended = watch.read(search, 5);
    REQUIRE_MESSAGE(ended.ok(), ended.error().message);
    CHECK(*ended == std::vector<uint32_t>{0});
    CHECK(told == std::vector<int64_t>{7, 8, 9});
    CHECK(watch.ended_at(0) == 5);
    CHECK_FALSE(watch.masks_tokens());
  }
}

}  // namespace vkformer::testing
