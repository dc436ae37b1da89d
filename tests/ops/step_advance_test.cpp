#include "ops/step_advance.h"

#include "ops/search_run.h"

namespace vkformer::testing {

TEST_SUITE("gpu") {
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
