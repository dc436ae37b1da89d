// Rows of logits, histories and settings through token_scores and token_sample, once: what the
// tests of the two share.
#pragma once

#include "ops/search_run.h"
#include "ops/step_run.h"
#include "ops/token_sample.h"
#include "reference/sampling.h"

namespace vkformer::testing {

struct ChoiceCase {
  Array logits;                                 // (R, V)
  std::vector<std::vector<int64_t>> histories;  // of every row; empty: the token 0 alone
  uint32_t prompt = 1;                          // positions that were given
  std::vector<ChoiceRow> rows;                  // settings of every row, or one for all
  std::vector<TokenRule> rules;                 // of all rows
  std::vector<uint32_t> suppress;               // (2, ceil(V/32)); empty: none
  std::vector<std::vector<int64_t>> allowed;    // tokens of every row, where its `masked` is set
  std::vector<int64_t> eos;
  uint32_t max_new_tokens = 100, min_new_tokens = 0;
  std::optional<int64_t> forced_first, forced_last;
  ScoresFrom from = ScoresFrom::kLogits;
  std::optional<uint32_t> live;  // slots; absent: all
  SampleOutput output = SampleOutput::kToken;
};

struct ChoiceFound {
  Array scores;                 // (R, V)
  Array left;                   // (R, V), of SampleOutput::kScores, in place of what follows
  std::vector<float> values;    // (R)
  std::vector<uint32_t> words;  // bits of `values`
  std::vector<uint32_t> tokens;
};

inline ChoiceRow plain_choice() {
  ChoiceRow row{};
  row.temperature = row.top_p = row.typical_p = row.repetition = 1;
  return row;
}

class ChoiceRun {
 public:
  explicit ChoiceRun(const ChoiceCase& c) : c_(c) {
    rows_ = static_cast<uint32_t>(c.logits.dim(0));
    length_ = 1;
    for (const auto& h : c.histories) length_ = std::max(length_, static_cast<uint32_t>(h.size()));
    p_ = {.batch = rows_,
          .beams = 1,
          .capacity = length_ + 2,
          .vocab = static_cast<uint32_t>(c.logits.dim(1)),
          .candidates = 1,
          .arg_count = 0};
  }

  ChoiceFound run(const TierDevice& device) const {
    const std::vector<uint32_t> choice = choice_buffer();
    Graph graph;
    graph.set_step(rows_);
    const TensorId logits = graph.add_external("logits", DType::kF32, c_.logits.shape);
    const auto words = [&](const char* name, size_t count) {
      return graph.add_external(name, DType::kU32, {static_cast<int64_t>(count)});
    };
    SearchTensors t{.params = p_};
    t.search = words("search", search_words(p_));
    t.state = words("decode_state", kStateWords);
    t.settings = words("settings", sizeof(SearchSettings) / 4);
    t.choice = words("choice", choice.size());
    const auto scores = add_token_scores(graph, logits, t, c_.from);
    REQUIRE_MESSAGE(scores.ok(), scores.error().message);
    const auto drawn = add_token_sample(graph, *scores, logits, t, c_.output, filters());
    REQUIRE_MESSAGE(drawn.ok(), drawn.error().message);
    show(graph, *scores, "scores");
    show(graph, *drawn, "candidates");
    const TensorMap given = {{"logits", reference::to_tensor(c_.logits)},
                             {"search", words_tensor(search_buffer())},
                             {"decode_state", state()},
                             {"settings", words_tensor(settings())},
                             {"choice", words_tensor(choice)}};
    const uint32_t live = c_.live.value_or(rows_);
    const TensorMap all = run_step(device, graph, given, live);
    if (p_.vocab > VKF_VOCAB_PART) {  // several workgroups a row: they may be cut apart
      const TensorMap cut = run_step(device, graph, given, live, 1e12);
      CHECK(cut.at("candidates").bytes == all.at("candidates").bytes);
    }
    ChoiceFound found;
    const auto array = reference::from_tensor(all.at("scores"));
    REQUIRE(array.ok());
    found.scores = *array;
    if (c_.output == SampleOutput::kScores) {
      const auto left = reference::from_tensor(all.at("candidates"));
      REQUIRE(left.ok());
      found.left = *left;
      return found;
    }
    const std::vector<uint32_t> chosen = words_of(all.at("candidates"));
    for (size_t i = 0; i < chosen.size(); i += 2) {
      found.words.push_back(chosen[i]);
      found.values.push_back(std::bit_cast<float>(chosen[i]));
      found.tokens.push_back(chosen[i + 1]);
    }
    return found;
  }

 private:
  static Tensor words_tensor(const std::vector<uint32_t>& words) {
    return word_tensor(words, {static_cast<int64_t>(words.size())});
  }

  static void show(Graph& graph, TensorId id, const char* name) {
    graph.tensor(id).kind = TensorKind::kExternal;
    graph.tensor(id).name = name;
  }

  // Those that some row has.
  SampleFilters filters() const {
    SampleFilters all{.top_k = false, .top_p = false, .typical = false};
    for (const ChoiceRow& row : c_.rows) {
      const SampleFilters own = SampleFilters::of(row);
      all = {.top_k = all.top_k || own.top_k,
             .top_p = all.top_p || own.top_p,
             .typical = all.typical || own.typical};
    }
    return all;
  }

  const std::vector<int64_t>& history(size_t row) const {
    static const std::vector<int64_t> kStart = {0};
    return c_.histories.empty() ? kStart : c_.histories[row];
  }

  uint32_t start(size_t row) const { return length_ - static_cast<uint32_t>(history(row).size()); }

  std::vector<uint32_t> search_buffer() const {
    std::vector<uint32_t> words(search_words(p_), 0x7fffffffu);  // no token: never to be looked at
    for (size_t row = 0; row < rows_; ++row) {
      const std::vector<int64_t>& h = history(row);
      std::transform(h.begin(), h.end(),
                     words.begin() + static_cast<ptrdiff_t>(row * p_.capacity + start(row)),
                     [](int64_t id) { return static_cast<uint32_t>(id); });
    }
    return words;
  }

  Tensor state() const {
    std::vector<uint32_t> entries(rows_);
    for (uint32_t row = 0; row < rows_; ++row) {
      entries[row] = row | (start(row) << VKF_SLOT_ROW_BITS);
    }
    Tensor state = make_state(entries, length_ - 1);
    const uint32_t live = c_.live.value_or(rows_);
    std::memcpy(state.bytes.data() + 4, &live, 4);
    return state;
  }

  std::vector<uint32_t> settings() const {
    SearchCase s;
    s.prompt.assign(c_.prompt, 0);
    s.max_new_tokens = c_.max_new_tokens;
    s.min_new_tokens = c_.min_new_tokens;
    s.eos = c_.eos;
    s.forced_first = c_.forced_first;
    s.forced_last = c_.forced_last;
    return settings_words(s);
  }

  std::vector<uint32_t> choice_buffer() const {
    const std::vector<uint32_t> list = rule_list(c_.rules);
    std::vector<uint32_t> words(choice_words(p_, list.size()), 0u);
    for (uint32_t row = 0; row < rows_; ++row) {
      ChoiceRow settings = c_.rows.size() == 1 ? c_.rows[0] : c_.rows[row];
      if (c_.rows.size() == 1) settings.stream = row;
      if (!c_.rules.empty()) settings.rules = static_cast<uint32_t>(choice_rules_at(p_));
      std::memcpy(words.data() + size_t{row} * VKF_CHOICE_WORDS, &settings, sizeof settings);
      if (c_.allowed.empty()) continue;
      for (int64_t token : c_.allowed[row]) {
        words[choice_allowed_at(p_, row) + static_cast<uint64_t>(token / 32)] |= 1u << (token % 32);
      }
    }
    std::copy(c_.suppress.begin(), c_.suppress.end(),
              words.begin() + static_cast<ptrdiff_t>(choice_suppress_at(p_)));
    std::copy(list.begin(), list.end(),
              words.begin() + static_cast<ptrdiff_t>(choice_rules_at(p_)));
    return words;
  }

  const ChoiceCase& c_;
  SearchParams p_{};
  uint32_t rows_ = 0;
  uint32_t length_ = 1;
};

}  // namespace vkformer::testing
