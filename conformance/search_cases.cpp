#include "conformance/search_cases.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/search_state.h"
#include "measure/benchmark_inputs.h"
#include "ops/beam_select.h"
#include "ops/greedy_select.h"
#include "ops/step_advance.h"
#include "params/decode_state.h"

namespace vkformer::conformance {

SearchTensors bind_search(PreparedOperator& op, uint32_t beams, int64_t vocab) {
  SearchState s;
  s.layout.p = {.batch = u32(kSearchRows) / beams,
                .beams = beams,
                .capacity = 16,
                .vocab = u32(vocab),
                .candidates = beams == 1 ? 1 : 2 * beams,
                .arg_count = 0};
  s.position = u32(static_cast<int64_t>(kHistory.size())) - 1;
  for (uint32_t item = 0; item < u32(kSearchLive) / beams; ++item) s.live.push_back(item);
  s.starts.assign(s.layout.p.batch, 0);
  s.search.assign(search_words(s.layout.p), 0u);
  for (size_t row = 0; row < s.layout.rows(); ++row) {
    std::copy(kHistory.begin(), kHistory.end(),
              s.search.begin() + static_cast<std::ptrdiff_t>(s.layout.tokens(row)));
  }
  SearchTensors t = bind_state(op, s, {.max_new_tokens = 13}, 3);
  t.suppress = op.bind("suppress", words(std::vector<uint32_t>(2 * ((u32(vocab) + 31) / 32), 0u)));
  return t;
}

void bind_choice(PreparedOperator& op, SearchTensors& t, const ChoiceRow& row) {
  std::vector<uint32_t> list(choice_words(t.params, 0), 0u);
  for (size_t r = 0; r < static_cast<size_t>(kSearchRows); ++r) {
    std::memcpy(list.data() + r * VKF_CHOICE_WORDS, &row, sizeof row);
  }
  t.choice = op.bind("choice", words(list));
}

ChoiceRow plain_choice() {
  ChoiceRow row{};
  row.temperature = row.top_p = row.typical_p = row.repetition = 1;
  return row;
}

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

Array distinct_logits(int64_t vocab, uint64_t seed) {
  Noise noise(seed);
  Array logits = reference::filled({kSearchRows, vocab}, 0.0);
  for (int64_t row = 0; row < kSearchRows; ++row) {
    for (int64_t i = 0; i < vocab; ++i) logits[row * vocab + i] = static_cast<double>(i);
    for (int64_t i = vocab - 1; i > 0; --i) {
      std::swap(logits[row * vocab + i], logits[row * vocab + noise.below(i + 1)]);
    }
  }
  return scaled(std::move(logits), 20.0 / static_cast<double>(vocab));
}

SearchTensors search_tensors(StepGraph& in) {
  const int64_t items = in.number("items"), beams = in.number("beams");
  const int64_t rows = items * beams;
  SearchTensors t{.params = {}};
  t.params.batch = u32(items);
  t.params.beams = u32(beams);
  t.params.capacity = u32(in.number("capacity"));
  t.params.vocab = u32(in.number("vocab"));
  t.params.candidates = beams == 1 ? 1 : 2 * u32(beams);
  const int64_t capacity = in.number("capacity");
  t.state = in.state(rows, items, 0);
  std::vector<uint32_t> search(search_words(t.params), 0u);
  // params/search.h: tokens (R, C), scores (R), items (B, 4).
  const auto first_item = static_cast<size_t>(rows * capacity + rows);
  for (size_t i = 0; i < static_cast<size_t>(items); ++i) {
    search[first_item + 4 * i + VKF_ITEM_ACTIVE] = 1;
  }
  t.search = in.words("search", {static_cast<int64_t>(search.size())}, search);
  SearchSettings settings{};
  settings.prompt_length = 1;
  settings.max_length = t.params.capacity;
  settings.forced_first = settings.forced_last = VKF_NO_TOKEN;
  settings.length_penalty = 1.0f;
  settings.eos_count = 1;
  std::vector<uint32_t> words(sizeof settings / 4);
  std::memcpy(words.data(), &settings, sizeof settings);
  t.settings = in.words("settings", {static_cast<int64_t>(words.size())}, words);
  const int64_t half = (int64_t{t.params.vocab} + 31) / 32;
  t.suppress = in.words("suppress", {2, half}, std::vector<uint32_t>(2 * u32(half), 0u));
  std::vector<uint32_t> ancestry(static_cast<size_t>(rows * capacity));
  for (size_t i = 0; i < ancestry.size(); ++i) {
    ancestry[i] = u32(static_cast<int64_t>(i) / capacity);
  }
  t.ancestry = in.words("ancestry", {rows, capacity}, ancestry);
  t.step_ids = in.words("step_ids", {rows}, std::vector<uint32_t>(u32(rows), 0u));
  t.args = in.words("args", {int64_t{kMaxStepDispatches} * 7}, {});
  return t;
}

TensorId candidates(StepGraph& in, const SearchParams& p) {
  const uint32_t rows = p.batch * p.beams;
  std::vector<uint32_t> words;
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t k = 0; k < p.candidates; ++k) {
      const float score = -0.25f * static_cast<float>(k + 1);
      uint32_t bits = 0;
      std::memcpy(&bits, &score, 4);
      words.insert(words.end(), {bits, (row * p.candidates + k + 1) % p.vocab});
    }
  }
  return in.words("candidates", {rows, p.candidates, 2}, words);
}

TensorId choice_words_of(StepGraph& in, const SearchParams& p) {
  std::vector<uint32_t> words(choice_words(p, 0), 0u);
  ChoiceRow row{};
  row.temperature = 0.8f;
  row.top_p = 0.95f;
  row.typical_p = 1.0f;
  row.top_k = 40;
  row.repetition = 1.1f;
  for (size_t r = 0; r < size_t{p.batch} * p.beams; ++r) {
    std::memcpy(words.data() + r * VKF_CHOICE_WORDS, &row, sizeof row);
  }
  return in.words("choice", {static_cast<int64_t>(words.size())}, words);
}

Status select_graph(StepGraph& in) {
  const SearchTensors t = search_tensors(in);
  const TensorId chosen = candidates(in, t.params);
  return t.params.beams == 1 ? add_greedy_select(in.graph(), chosen, t)
                             : add_beam_select(in.graph(), chosen, t);
}

}  // namespace vkformer::conformance
