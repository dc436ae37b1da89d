#include "plan/slicing.h"

#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "plan/random_plan.h"

namespace vkformer::testing {
namespace {

Plan plan_of(const std::vector<uint32_t>& groups, double flops_each) {
  Plan plan;
  for (uint32_t count : groups) {
    Dispatch d;
    d.groups = {count, 1, 1};
    d.flops = flops_each * count;
    plan.dispatches.push_back(d);
  }
  return plan;
}

SliceLimits limits(double microseconds) {
  return {.microseconds = microseconds, .max_flops = 1e12, .pieces = 1000};
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("slices of any budget cover every workgroup once, in order") {
    std::mt19937 engine(11);
    for (int round = 0; round < 100; ++round) {
      Plan plan = random_plan(static_cast<uint32_t>(round), 6, 12);
      for (Dispatch& d : plan.dispatches) {
        for (uint32_t& count : d.groups) count = static_cast<uint32_t>(pick(engine, 1, 9));
        d.flops = static_cast<double>(pick(engine, 0, 5000));
        if (pick(engine, 0, 5) == 0) d.live_axis = 0;
      }
      KernelCosts known;
      SliceCosts costs(plan, 10, known);
      SliceLimits most = limits(static_cast<double>(pick(engine, 1, 900)));
      most.max_flops = static_cast<double>(pick(engine, 1, 5000));
      most.pieces = static_cast<size_t>(pick(engine, 1, 4));
      PlanPosition position;
      PlanPosition expected;
      double flops = 0;
      std::set<std::array<uint32_t, 4>> seen;  // dispatch, x, y, z
      while (position.dispatch < plan.dispatches.size()) {
        const std::vector<PlanPiece> pieces = next_slice(plan, costs, most, position);
        REQUIRE(!pieces.empty());
        CHECK(pieces.size() <= most.pieces);
        for (const PlanPiece& piece : pieces) {
          REQUIRE(piece.dispatch == expected.dispatch);
          const Dispatch& d = plan.dispatches[piece.dispatch];
          CHECK(begin_of(plan, piece) == expected);
          CHECK(piece.starts() == (expected.group == 0));
          CHECK(piece.is_whole(d) == (costs.share(piece) == 1));
          flops += piece.part.flops;
          for (uint32_t z = 0; z < piece.part.groups[2]; ++z) {
            for (uint32_t y = 0; y < piece.part.groups[1]; ++y) {
              for (uint32_t x = 0; x < piece.part.groups[0]; ++x) {
                const auto& base = piece.part.base;
                const bool inside = base[0] + x < d.groups[0] && base[1] + y < d.groups[1] &&
                                    base[2] + z < d.groups[2];
                REQUIRE(inside);
                CHECK(seen.insert({piece.dispatch, base[0] + x, base[1] + y, base[2] + z}).second);
              }
            }
          }
          std::array<uint32_t, 3> sorted = d.groups;
          std::sort(sorted.begin(), sorted.end(), std::greater<>());
          const double steps = static_cast<double>(sorted[0]) * sorted[1];
          expected.group += static_cast<uint32_t>(std::lround(costs.share(piece) * steps));
          if (expected.group == sorted[0] * sorted[1]) expected = {piece.dispatch + 1, 0};
          // Learning in between moves the cuts and nothing else.
          costs.observe(piece, static_cast<double>(pick(engine, 0, 300)));
        }
        CHECK(position == expected);
      }
      CHECK(flops == doctest::Approx(plan.flops()));
      size_t all = 0;
      for (const Dispatch& d : plan.dispatches)
        all += size_t{d.groups[0]} * d.groups[1] * d.groups[2];
      CHECK(seen.size() == all);
    }
  }

  TEST_CASE("a slice keeps to its budget once the costs are known") {
    const Plan plan = plan_of({100, 1000, 10}, 50);
    KernelCosts known;
    SliceCosts costs(plan, 1, known);
    // Truth: 2 microseconds for each piece and 0.5 for each workgroup.
    const auto truth = [](const PlanPiece& piece) { return 2 + 0.5 * piece.part.groups[0]; };
    int over = 0, slices = 0;
    for (int round = 0; round < 30; ++round) {
      PlanPosition position;
      while (position.dispatch < plan.dispatches.size()) {
        const std::vector<PlanPiece> pieces = next_slice(plan, costs, limits(60), position);
        double time = 0;
        for (const PlanPiece& piece : pieces) time += truth(piece);
        for (const PlanPiece& piece : pieces) costs.observe(piece, truth(piece));
        if (round < 10) continue;
        ++slices;
        if (time > 60 * 1.1) ++over;
      }
    }
    CHECK(slices > 100);
    CHECK(over == 0);
  }

  TEST_CASE("what was measured of one dispatch is the first guess for its kernel") {
    Plan plan = plan_of({10, 20}, 100);
    KernelCosts known;
    SliceCosts costs(plan, 1000, known);
    const double before = costs.share_microseconds(1, 1.0);
    costs.observe({0, {{0, 0, 0}, {10, 1, 1}, 1000}}, 500);
    costs.observe({0, {{0, 0, 0}, {10, 1, 1}, 1000}}, 500);
    CHECK(costs.share_microseconds(1, 1.0) > 20 * before);
  }

  TEST_CASE("a single workgroup over the budget is a slice of its own") {
    const Plan plan = plan_of({3}, 1e6);
    KernelCosts known;
    const SliceCosts costs(plan, 1, known);
    PlanPosition position;
    for (int i = 0; i < 3; ++i) {
      const std::vector<PlanPiece> pieces = next_slice(plan, costs, limits(5), position);
      REQUIRE(pieces.size() == 1);
      CHECK(pieces[0].part.groups[0] == 1);
    }
    CHECK(position.dispatch == 1);
  }

  TEST_CASE("all pieces are the plan's dispatches, cut at the watchdog's limit") {
    const Plan plan = plan_of({10, 4}, 100);
    CHECK(all_pieces(plan, 1e9).size() == 2);
    CHECK(all_pieces(plan, 200).size() == 5 + 2);
  }
}

}  // namespace vkformer::testing
