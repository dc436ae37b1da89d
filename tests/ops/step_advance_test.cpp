#include "ops/step_advance.h"

#include "ops/search_run.h"

namespace vkformer::testing {
namespace {

struct After {
  std::vector<uint32_t> state, step_ids, args;
};

// One advance of `beams` beams an item; `active` says which items live on, `before` which were
// live.
After advance(const TierDevice& device, uint32_t beams, const std::vector<uint32_t>& before,
              const std::vector<uint32_t>& active, uint32_t position) {
  const SearchParams p{.batch = static_cast<uint32_t>(active.size()),
                       .beams = beams,
                       .capacity = 9,
                       .vocab = 50,
                       .candidates = 2 * beams};
  const SearchLayout layout{p};
  Graph graph;
  graph.set_step(p.batch * beams);
  const SearchTensors t = add_search_externals(graph, p);
  REQUIRE(add_step_advance(graph, t).ok());
  std::vector<uint32_t> search(search_words(p), 0u);
  for (uint32_t i = 0; i < p.batch; ++i) search[layout.item(i) + VKF_ITEM_ACTIVE] = active[i];
  for (size_t row = 0; row < layout.rows(); ++row) {
    search[layout.tokens(row) + position + 1] = static_cast<uint32_t>(row + 10);
  }
  std::vector<uint32_t> rows;
  for (uint32_t item : before) {
    for (uint32_t j = 0; j < beams; ++j) rows.push_back(item * beams + j);
  }
  Tensor state = make_state(rows, position);
  const auto live_items = static_cast<uint32_t>(before.size());
  std::memcpy(state.bytes.data(), &live_items, 4);
  // No dispatch of this plan is indirect: the table is empty, and run_step needs none.
  const TensorMap all =
      run_step(device, graph,
               {{"search", word_tensor(search, {static_cast<int64_t>(search.size())})},
                {"decode_state", state}},
               static_cast<uint32_t>(rows.size()));
  return {words_of(all.at("decode_state")), words_of(all.at("step_ids")), words_of(all.at("args"))};
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("step_advance packs live items to the front in their order") {
    for (const TierDevice& device : tier_devices()) {
      const After after = advance(device, 2, {0, 2, 3, 5}, {1, 1, 0, 1, 1, 1}, 4);
      CHECK(after.state[0] == 3);
      CHECK(after.state[1] == 6);
      CHECK(after.state[2] == 5);
      CHECK(after.state[3] == 1);
      const std::vector<uint32_t> rows(after.state.begin() + 16, after.state.begin() + 22);
      CHECK(rows == std::vector<uint32_t>{0, 1, 6, 7, 10, 11});
      const std::vector<uint32_t> ids(after.step_ids.begin(), after.step_ids.begin() + 6);
      CHECK(ids == std::vector<uint32_t>{10, 11, 16, 17, 20, 21});
    }
  }

  TEST_CASE("step_advance with nothing left stays where it is") {
    for (const TierDevice& device : tier_devices()) {
      After after = advance(device, 1, {1}, {1, 0}, 3);
      CHECK(after.state[0] == 0);
      CHECK(after.state[1] == 0);
      CHECK(after.state[2] == 4);
      after = advance(device, 1, {}, {0, 0}, 4);
      CHECK(after.state[0] == 0);
      CHECK(after.state[2] == 4);
      CHECK(after.state[3] == 0);
    }
  }

  TEST_CASE("further steps after the end of a search change nothing") {
    for (const TierDevice& device : tier_devices()) {
      SearchCase c;
      c.batch = 3;
      c.vocab = 8;
      c.model = random_model(8, 3);
      c.eos = {2, 5};
      SearchRun run(device, c);
      const std::vector<FoundItem> found = run.finish();
      const std::vector<FoundItem> again = run.overrun();
      for (size_t i = 0; i < found.size(); ++i) {
        CHECK(again[i].length == found[i].length);
        CHECK(again[i].sequences[0].ids == found[i].sequences[0].ids);
        CHECK(again[i].sequences[0].score == found[i].sequences[0].score);
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("step_advance refuses graphs that are not its step, and too many rows") {
    const SearchParams p{.batch = 3, .beams = 2, .capacity = 8, .vocab = 20, .candidates = 4};
    Graph graph;
    SearchTensors t{.params = p};
    check_error(check_step_advance(graph, t), "step_advance", "6 rows");
    graph.set_step(5);
    check_error(check_step_advance(graph, t), "step_advance", "6 rows");
    graph.set_step(6);
    CHECK(check_step_advance(graph, t).ok());
    t.params.batch = 4081;
    t.params.beams = 1;
    graph.set_step(4081);
    check_error(check_step_advance(graph, t), "step_advance", "4080");
  }

  TEST_CASE("step_advance's table lists the indirect dispatches of a plan") {
    const SearchGraph g =
        search_graph({.batch = 5, .beams = 4, .capacity = 8, .vocab = 9, .candidates = 8});
    const Plan plan = plan_with_kernel(g.graph, Tier::kBaseline, "step_advance_all__u32");
    CHECK(plan.dispatches.back().live_axis == -1);
    CHECK(step_arg_table(plan) == std::vector<uint32_t>{0 | 1 << 2, 20, 1, 1, 0 | 4 << 2, 5, 1, 1});
    SearchParams pushed{};
    std::memcpy(&pushed, plan.dispatches.back().push.data(), sizeof(pushed));
    CHECK(pushed.arg_count == 2);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
