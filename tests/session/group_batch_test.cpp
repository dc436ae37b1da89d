// Batches on several devices and in several processes: draft tokens, prompt lookup and the prefix
// cache give what they give on one device.
#include <doctest/doctest.h>

#include <functional>

#include "session/group_case.h"

namespace vkformer::testing {
namespace {

// Four requests at once in four rows, and then the first one again, whose prefix is cached. The
// prompts repeat themselves, so that prompt lookup finds something.
Stories run_requests(GenerationBatch& batch, const Model& model) {
  Stories stories;
  std::vector<BatchRequest> requests;
  for (uint32_t i = 0; i < 4; ++i) {
    const Tokens words = random_tokens(model, 3 + 2 * i, i);
    requests.push_back(request_for(batch, joined(joined(words, words), words), 9));
  }
  requests[1].options.choice = TokenChoice::kSampled;
  requests[1].options.sampling.seed = 5;
  requests[2].options.choice = TokenChoice::kSampled;
  for (const BatchRequest& request : requests) submit(batch, request);
  while (!batch.idle()) take_step(batch, stories);
  submit(batch, requests[0]);
  while (!batch.idle()) take_step(batch, stories);
  return stories;
}

struct Found {
  std::string error;
  Stories stories;
  BatchCounters counters;
};

Found found_with(const Model& model, const BatchOptions& options) {
  auto batch = GenerationBatch::create(model, options);
  if (!batch) return {batch.error().message, {}, {}};
  Found found;
  found.stories = run_requests(*batch, model);
  found.counters = batch->counters();
  return found;
}

void check_tokens(const Found& found, const Found& expected) {
  REQUIRE_MESSAGE(found.error.empty(), found.error);
  REQUIRE(found.stories.size() == expected.stories.size());
  for (const auto& [id, told] : expected.stories) {
    CAPTURE(id);
    CHECK(told.state == State::kFinished);
    CHECK(found.stories.at(id).state == State::kFinished);
    CHECK(found.stories.at(id).tokens == told.tokens);
  }
  CHECK(found.counters.work.reused_tokens == expected.counters.work.reused_tokens);
  CHECK(found.counters.work.draft_tokens == expected.counters.work.draft_tokens);
  CHECK(found.counters.work.accepted_tokens == expected.counters.work.accepted_tokens);
}

enum class Drafts : uint8_t { kNone, kLookup, kModel };

// `draft` is of the devices that the batch's model is on.
BatchOptions options_of(Drafts drafts, const Model& draft) {
  BatchOptions options{.rows = 4, .step_tokens = 24};
  if (drafts == Drafts::kLookup) options.lookup = 3;
  if (drafts == Drafts::kModel) options.draft = draft;
  return options;
}

constexpr Drafts kAllDrafts[] = {Drafts::kNone, Drafts::kLookup, Drafts::kModel};

// Checks that something was there to compare.
Found expected_with(Drafts drafts) {
  const Model& whole = golden_model("llama-gqa");
  Found expected = found_with(whole, options_of(drafts, whole));
  REQUIRE_MESSAGE(expected.error.empty(), expected.error);
  CHECK(expected.counters.work.reused_tokens > 0);
  if (drafts != Drafts::kNone) CHECK(expected.counters.work.draft_tokens > 0);
  if (drafts == Drafts::kModel) CHECK(expected.counters.work.accepted_tokens > 0);
  return expected;
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("batches with drafts on two devices have the tokens of one") {
    if (!have_test_device()) return;
    const Model split = split_model("llama-gqa", {.shares = {1, 1}});
    const auto divided = divided_model("llama-gqa", 2);
    REQUIRE_MESSAGE(divided.ok(), divided.error().message);
    for (const Drafts drafts : kAllDrafts) {
      CAPTURE(static_cast<int>(drafts));
      const Found expected = expected_with(drafts);
      check_tokens(found_with(split, options_of(drafts, split)), expected);
      check_tokens(found_with(*divided, options_of(drafts, *divided)), expected);
    }
    // A draft may be on one device, whatever the model is on.
    const Found expected = expected_with(Drafts::kModel);
    const Model& whole = golden_model("llama-gqa");
    check_tokens(found_with(split, options_of(Drafts::kModel, whole)), expected);
    check_tokens(found_with(whole, options_of(Drafts::kModel, split)), expected);
  }

  TEST_CASE("batches with drafts in several processes have the tokens of one") {
    if (!have_test_device()) return;
    for (const Drafts drafts : kAllDrafts) {
      CAPTURE(static_cast<int>(drafts));
      const Found expected = expected_with(drafts);
      const auto found = at_each_member(2, [&](const std::shared_ptr<DeviceLink>& link) -> Found {
        const std::string path = golden_case("llama-gqa").path("model");
        const auto model = load_linked(link, path, {.shares = {1, 1}});
        if (!model) return {model.error().message, {}, {}};
        return found_with(*model, options_of(drafts, *model));
      });
      for (const Found& own : found) check_tokens(own, expected);
    }
  }

  TEST_CASE("a batch on several devices refuses beams, as on one") {
    if (!have_test_device()) return;
    const Model split = split_model("llama-gqa", {.shares = {1, 1}});
    GenerationBatch batch = make_batch(split, {.rows = 4, .lookup = 3});
    BatchRequest request = request_for(batch, {3, 4, 5}, 4);
    request.options.beams = 3;
    check_refused(batch, request, "beams");
  }
}

}  // namespace vkformer::testing
