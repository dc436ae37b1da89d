// Checks of how a decoding step chooses tokens: the best ones, penalties, and the likeliest where a
// draw has only one outcome. Whole searches are in models.cpp.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/content.h"
#include "ops/token_sample.h"
#include "params/decode_state.h"
#include "reference/log_softmax.h"
#include "reference/sampling.h"
#include "reference/top_k.h"

namespace vkformer::conformance {
namespace {

constexpr double kUntouched = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kRows = 6, kLive = 4;  // slots, of which fewer are live

// Tokens that every row has behind it, the first three of which were its prompt.
const std::vector<int64_t> kHistory = {0, 2, 0, 1, 2, 0, 2};

std::vector<uint32_t> words_of(const void* data, size_t bytes) {
  std::vector<uint32_t> list(bytes / 4);
  std::memcpy(list.data(), data, bytes);
  return list;
}

// A search in the middle, without any rule.
SearchTensors bind_search(PreparedOperator& op, uint32_t beams, int64_t vocab) {
  SearchTensors t{.params = {.batch = u32(kRows) / beams,
                             .beams = beams,
                             .capacity = 16,
                             .vocab = u32(vocab),
                             .candidates = beams == 1 ? 1 : 2 * beams,
                             .arg_count = 0}};
  std::vector<uint32_t> search(search_words(t.params), 0u);
  std::vector<uint32_t> state(VKF_STATE_WORDS + VKF_MAX_SLOTS, 0u);
  state[0] = u32(kLive) / beams;
  state[1] = u32(kLive);
  state[2] = u32(static_cast<int64_t>(kHistory.size())) - 1;
  for (size_t row = 0; row < static_cast<size_t>(kRows); ++row) {
    std::copy(kHistory.begin(), kHistory.end(),
              search.begin() + static_cast<std::ptrdiff_t>(row * t.params.capacity));
    state[VKF_STATE_WORDS + row] = u32(static_cast<int64_t>(row));
  }
  SearchSettings settings{};
  settings.prompt_length = 3;
  settings.max_length = 16;
  settings.forced_first = settings.forced_last = VKF_NO_TOKEN;
  settings.length_penalty = 1;
  t.search = op.bind("search", words(search));
  t.state = op.bind("decode_state", words(state));
  t.settings = op.bind("settings", words(words_of(&settings, sizeof settings)));
  t.suppress = op.bind("suppress", words(std::vector<uint32_t>(2 * ((u32(vocab) + 31) / 32), 0u)));
  return t;
}

void bind_choice(PreparedOperator& op, SearchTensors& t, const ChoiceRow& row) {
  std::vector<uint32_t> list(choice_words(t.params, 0), 0u);
  for (size_t r = 0; r < static_cast<size_t>(kRows); ++r) {
    std::memcpy(list.data() + r * VKF_CHOICE_WORDS, &row, sizeof row);
  }
  t.choice = op.bind("choice", words(list));
}

ChoiceRow plain_choice() {
  ChoiceRow row{};
  row.temperature = row.top_p = row.typical_p = row.repetition = 1;
  return row;
}

// (R, K, 2) words: the bits of a score and a token, as two tensors.
Result<TensorMap> split_candidates(TensorMap outputs) {
  const auto found = outputs.find("candidates");
  if (found == outputs.end()) return internal_error("[conformance] There are no candidates.");
  const Shape shape{found->second.shape[0], found->second.shape[1]};
  Tensor scores = Tensor::zeros(DType::kF32, shape), tokens = Tensor::zeros(DType::kU32, shape);
  for (size_t i = 0; i < scores.bytes.size(); i += 4) {
    std::memcpy(scores.bytes.data() + i, found->second.bytes.data() + 2 * i, 4);
    std::memcpy(tokens.bytes.data() + i, found->second.bytes.data() + 2 * i + 4, 4);
  }
  outputs.clear();
  outputs.emplace("scores", std::move(scores));
  outputs.emplace("tokens", std::move(tokens));
  return outputs;
}

constexpr double kPoison = 0x7fc0dead;  // what a token that is not written holds

// Logits far enough from each other that rounding does not change their order.
Array distinct_logits(int64_t vocab, uint64_t seed) {
  Noise noise(seed);
  Array logits = reference::filled({kRows, vocab}, 0.0);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < vocab; ++i) logits[row * vocab + i] = static_cast<double>(i);
    for (int64_t i = vocab - 1; i > 0; --i) {
      std::swap(logits[row * vocab + i], logits[row * vocab + noise.below(i + 1)]);
    }
  }
  return scaled(std::move(logits), 20.0 / static_cast<double>(vocab));
}

Result<CheckCase> candidates_case(int64_t vocab, uint32_t beams) {
  const Array logits = distinct_logits(vocab, 1);
  CheckCase made;
  made.op.graph.set_step(u32(kRows));
  made.live_slots = u32(kLive);
  const SearchTensors t = bind_search(made.op, beams, vocab);
  const TensorId x = made.op.bind("logits", floats(logits));
  VKF_ASSIGN(const TensorId y, add_token_candidates(made.op.graph, x, t));
  made.op.name_output(y, "candidates");
  made.op.finish = split_candidates;
  VKF_ASSIGN(const Array p, reference::log_softmax(logits));
  const int64_t k = t.params.candidates;
  VKF_ASSIGN(const reference::TopK best, reference::top_k(p, k));
  Array scores = best.values, tokens = best.indices;
  for (int64_t i = kLive * k; i < scores.size(); ++i) {
    scores[i] = kUntouched;
    tokens[i] = kPoison;
  }
  made.expected.emplace("scores", Expected{std::move(scores), terms(vocab), 20});
  made.expected.emplace("tokens", Expected{std::move(tokens)});
  return made;
}

Result<CheckCase> scores_case(int64_t vocab, Content content) {
  const Array logits = random_array({kRows, vocab}, 2, content);
  CheckCase made;
  made.op.graph.set_step(u32(kRows));
  made.live_slots = u32(kLive);
  SearchTensors t = bind_search(made.op, 1, vocab);
  ChoiceRow row = plain_choice();
  row.repetition = 1.5f;
  row.presence = 0.25f;
  row.frequency = 0.5f;
  row.no_repeat = 2;
  bind_choice(made.op, t, row);
  const TensorId x = made.op.bind("logits", floats(logits));
  VKF_ASSIGN(const TensorId y, add_token_scores(made.op.graph, x, t, ScoresFrom::kLogits));
  made.op.name_output(y, "scores");
  const reference::PenaltySettings settings{1.5, 0.25, 0.5, 2, {}};
  Array scores = reference::filled(logits.shape, kUntouched);
  for (int64_t slot = 0; slot < kLive; ++slot) {
    const std::vector<double> own = reference::penalised_scores(
        std::span(logits.data)
            .subspan(static_cast<size_t>(slot * vocab), static_cast<size_t>(vocab)),
        kHistory, 3, settings);
    std::copy(own.begin(), own.end(), scores.data.begin() + slot * vocab);
  }
  made.expected.emplace("scores", Expected{std::move(scores), terms(2), 4});
  return made;
}

// A temperature of 0, or one token that is kept: the draw has one outcome.
Result<CheckCase> sample_case(int64_t vocab, bool cold) {
  const Array logits = distinct_logits(vocab, 3);
  CheckCase made;
  made.op.graph.set_step(u32(kRows));
  made.live_slots = u32(kLive);
  SearchTensors t = bind_search(made.op, 1, vocab);
  ChoiceRow row = plain_choice();
  row.temperature = cold ? 0.0f : 1.0f;
  row.top_k = cold ? 0 : 1;
  row.seed_low = 5;
  bind_choice(made.op, t, row);
  const TensorId x = made.op.bind("logits", floats(logits));
  const TensorId s = made.op.bind("given_scores", floats(logits));
  VKF_ASSIGN(const TensorId y, add_token_sample(made.op.graph, s, x, t));
  made.op.name_output(y, "candidates");
  made.op.finish = split_candidates;
  VKF_ASSIGN(const reference::TopK best, reference::top_k(logits, 1));
  Array tokens = best.indices;
  for (int64_t i = kLive; i < kRows; ++i) tokens[i] = kPoison;
  made.expected.emplace("tokens", Expected{std::move(tokens)});
  return made;
}

}  // namespace

void add_search_checks(CheckList& list) {
  for (const int64_t vocab : {4, 7, 31, 32, 33, 127, 128, 129, 1500, 5003}) {
    const std::string at = std::to_string(vocab);
    const bool quick = vocab == 33 || vocab == 1500;
    list.add("token_candidates", "greedy/" + at, quick, [=] { return candidates_case(vocab, 1); });
    if (vocab >= 4) {
      list.add("token_candidates", "beams/" + at, quick, [=] { return candidates_case(vocab, 2); });
    }
    list.add("token_scores", "penalties/" + at, quick,
             [=] { return scores_case(vocab, Content::kNormal); });
    list.add("token_sample", "cold/" + at, quick, [=] { return sample_case(vocab, true); });
    list.add("token_sample", "top-1/" + at, quick, [=] { return sample_case(vocab, false); });
  }
  list.add("token_scores", "wide/129", true, [] { return scores_case(129, Content::kWide); });
}

}  // namespace vkformer::conformance
