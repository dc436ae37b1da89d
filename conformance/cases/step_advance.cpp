// The cases of step_advance: its checks, and what the benchmark times.
#include "ops/step_advance.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/search_cases.h"
#include "conformance/search_state.h"
#include "conformance/step_graph.h"
#include "ops/activation.h"
#include "params/decode_state.h"

namespace vkformer::conformance {
namespace {

struct Advance {
  uint32_t items = 1, beams = 1, position = 4;
  uint32_t commands = 5;  // indirect dispatches of the step
  enum class Ending : uint8_t { kNone, kSome, kAll, kBefore } ending = Ending::kSome;
};

// A table of commands: what dispatches of a step have, along every axis.
std::vector<uint32_t> command_table(uint32_t commands) {
  Noise noise(commands);
  std::vector<uint32_t> table;
  for (uint32_t i = 0; i < commands; ++i) {
    const uint32_t per_group = 1u << noise.below(7);
    table.push_back(i % 3 | per_group << 2);
    for (int axis = 0; axis < 3; ++axis) table.push_back(1 + u32(noise.below(70)));
  }
  return table;
}

// The next step's group counts: the live axis counts slots, the others are in the table.
std::vector<uint32_t> group_counts(const std::vector<uint32_t>& table, uint32_t slots) {
  std::vector<uint32_t> counts;
  for (size_t i = 0; i < table.size(); i += 4) {
    const uint32_t per_group = table[i] >> 2;
    for (uint32_t axis = 0; axis < 3; ++axis) {
      const bool live = axis == (table[i] & 3u);
      counts.push_back(live ? (slots + per_group - 1) / per_group : table[i + 1 + axis]);
    }
  }
  return counts;
}

Expected expected_words(const std::vector<uint32_t>& list) {
  return {{{static_cast<int64_t>(list.size())}, {list.begin(), list.end()}}};
}

Result<CheckCase> advance_case(const Advance& c) {
  const SearchParams params{.batch = c.items,
                            .beams = c.beams,
                            .capacity = c.position + 5,
                            .vocab = 50,
                            .candidates = 2 * c.beams,
                            .arg_count = 0};
  SearchState s = random_search(params, c.position + 1, c.items);  // the step has chosen
  s.position = c.position;
  s.ancestry.clear();
  if (c.ending == Advance::Ending::kBefore) s.live.clear();
  std::vector<uint32_t> after;
  for (const uint32_t item : s.live) {
    const bool ends =
        c.ending == Advance::Ending::kAll || (c.ending == Advance::Ending::kSome && item % 4 != 3);
    s.search[s.layout.item(item) + VKF_ITEM_ACTIVE] = ends ? 0 : 1;
    if (!ends) after.push_back(item);
  }
  const uint32_t rows = c.items * c.beams;
  CheckCase made;
  made.op.graph.set_step(rows);
  made.live_slots = s.slots();
  SearchTensors t = bind_state(made.op, s, {}, 1);
  t.step_ids = made.op.graph.add_external("step_ids", DType::kU32, {rows});
  const std::vector<uint32_t> table = command_table(c.commands);
  std::vector<uint32_t> args(size_t{3} * c.commands, kUnwritten);
  args.insert(args.end(), table.begin(), table.end());
  args.push_back(kUnwritten);  // after the last table
  t.args = made.op.bind("args", words(args));
  // A dispatch over live slots for each command: the plan counts them.
  TensorId x = made.op.bind("x", floats(random_array({rows, 1}, 1)));
  for (uint32_t i = 0; i < c.commands; ++i) {
    VKF_ASSIGN(x, add_activation(made.op.graph, x, {ActivationKind::kRelu}));
  }
  VKF_CHECK(add_step_advance(made.op.graph, t));

  std::vector<uint32_t> state = s.state_words();
  if (!s.live.empty()) {
    s.live = after;
    ++s.position;
    const std::vector<uint32_t> next = s.state_words();
    std::copy_n(next.begin(), 3, state.begin());
    state[3] = 1;
    std::copy_n(next.begin() + VKF_STATE_WORDS, s.slots(), state.begin() + VKF_STATE_WORDS);
  }
  made.expected.emplace("decode_state", expected_words(state));
  Array ids = reference::filled({rows}, kPoison);
  for (uint32_t slot = 0; slot < s.slots(); ++slot) {
    ids[slot] = s.search[s.layout.tokens(s.row_of(slot)) + s.position];
  }
  made.expected.emplace("step_ids", Expected{std::move(ids)});
  const std::vector<uint32_t> counts = group_counts(table, s.slots());
  std::copy(counts.begin(), counts.end(), args.begin());
  made.expected.emplace("args", expected_words(args));
  return made;
}

Status advance_graph(StepGraph& in) {
  return add_step_advance(in.graph(), search_tensors(in));
}

}  // namespace

void step_advance_cases(OperatorCases& cases) {
  using enum Advance::Ending;
  for (const auto& [items, beams] : {std::pair{1u, 1u},
                                     {7u, 1u},
                                     {5u, 4u},
                                     {31u, 1u},
                                     {11u, 3u},
                                     {33u, 1u},
                                     {9u, 16u},
                                     {65u, 2u},
                                     {255u, 16u}}) {
    const std::string at = size_text({items, beams});
    const bool quick = beams == 4 || items == 33;
    for (const auto& [ending, name] :
         {std::pair{kNone, "none"}, {kSome, "some"}, {kAll, "all"}, {kBefore, "before"}}) {
      cases.check(std::string(name) + "-end/" + at, quick, [=, i = items, b = beams, e = ending] {
        return advance_case({.items = i, .beams = b, .ending = e});
      });
    }
  }
  for (const uint32_t commands : {0u, 1u, 31u, 32u, 33u, 129u}) {
    cases.check("commands/" + std::to_string(commands), commands == 33,
                [=] { return advance_case({.items = 6, .beams = 2, .commands = commands}); });
  }
  cases.time_graph("marian 6 beams", "items=1 beams=6 capacity=128 vocab=59514", advance_graph);
  cases.limited_by("one workgroup packs the live rows and writes the next step's sizes");
}

}  // namespace vkformer::conformance
