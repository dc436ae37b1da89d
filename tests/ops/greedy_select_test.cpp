#include "ops/greedy_select.h"

#include "ops/search_expected.h"

namespace vkformer::testing {
namespace {

SearchCase greedy_case(uint32_t batch, uint32_t vocab, uint32_t seed) {
  SearchCase c;
  c.batch = batch;
  c.vocab = vocab;
  c.model = random_model(vocab, seed);
  return c;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("greedy search without end tokens always makes every token") {
    for (const TierDevice& device : tier_devices()) check_search(device, greedy_case(3, 37, 1));
  }

  TEST_CASE("greedy search ends items at different times, for several end tokens") {
    for (const TierDevice& device : tier_devices()) {
      for (uint32_t batch : {1u, 33u, 65u}) {
        SearchCase c = greedy_case(batch, 12, 2);
        c.eos = {3, 7};
        c.max_new_tokens = 20;
        check_search(device, c);
      }
      SearchCase many = greedy_case(6, 40, 3);
      many.eos = {0, 5, 10, 15, 20, 25, 30, 39};
      check_search(device, many);
    }
  }

  TEST_CASE("greedy search launches only what live rows need") {
    for (const TierDevice& device : tier_devices()) {
      SearchCase c = greedy_case(40, 10, 4);
      c.eos = {2};
      c.max_new_tokens = 24;
      std::vector<uint32_t> live;
      SearchRun(device, c).finish([&](uint32_t slots) { live.push_back(slots); });
      CHECK(live.front() == 40);
      CHECK(std::is_sorted(live.rbegin(), live.rend()));
      CHECK(live.back() < 20);
    }
  }

  TEST_CASE("greedy search forces, suppresses and holds tokens back") {
    for (const TierDevice& device : tier_devices()) {
      SearchCase c = greedy_case(4, 11, 5);
      c.prompt = {1, 4, 2};
      c.eos = {3};
      c.forced_first = 9;
      c.forced_last = 3;
      c.suppress = {0, 6};
      check_search(device, c);
      c.forced_first.reset();
      c.begin_suppress = {1, 2, 4, 5};
      c.min_new_tokens = 5;
      check_search(device, c);
      c.max_new_tokens = 1;
      c.forced_first = 9;
      check_search(device, c);
    }
  }

  TEST_CASE("greedy search takes the smaller of equal tokens, and a possible one if there is any") {
    for (const TierDevice& device : tier_devices()) {
      SearchCase c = greedy_case(2, 9, 6);
      c.model = [](int64_t item, const std::vector<int64_t>& prefix) {
        std::vector<float> logits(9, -kInfinity);
        logits[(prefix.size() * 2 + static_cast<size_t>(item)) % 9] = 1.5f;
        logits[8] = 1.5f;
        return logits;
      };
      check_search(device, c);
    }
  }

  TEST_CASE("a NaN ends its item with a status, and no other") {
    for (const TierDevice& device : tier_devices()) {
      SearchCase c = greedy_case(5, 13, 7);
      c.eos = {3};
      const std::vector<FoundItem> clean = SearchRun(device, c).finish();
      const FakeModel model = c.model;
      c.model = [=](int64_t item, const std::vector<int64_t>& prefix) {
        std::vector<float> logits = model(item, prefix);
        if (item == 2 && prefix.size() == 2) logits[5] = kNan;
        if (item == 4) logits[0] = kInfinity;
        return logits;
      };
      const std::vector<FoundItem> found = SearchRun(device, c).finish();
      for (size_t i : {size_t{0}, size_t{1}, size_t{3}}) {
        CHECK_FALSE(found[i].nan);
        CHECK(found[i].sequences[0].ids == clean[i].sequences[0].ids);
        CHECK(found[i].sequences[0].score == clean[i].sequences[0].score);
      }
      CHECK(found[2].nan);
      CHECK(found[2].length == 2);
      CHECK(found[4].nan);
      CHECK(found[4].length == 1);
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("greedy_select refuses more than one beam or candidate") {
    const auto candidates = [](Shape shape) {
      return TensorDesc{"candidates", DType::kU32, std::move(shape)};
    };
    SearchParams p{.batch = 3, .beams = 1, .capacity = 8, .vocab = 20, .candidates = 1};
    CHECK(check_greedy_select(candidates({3, 1, 2}), p).ok());
    check_error(check_greedy_select(candidates({3, 2, 2}), p), "greedy_select", "(3, 2, 2)");
    p.beams = 2;
    check_error(check_greedy_select(candidates({3, 1, 2}), p), "greedy_select", "2 beam(s)");
  }

  TEST_CASE("greedy_select plans one invocation a slot after the candidates") {
    const SearchGraph g =
        search_graph({.batch = 70, .beams = 1, .capacity = 8, .vocab = 9, .candidates = 1});
    const Plan plan = plan_with_kernel(g.graph, Tier::kBaseline, "greedy_select_slot__u32");
    REQUIRE(plan.dispatches.size() == 3);
    CHECK(plan.dispatches[1].groups[0] == 3);
    CHECK(plan.dispatches[1].slots_per_group == 32);
    CHECK(plan.barriers.size() == 2);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
