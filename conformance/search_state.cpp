#include "conformance/search_state.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/narrow.h"
#include "params/decode_state.h"

namespace vkformer::conformance {
namespace {

// A part of the search's words as a tensor.
Tensor part(const std::vector<uint32_t>& list, size_t begin, DType dtype, Shape shape) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  std::memcpy(tensor.bytes.data(), list.data() + begin, tensor.bytes.size());
  return tensor;
}

// Puts an item's finished sequences in the order of their scores; what follows their ends is
// ignored.
void sort_finished(const SearchLayout& at, uint32_t item, std::vector<uint32_t>& list) {
  struct Finished {
    uint32_t score, length;
    std::vector<uint32_t> ids;
  };
  std::vector<Finished> all;
  const uint32_t count = std::min(list[at.item(item) + VKF_ITEM_FINISHED], at.p.beams);
  const auto sequence = [&](size_t place) {
    return list.begin() + static_cast<std::ptrdiff_t>(at.sequence(item, place));
  };
  for (uint32_t place = 0; place < count; ++place) {
    const size_t words = at.finished(item, place);
    all.push_back({list[words], list[words + 1], {}});
    all.back().ids.assign(sequence(place), sequence(place) + at.p.capacity);
    std::fill(all.back().ids.begin() + std::min(all.back().length, at.p.capacity),
              all.back().ids.end(), 0u);
  }
  std::stable_sort(all.begin(), all.end(), [](const Finished& a, const Finished& b) {
    return std::bit_cast<float>(a.score) > std::bit_cast<float>(b.score);
  });
  for (size_t place = 0; place < all.size(); ++place) {
    list[at.finished(item, place)] = all[place].score;
    list[at.finished(item, place) + 1] = all[place].length;
    std::copy(all[place].ids.begin(), all[place].ids.end(), sequence(place));
  }
}

// The search's words, part by part.
TensorMap parts_of(const SearchLayout& at, Sequences sequences, std::vector<uint32_t> list) {
  const int64_t batch = at.p.batch, beams = at.p.beams, capacity = at.p.capacity;
  const bool tokens = sequences == Sequences::kTokens;
  for (uint32_t item = 0; tokens && item < at.p.batch; ++item) sort_finished(at, item, list);
  std::vector<uint32_t> finished, lengths;
  for (size_t i = 0; i < at.rows(); ++i) {
    finished.push_back(list[at.finished(0, i)]);
    lengths.push_back(list[at.finished(0, i) + 1]);
  }
  TensorMap parts;
  parts.emplace("tokens", part(list, at.tokens(0), DType::kU32, {batch * beams, capacity}));
  parts.emplace("scores", part(list, at.score(0), DType::kF32, {batch * beams}));
  parts.emplace("items", part(list, at.item(0), DType::kU32, {batch, 4}));
  parts.emplace("finished", part(finished, 0, DType::kF32, {batch, beams}));
  parts.emplace("lengths", part(lengths, 0, DType::kU32, {batch, beams}));
  parts.emplace("sequences", part(list, at.sequence(0, 0), tokens ? DType::kU32 : DType::kF32,
                                  {batch, beams, capacity}));
  return parts;
}

}  // namespace

uint32_t SearchState::entry_of(uint32_t slot) const {
  return row_of(slot) | starts[live[slot / layout.p.beams]] << VKF_SLOT_ROW_BITS;
}

std::vector<uint32_t> SearchState::state_words() const {
  std::vector<uint32_t> list(VKF_STATE_WORDS + VKF_MAX_SLOTS, 0u);
  list[0] = static_cast<uint32_t>(live.size());
  list[1] = slots();
  list[2] = position;
  for (uint32_t slot = 0; slot < slots(); ++slot) list[VKF_STATE_WORDS + slot] = entry_of(slot);
  return list;
}

void SearchState::set_float(size_t word, double value) {
  search[word] = std::bit_cast<uint32_t>(static_cast<float>(value));
}

double SearchState::get_float(size_t word) const {
  return std::bit_cast<float>(search[word]);
}

SearchState random_search(const SearchParams& params, uint32_t position, uint64_t seed) {
  Noise noise(seed);
  SearchState s;
  s.layout.p = params;
  s.position = position;
  s.search.assign(search_words(params), kUnwritten);
  s.ancestry.assign(s.layout.rows() * params.capacity, kUnwritten);
  for (uint32_t item = 0; item < params.batch; ++item) {
    const bool live = item % 3 != 1;
    if (live) s.live.push_back(item);
    s.starts.push_back(u32(noise.below(std::min(position, 4u) + 1)));
    uint32_t* words = s.search.data() + s.layout.item(item);
    words[VKF_ITEM_ACTIVE] = live ? 1 : 0;
    words[VKF_ITEM_FINISHED] = 0;
    words[VKF_ITEM_LENGTH] = live ? 0 : std::max(position, 1u);
    words[VKF_ITEM_STATUS] = 0;
    for (uint32_t beam = 0; beam < params.beams; ++beam) {
      const size_t row = size_t{item} * params.beams + beam;
      for (uint32_t t = 0; t <= position; ++t) {
        s.search[s.layout.tokens(row) + t] = u32(noise.below(params.vocab));
        if (t < s.starts[item]) continue;
        s.ancestry[row * params.capacity + t - s.starts[item]] =
            item * params.beams + u32(noise.below(params.beams));
      }
      s.set_float(s.layout.score(row),
                  -static_cast<double>(noise.below(640)) / 64 - static_cast<double>(beam) / 1024);
    }
  }
  return s;
}

SearchTensors bind_state(PreparedOperator& op, const SearchState& state,
                         const reference::SearchOptions& options, uint32_t prompt_length) {
  SearchSettings settings{};
  settings.prompt_length = prompt_length;
  settings.max_length = prompt_length + u32(options.max_new_tokens);
  settings.min_length = prompt_length + u32(options.min_new_tokens);
  settings.forced_first = settings.forced_last = VKF_NO_TOKEN;
  static_assert(VKF_EARLY_STOPPING_YES == static_cast<uint32_t>(reference::EarlyStopping::kYes));
  static_assert(VKF_EARLY_STOPPING_NEVER ==
                static_cast<uint32_t>(reference::EarlyStopping::kNever));
  settings.early_stopping = static_cast<uint32_t>(options.early_stopping);
  settings.length_penalty = static_cast<float>(options.length_penalty);
  settings.diversity = static_cast<float>(options.diversity);
  settings.eos_count = static_cast<uint32_t>(options.eos_token_ids.size());
  for (size_t i = 0; i < options.eos_token_ids.size(); ++i) {
    settings.eos[i / 4].word[i % 4] = u32(options.eos_token_ids[i]);
  }
  std::vector<uint32_t> list(sizeof settings / 4);
  std::memcpy(list.data(), &settings, sizeof settings);
  SearchTensors t{.params = state.layout.p};
  t.search = op.bind("search", words(state.search));
  t.state = op.bind("decode_state", words(state.state_words()));
  t.settings = op.bind("settings", words(list));
  if (state.ancestry.empty()) return t;
  Tensor ancestry = words(state.ancestry);
  ancestry.shape = {static_cast<int64_t>(state.layout.rows()), state.layout.p.capacity};
  t.ancestry = op.bind("ancestry", std::move(ancestry));
  return t;
}

Status expect_search(CheckCase& made, const SearchState& after, Sequences sequences) {
  for (auto& [name, tensor] : parts_of(after.layout, sequences, after.search)) {
    VKF_ASSIGN(Array values, reference::from_tensor(tensor));
    // A power and a division.
    const Tolerance bound = name == "finished" ? Tolerance{1e-5, 2e-6} : Tolerance{};
    made.expected.emplace(name, Expected{std::move(values), bound});
  }
  made.op.finish = [=, layout = after.layout](TensorMap outputs) -> Result<TensorMap> {
    const auto found = outputs.find("search");
    if (found == outputs.end()) return internal_error("[conformance] There is no search.");
    outputs.merge(parts_of(layout, sequences, tensor_words(found->second)));
    outputs.erase("search");
    return outputs;
  };
  return {};
}

}  // namespace vkformer::conformance
