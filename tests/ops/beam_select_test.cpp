#include "ops/beam_select.h"

#include "ops/search_expected.h"

namespace vkformer::testing {
namespace {

SearchCase beam_case(uint32_t beams, uint32_t vocab, uint32_t seed) {
  SearchCase c;
  c.batch = 3;
  c.beams = beams;
  c.vocab = vocab;
  c.model = random_model(vocab, seed);
  return c;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("beam search agrees with the reference over beams and vocabularies") {
    for (const TierDevice& device : tier_devices()) {
      for (uint32_t beams : {2u, 3u, 4u, 16u}) {
        for (uint32_t vocab : {2 * beams, 67u}) {
          CAPTURE(beams);
          CAPTURE(vocab);
          check_search(device, beam_case(beams, vocab, beams + vocab));
          SearchCase ends = beam_case(beams, vocab, beams * vocab);
          ends.eos = {1};
          ends.max_new_tokens = 14;
          check_search(device, ends);
        }
      }
    }
  }

  TEST_CASE("beam search with every length penalty and kind of early stopping") {
    for (const TierDevice& device : tier_devices()) {
      for (double penalty : {0.6, 1.0, 2.0, 0.0, -0.5}) {
        for (uint32_t early :
             {VKF_EARLY_STOPPING_NO, VKF_EARLY_STOPPING_YES, VKF_EARLY_STOPPING_NEVER}) {
          CAPTURE(penalty);
          CAPTURE(early);
          SearchCase c = beam_case(4, 20, 11);
          c.batch = 5;
          c.eos = {2};
          c.max_new_tokens = 12;
          c.length_penalty = penalty;
          c.early_stopping = early;
          check_search(device, c);
        }
      }
    }
  }

  TEST_CASE("beam search with several end tokens keeps enough candidates to go on") {
    for (const TierDevice& device : tier_devices()) {
      for (const std::vector<int64_t>& eos :
           {std::vector<int64_t>{0, 9}, {1, 2, 3}, {0, 2, 4, 6, 8, 10, 12, 14}}) {
        SearchCase c = beam_case(4, 40, 13);
        c.eos = eos;
        c.max_new_tokens = 10;
        check_search(device, c);
      }
    }
  }

  TEST_CASE("beam search over fewer tokens than candidates") {
    for (const TierDevice& device : tier_devices()) {
      SearchCase c = beam_case(3, 5, 14);
      c.eos = {1};
      check_search(device, c);
      c = beam_case(4, 6, 15);
      c.eos = {1, 2};
      check_search(device, c);
    }
  }

  TEST_CASE("beam search forces, suppresses and holds tokens back") {
    for (const TierDevice& device : tier_devices()) {
      SearchCase c = beam_case(4, 24, 17);
      c.prompt = {3, 1};
      c.eos = {2};
      c.forced_first = 9;
      c.forced_last = 2;
      c.suppress = {4, 5};
      c.max_new_tokens = 6;
      check_search(device, c);
      c.forced_first.reset();
      c.forced_last.reset();
      c.begin_suppress = {0, 1, 3, 7};
      c.min_new_tokens = 4;
      check_search(device, c);
      c.max_new_tokens = 1;
      c.min_new_tokens = 0;
      check_search(device, c);
    }
  }

  TEST_CASE("beam search breaks ties by the smaller beam, then the smaller token") {
    for (const TierDevice& device : tier_devices()) {
      SearchCase c = beam_case(3, 12, 0);
      c.max_new_tokens = 2;  // sums of two terms are equal in every precision
      c.model = [](int64_t item, const std::vector<int64_t>&) {
        std::vector<float> logits(12, 0.0f);
        logits[static_cast<size_t>(item)] = logits[5] = logits[11] = 2.0f;
        return logits;
      };
      check_search(device, c);
      c.eos = {5};
      check_search(device, c);
    }
  }

  TEST_CASE("beam search lives with impossible tokens") {
    for (const TierDevice& device : tier_devices()) {
      SearchCase c = beam_case(3, 16, 19);
      const FakeModel model = c.model;
      c.model = [=](int64_t item, const std::vector<int64_t>& prefix) {
        std::vector<float> logits = model(item, prefix);
        for (size_t i = 0; i < 16; ++i) {
          if ((i + prefix.size()) % 2 == 0) logits[i] = -kInfinity;
        }
        return logits;
      };
      c.eos = {4};
      check_search(device, c);
    }
  }

  TEST_CASE("a NaN ends its item's beams with a status, and no other's") {
    for (const TierDevice& device : tier_devices()) {
      SearchCase c = beam_case(4, 15, 23);
      c.eos = {3};
      const std::vector<FoundItem> clean = SearchRun(device, c).finish();
      const FakeModel model = c.model;
      c.model = [=](int64_t item, const std::vector<int64_t>& prefix) {
        std::vector<float> logits = model(item, prefix);
        if (item == 1 && prefix.size() == 3 && prefix[2] % 2 == 0) logits[7] = kNan;
        if (item == 1 && prefix.size() == 4) logits[7] = kNan;
        return logits;
      };
      const std::vector<FoundItem> found = SearchRun(device, c).finish();
      CHECK(found[1].nan);
      CHECK(found[1].length >= 3);
      for (size_t i : {size_t{0}, size_t{2}}) {
        CHECK_FALSE(found[i].nan);
        REQUIRE(found[i].sequences.size() == clean[i].sequences.size());
        for (size_t k = 0; k < found[i].sequences.size(); ++k) {
          CHECK(found[i].sequences[k].ids == clean[i].sequences[k].ids);
          CHECK(found[i].sequences[k].score == clean[i].sequences[k].score);
        }
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("beam_select refuses beams and candidates that do not fit") {
    const auto candidates = [](Shape shape) {
      return TensorDesc{"candidates", DType::kU32, std::move(shape)};
    };
    SearchParams p{.batch = 3, .beams = 4, .capacity = 8, .vocab = 20, .candidates = 8};
    CHECK(check_beam_select(candidates({12, 8, 2}), p).ok());
    check_error(check_beam_select(candidates({3, 8, 2}), p), "beam_select", "(12, 8, 2)");
    p.candidates = 7;
    check_error(check_beam_select(candidates({12, 7, 2}), p), "beam_select", "8");
    p.beams = VKF_MAX_BEAMS + 1;
    check_error(check_beam_select(candidates({51, 34, 2}), p), "beam_select", "16");
  }

  TEST_CASE("beam_select plans one workgroup an item") {
    const SearchGraph g =
        search_graph({.batch = 5, .beams = 4, .capacity = 8, .vocab = 9, .candidates = 8});
    const Plan plan = plan_with_kernel(g.graph, Tier::kBaseline, "beam_select_item__u32");
    REQUIRE(plan.dispatches.size() == 3);
    CHECK(plan.dispatches[1].groups[0] == 5);
    CHECK(plan.dispatches[1].slots_per_group == 4);
    CHECK(plan.barriers.size() == 2);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
