// A search over tokens on the GPU with a made-up model. Logits come from a function on the host.
// token_candidates, greedy_select or beam_select and step_advance do the rest, step by step.
#pragma once

#include <cstring>
#include <memory>

#include "ops/beam_select.h"
#include "ops/greedy_select.h"
#include "ops/search_case.h"
#include "ops/step_advance.h"
#include "ops/step_run.h"

namespace vkformer::testing {

// The graph of one step whose logits are an external tensor.
struct SearchGraph {
  Graph graph;
  SearchTensors tensors;
  TensorId logits = kNoTensor;
};

inline SearchTensors add_search_externals(Graph& graph, const SearchParams& p) {
  const int64_t rows = int64_t{p.batch} * p.beams;
  SearchTensors t{.params = p};
  const auto words = [&](const char* name, Shape shape) {
    return graph.add_external(name, DType::kU32, std::move(shape));
  };
  t.search = words("search", {static_cast<int64_t>(search_words(p))});
  t.state = words("decode_state", {kStateWords});
  t.settings = words("settings", {sizeof(SearchSettings) / 4});
  t.suppress = words("suppress", {2, (p.vocab + 31) / 32});
  t.ancestry = words("ancestry", {rows, p.capacity});
  t.step_ids = words("step_ids", {rows});
  t.args = words("args", {int64_t{kMaxStepDispatches} * 7});
  return t;
}

inline SearchGraph search_graph(const SearchParams& p) {
  SearchGraph g;
  const int64_t rows = int64_t{p.batch} * p.beams;
  g.graph.set_step(static_cast<uint32_t>(rows));
  g.logits = g.graph.add_external("logits", DType::kF32, {rows, p.vocab});
  g.tensors = add_search_externals(g.graph, p);
  const auto candidates = add_token_candidates(g.graph, g.logits, g.tensors);
  REQUIRE_MESSAGE(candidates.ok(), candidates.error().message);
  const Status chosen = p.beams == 1 ? add_greedy_select(g.graph, *candidates, g.tensors)
                                     : add_beam_select(g.graph, *candidates, g.tensors);
  REQUIRE_MESSAGE(chosen.ok(), chosen.error().message);
  REQUIRE(add_step_advance(g.graph, g.tensors).ok());
  return g;
}

inline std::vector<uint32_t> settings_words(const SearchCase& c) {
  SearchSettings s{};
  s.prompt_length = static_cast<uint32_t>(c.prompt.size());
  s.max_length = c.max_length();
  s.min_length = s.prompt_length + c.min_new_tokens;
  s.forced_first = c.forced_first ? static_cast<uint32_t>(*c.forced_first) : VKF_NO_TOKEN;
  s.forced_last = c.forced_last ? static_cast<uint32_t>(*c.forced_last) : VKF_NO_TOKEN;
  s.early_stopping = c.early_stopping;
  s.length_penalty = static_cast<float>(c.length_penalty);
  s.eos_count = static_cast<uint32_t>(c.eos.size());
  for (size_t i = 0; i < c.eos.size(); ++i) {
    s.eos[i / 4].word[i % 4] = static_cast<uint32_t>(c.eos[i]);
  }
  std::vector<uint32_t> words(sizeof(s) / 4);
  std::memcpy(words.data(), &s, sizeof(s));
  return words;
}

inline std::vector<uint32_t> suppress_words(const SearchCase& c) {
  const size_t half = (c.vocab + 31) / 32;
  std::vector<uint32_t> words(2 * half, 0u);
  const auto set = [&](size_t first, int64_t token) {
    words[first + static_cast<size_t>(token) / 32] |= 1u << (token % 32);
  };
  for (int64_t token : c.suppress) set(0, token);
  for (int64_t token : c.begin_suppress) set(half, token);
  return words;
}

// A search in progress on one device.
class SearchRun {
 public:
  SearchRun(const TierDevice& on, const SearchCase& c)
      : case_(c), device_(on.device), layout_{c.params()}, graph_(search_graph(c.params())) {
    DeviceCaps caps = device_->caps();
    if (on.wide) caps.device_class = DeviceClass::kDiscrete;
    auto plan = make_plan(graph_.graph, caps, Precision::kF32);
    REQUIRE_MESSAGE(plan.ok(), plan.error().message);
    plan_ = std::move(*plan);
    RecordingInputs bound;
    bound.memory.resize(plan_.buffers.size());
    buffers_.resize(plan_.buffers.size());
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      if (plan_.buffers[i].source != BufferSource::kExternal) continue;
      auto buffer = device_->make_buffer(plan_.buffers[i].bytes, MemoryUse::kDevice, "search");
      REQUIRE(buffer.ok());
      buffers_[i] = std::move(*buffer);
      bound.memory[i] = {&buffers_[i], 0, plan_.buffers[i].bytes};
    }
    bound.indirect_args = bound.memory[graph_.tensors.args];
    auto recording = Recording::create(device_, plan_, bound);
    REQUIRE_MESSAGE(recording.ok(), recording.error().message);
    recording_ = std::make_unique<Recording>(std::move(*recording));
    upload_start();
  }

  // Steps until no item is live; `on_step` sees the number of live slots before each step.
  std::vector<FoundItem> finish(const std::function<void(uint32_t)>& on_step = {}) {
    for (uint32_t step = 0; step < case_.max_new_tokens; ++step) {
      const std::vector<uint32_t> state = read(graph_.tensors.state, 16 + layout_.rows());
      if (on_step) on_step(state[1]);
      if (state[1] == 0) break;
      CHECK(state[2] == case_.prompt.size() - 1 + step);
      CHECK(state[3] == step);
      feed(state);
      submit();
    }
    const std::vector<uint32_t> state = read(graph_.tensors.state, 16);
    CHECK(state[0] == 0);
    check_args(0);
    return collect();
  }

  // One more step than the search needs.
  std::vector<FoundItem> overrun() {
    submit();
    check_args(0);
    return collect();
  }

 private:
  void submit() {
    const RecordingRange list[] = {{recording_.get()}};
    const auto value = device_->submit({.ranges = list});
    REQUIRE(value.ok());
    REQUIRE(device_->wait(*value).ok());
  }
  void write(TensorId id, const std::vector<uint32_t>& words) {
    REQUIRE(device_->upload(buffers_[id], 0, std::as_bytes(std::span(words))).ok());
  }
  std::vector<uint32_t> read(TensorId id, size_t count) {
    std::vector<uint32_t> words(count);
    REQUIRE(device_->download(buffers_[id], 0, std::as_writable_bytes(std::span(words))).ok());
    return words;
  }

  void upload_start() {
    const SearchParams& p = layout_.p;
    const auto rows = static_cast<uint32_t>(layout_.rows());
    write(graph_.tensors.settings, settings_words(case_));
    write(graph_.tensors.suppress, suppress_words(case_));
    std::vector<uint32_t> search(search_words(p), 0u);
    std::vector<uint32_t> ancestry;
    std::vector<uint32_t> state(16 + rows, 0u);
    state[0] = p.batch;
    state[1] = rows;
    state[2] = static_cast<uint32_t>(case_.prompt.size()) - 1;
    for (uint32_t row = 0; row < rows; ++row) {
      for (size_t t = 0; t < case_.prompt.size(); ++t) {
        search[layout_.tokens(row) + t] = static_cast<uint32_t>(case_.prompt[t]);
      }
      search[layout_.score(row)] = std::bit_cast<uint32_t>(row % p.beams == 0 ? 0.0f : -1e9f);
      ancestry.insert(ancestry.end(), p.capacity, row);
      state[16 + row] = row;
    }
    for (uint32_t i = 0; i < p.batch; ++i) search[layout_.item(i) + VKF_ITEM_ACTIVE] = 1;
    write(graph_.tensors.search, search);
    write(graph_.tensors.ancestry, ancestry);
    write(graph_.tensors.state, state);
    write(graph_.tensors.step_ids,
          std::vector<uint32_t>(rows, static_cast<uint32_t>(case_.prompt.back())));
    std::vector<uint32_t> args = expected_groups(rows);
    const std::vector<uint32_t> table = step_arg_table(plan_);
    args.insert(args.end(), table.begin(), table.end());
    write(graph_.tensors.args, args);
    fed_.assign(layout_.rows(), std::vector<int64_t>(p.capacity, -1));
    for (auto& row : fed_) std::copy(case_.prompt.begin(), case_.prompt.end(), row.begin());
  }

  std::vector<uint32_t> expected_groups(uint32_t live_slots) const {
    std::vector<uint32_t> groups;
    for (const Dispatch& d : plan_.dispatches) {
      if (d.live_axis < 0) continue;
      std::array<uint32_t, 3> counts = d.groups;
      counts[static_cast<size_t>(d.live_axis)] =
          (live_slots + d.slots_per_group - 1) / d.slots_per_group;
      groups.insert(groups.end(), counts.begin(), counts.end());
    }
    return groups;
  }
  void check_args(uint32_t live_slots) {
    const std::vector<uint32_t> expected = expected_groups(live_slots);
    CHECK(read(graph_.tensors.args, expected.size()) == expected);
  }

  // Uploads the logits of every live slot; other slots get NaN. Checks what a model would see: the
  // token of each slot, and that the ancestry leads to the caches that hold the row's tokens.
  void feed(const std::vector<uint32_t>& state) {
    const SearchParams& p = layout_.p;
    const uint32_t length = state[2] + 1;
    check_args(state[1]);
    const std::vector<uint32_t> search = read(graph_.tensors.search, search_words(p));
    const std::vector<uint32_t> ids = read(graph_.tensors.step_ids, layout_.rows());
    const std::vector<uint32_t> ancestry =
        read(graph_.tensors.ancestry, layout_.rows() * p.capacity);
    std::vector<uint32_t> logits(layout_.rows() * p.vocab, 0x7fc0dead);
    for (uint32_t slot = 0; slot < state[1]; ++slot) {
      const uint32_t row = state[16 + slot];
      std::vector<int64_t> prefix;
      for (uint32_t t = 0; t < length; ++t) prefix.push_back(search[layout_.tokens(row) + t]);
      CHECK(ids[slot] == prefix.back());
      fed_[row][length - 1] = prefix.back();
      const std::vector<float> values = case_.model(row / p.beams, prefix);
      REQUIRE(values.size() == p.vocab);
      std::memcpy(logits.data() + size_t{slot} * p.vocab, values.data(), 4 * values.size());
    }
    for (uint32_t slot = 0; slot < state[1]; ++slot) {
      const uint32_t row = state[16 + slot];
      for (uint32_t t = 0; t < length; ++t) {
        const uint32_t from = ancestry[size_t{row} * p.capacity + t];
        REQUIRE(from / p.beams == row / p.beams);
        CHECK(fed_[from][t] == search[layout_.tokens(row) + t]);
      }
    }
    write(graph_.logits, logits);
  }

  std::vector<FoundItem> collect() {
    const SearchParams& p = layout_.p;
    const std::vector<uint32_t> words = read(graph_.tensors.search, search_words(p));
    const auto ids = [&](size_t at, size_t count) {
      return std::vector<int64_t>(words.begin() + static_cast<ptrdiff_t>(at),
                                  words.begin() + static_cast<ptrdiff_t>(at + count));
    };
    std::vector<FoundItem> found(p.batch);
    for (uint32_t i = 0; i < p.batch; ++i) {
      const size_t item = layout_.item(i);
      found[i].nan = words[item + VKF_ITEM_STATUS] != 0;
      found[i].length = words[item + VKF_ITEM_LENGTH];
      CHECK(words[item + VKF_ITEM_ACTIVE] == 0);
      if (p.beams == 1) {
        found[i].sequences = {{ids(layout_.tokens(i), found[i].length),
                               std::bit_cast<float>(words[layout_.score(i)])}};
        continue;
      }
      for (uint32_t place = 0; place < words[item + VKF_ITEM_FINISHED]; ++place) {
        const size_t at = layout_.finished(i, place);
        found[i].sequences.push_back(
            {ids(layout_.sequence(i, place), words[at + 1]), std::bit_cast<float>(words[at])});
      }
      std::stable_sort(
          found[i].sequences.begin(), found[i].sequences.end(),
          [](const FoundSequence& a, const FoundSequence& b) { return a.score > b.score; });
    }
    return found;
  }

  SearchCase case_;
  std::shared_ptr<VulkanDevice> device_;
  SearchLayout layout_;
  SearchGraph graph_;
  Plan plan_;
  std::vector<Buffer> buffers_;
  std::unique_ptr<Recording> recording_;
  std::vector<std::vector<int64_t>> fed_;  // by row: what its cache holds
};

}  // namespace vkformer::testing
