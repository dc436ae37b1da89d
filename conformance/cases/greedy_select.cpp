// The cases of greedy_select: its checks, and what the benchmark times.
#include "ops/greedy_select.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "conformance/cases.h"
#include "conformance/search_cases.h"
#include "conformance/search_state.h"

namespace vkformer::conformance {
namespace {

struct GreedyStep {
  uint32_t rows, position, prompt;
  int64_t max_new_tokens;
  std::vector<int64_t> eos = {};
};

constexpr uint32_t kVocab = 41;

// What a slot is offered: tokens, end tokens, NaN, nothing, the impossible, sums that round.
struct Offer {
  double score;
  uint32_t token;
};
Offer offer_of(const GreedyStep& c, uint32_t slot) {
  const uint32_t any = slot * 7 % kVocab;
  const double score = -static_cast<double>(slot % 50) / 64;
  switch (slot % 7) {
    case 1:
      return {score, c.eos.empty() ? any : u32(c.eos[slot / 7 % c.eos.size()])};
    case 2:
      return {kUntouched, any};
    case 3:
      return {-std::numeric_limits<double>::infinity(), VKF_NO_TOKEN};
    case 4:
      return {-std::numeric_limits<double>::infinity(), any};
    case 5:
      return {-1e30, any};
    default:
      return {score, any};
  }
}

// The definition, row by row.
void choose(const GreedyStep& c, const Offer& offer, uint32_t row, SearchState& s) {
  const uint32_t length = c.position + 1;
  if (length < c.prompt) return;
  uint32_t* item = s.search.data() + s.layout.item(row);
  if (std::isnan(offer.score) || offer.token == VKF_NO_TOKEN) {
    item[VKF_ITEM_STATUS] = std::isnan(offer.score) ? VKF_STATUS_NAN : VKF_STATUS_NO_TOKEN;
    item[VKF_ITEM_LENGTH] = length;
    item[VKF_ITEM_ACTIVE] = 0;
    return;
  }
  const auto score = static_cast<float>(offer.score);
  s.search[s.layout.tokens(row) + length] = offer.token;
  s.set_float(s.layout.sequence(row, 0) + length, score);
  s.set_float(s.layout.score(row), s.get_float(s.layout.score(row)) + score);
  const bool end = std::find(c.eos.begin(), c.eos.end(), offer.token) != c.eos.end();
  if (!end && length + 1 < c.prompt + c.max_new_tokens) return;
  item[VKF_ITEM_LENGTH] = length + 1;
  item[VKF_ITEM_ACTIVE] = 0;
}

Result<CheckCase> greedy_case(const GreedyStep& c) {
  const SearchParams params{.batch = c.rows,
                            .beams = 1,
                            .capacity = c.prompt + u32(c.max_new_tokens) + 3,
                            .vocab = kVocab,
                            .candidates = 1,
                            .arg_count = 0};
  SearchState s = random_search(params, c.position, c.rows);
  s.ancestry.clear();
  CheckCase made;
  made.op.graph.set_step(c.rows);
  made.live_slots = s.slots();
  const SearchTensors t = bind_state(
      made.op, s, {.max_new_tokens = c.max_new_tokens, .eos_token_ids = c.eos}, c.prompt);
  std::vector<uint32_t> offers(size_t{2} * c.rows, kUnwritten);
  for (uint32_t slot = 0; slot < s.slots(); ++slot) {
    const Offer offer = offer_of(c, slot);
    offers[2 * slot] = std::bit_cast<uint32_t>(static_cast<float>(offer.score));
    offers[2 * slot + 1] = offer.token;
    choose(c, offer, s.row_of(slot), s);
  }
  Tensor candidates = words(offers);
  candidates.shape = {c.rows, 1, 2};
  const TensorId chosen = made.op.bind("candidates", std::move(candidates));
  VKF_CHECK(add_greedy_select(made.op.graph, chosen, t));
  VKF_CHECK(expect_search(made, s, Sequences::kScores));
  return made;
}

}  // namespace

void greedy_select_cases(OperatorCases& cases) {
  for (const uint32_t rows : {1u, 7u, 31u, 32u, 33u, 65u, 257u}) {
    const std::string at = std::to_string(rows);
    const bool quick = rows == 7 || rows == 65;
    const GreedyStep middle{rows, 7, 3, 13, {2, 11, 40}};
    cases.check("middle/" + at, quick, [=] { return greedy_case(middle); });
    GreedyStep c = middle;
    c.eos = {0, 5, 10, 15, 20, 25, 30, 35};
    cases.check("8-ends/" + at, quick, [=] { return greedy_case(c); });
    c = {rows, 15, 3, 13, {}};
    cases.check("last/" + at, quick, [=] { return greedy_case(c); });
    c = {rows, 2, 3, 1, {}};
    cases.check("only/" + at, quick, [=] { return greedy_case(c); });
    c = {rows, 4, 9, 13, {}};
    cases.check("prompt/" + at, quick, [=] { return greedy_case(c); });
  }
  cases.time_graph("gpt2 decode", "items=1 beams=1 capacity=1024 vocab=50257", select_graph);
  cases.limited_by("one invocation a row writes a few words");
}

}  // namespace vkformer::conformance
