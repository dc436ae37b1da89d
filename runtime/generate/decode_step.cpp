#include "generate/decode_step.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "generate/token_choice.h"
#include "ops/step_advance.h"
#include "params/decode_state.h"

namespace vkformer {
namespace {

// Group counts that the step itself computes for its next run.
constexpr const char* kArgs = "args";
// Those of a part of a prompt, which the host computes.
constexpr const char* kPartArgs = "part_args";

// The state of slots that feed these tokens of `items` items; positions are counted back from
// `position`.
std::vector<uint32_t> slot_state(std::span<const FedToken> fed, uint32_t items, uint32_t position) {
  std::vector<uint32_t> state(VKF_STATE_WORDS);
  state[0] = items;
  state[1] = static_cast<uint32_t>(fed.size());
  state[2] = position;
  for (const FedToken& f : fed) {
    state.push_back(f.row | ((position - f.position) << VKF_SLOT_ROW_BITS));
  }
  return state;
}

std::vector<uint32_t> slot_tokens(std::span<const FedToken> fed) {
  std::vector<uint32_t> ids;
  for (const FedToken& f : fed) ids.push_back(f.token);
  return ids;
}

}  // namespace

DecodeStep::DecodeStep(std::shared_ptr<const LoadedModel> model, const GenerationKey& key,
                       Prompt prompt)
    : model_(std::move(model)),
      key_(key),
      wants_prompt_(prompt),
      params_(search_params(model_->family(), key)),
      memory_(*model_, key.lane) {}

Result<std::unique_ptr<DecodeStep>> DecodeStep::create(std::shared_ptr<const LoadedModel> model,
                                                       const GenerationKey& key, Prompt prompt) {
  auto made = std::make_unique<DecodeStep>(std::move(model), key, prompt);
  VKF_CHECK(prepare_now(*made));
  return made;
}

Status DecodeStep::plan() {
  HostAccess access = step_access(key_);
  if (key_.part > 0) access.writes.insert(access.writes.end(), {kPartState, kPartIds});
  const auto options = [&](const char* args) {
    RecordedGraphOptions made{.precision = model_->precision()};
    made.host = access;
    made.indirect_args = args;
    return made;
  };
  Graph before_steps, step;
  ModelBuilder prompt_builder(before_steps, model_->weights());
  ModelBuilder builder(step, model_->weights());
  std::vector<StageSource> sources;
  if (wants_prompt_ == Prompt::kYes && key_.part > 0) {
    VKF_CHECK(build_generation_part(prompt_builder, model_->family(), key_));
    sources.push_back({.builder = &prompt_builder,
                       .options = options(kPartArgs),
                       .name = "part",
                       .runs = StageSource::Runs::kParts});
  } else if (wants_prompt_ == Prompt::kYes) {
    VKF_CHECK(build_generation_prompt(prompt_builder, model_->family(), key_.shape));
    if (!before_steps.nodes().empty()) sources.push_back({&prompt_builder, options(""), "prompt"});
  }
  VKF_CHECK(build_generation_step(builder, model_->family(), key_));
  sources.push_back({&builder, options(kArgs), "step", OpId::k_token_scores});
  sources.back().options.cut_at = kScoresKernel;
  VKF_ASSIGN(std::vector<std::vector<PlannedStage>> planned,
             plan_stages(*model_, memory_, std::move(sources)));
  planned_step_ = std::move(planned.back());
  if (planned.size() > 1) planned_prompt_ = std::move(planned.front());
  return {};
}

std::vector<const Plan*> DecodeStep::plans() const {
  std::vector<const Plan*> list;
  // Who makes pipelines ahead makes them for one device.
  if (model_->split() != nullptr) return list;
  for (const PlannedStage& stage : planned_prompt_) list.push_back(&stage.planned->plan);
  for (const PlannedStage& stage : planned_step_) list.push_back(&stage.planned->plan);
  return list;
}

Status DecodeStep::record() {
  if (!planned_prompt_.empty()) {
    VKF_ASSIGN(prompt_, StagedGraph::record(memory_, std::move(planned_prompt_)));
  }
  VKF_ASSIGN(step_, StagedGraph::record(memory_, std::move(planned_step_)));
  planned_prompt_.clear();
  planned_step_.clear();
  find_sizes();
  return {};
}

Status DecodeStep::finish() {
  if (prompt_) VKF_CHECK(prompt_->write_words(memory_));
  VKF_CHECK(step_->write_words(memory_));
  const size_t count = model_->request_adapters().size();
  return write_adapters(0, rows(), std::vector<float>(count, 0.0f));
}

uint32_t DecodeStep::rows() const {
  return static_cast<uint32_t>(shape().batch * shape().beams);
}

Status DecodeStep::write_adapters(uint32_t first, uint32_t count, std::span<const float> scales) {
  if (scales.empty()) return {};
  std::vector<uint32_t> words;
  for (uint32_t row = 0; row < count; ++row) {
    for (const float scale : scales) words.push_back(std::bit_cast<uint32_t>(scale));
  }
  return memory_.write(kAdapterScales, uint64_t{first} * scales.size(), words);
}

DecodeStep::StageSizes DecodeStep::sizes_of(const StagedGraph::Stage& stage) {
  StageSizes sizes;
  if (!stage.graph) return sizes;
  for (const Dispatch& d : stage.graph->plan().dispatches) {
    if (d.live_axis < 0) continue;
    sizes.push_back({.groups = d.groups,
                     .axis = static_cast<uint32_t>(d.live_axis),
                     .slots_per_group = d.slots_per_group});
  }
  return sizes;
}

void DecodeStep::find_sizes() {
  part_sizes_.clear();
  if (key_.part > 0 && prompt_) {
    for (const StagedGraph::Stage& stage : prompt_->stages())
      part_sizes_.push_back(sizes_of(stage));
  }
  const std::vector<StagedGraph::Stage>& stages = step_->stages();
  least_lines_ = key_.shape.capacity;
  sized_.assign(stages.size(), {});
  // What comes after the last keys and values of all.
  size_t last_stage = 0, last_write = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    const auto is_cache = [](const std::string& name) {
      return name.starts_with("self_state.") || name.starts_with("self_kv.");
    };
    const std::vector<std::string>& written = stages[s].written;
    if (std::any_of(written.begin(), written.end(), is_cache)) last_stage = s;
    if (!stages[s].graph) continue;
    const Plan& plan = stages[s].graph->plan();
    std::vector<bool> cache(plan.buffers.size());
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      const PlanBuffer& b = plan.buffers[i];
      if (b.source != BufferSource::kExternal || !is_cache(b.name)) continue;
      cache[i] = true;
      cache_bytes_ += static_cast<int64_t>(b.bytes);
      if (b.name.starts_with("self_kv.")) least_lines_ = std::min(least_lines_, b.shape[1]);
    }
    size_t sized = 0;
    for (const Dispatch& d : plan.dispatches) {
      for (const BoundBuffer& b : d.bindings) {
        if (cache[b.buffer] && b.access != Access::kRead) last_write = sized;
      }
      sized += d.live_axis < 0 ? 0 : 1;
    }
    sized_[s] = sizes_of(stages[s]);
  }
  for (size_t s = last_stage; s < stages.size(); ++s) {
    const size_t first = s == last_stage ? last_write + 1 : 0;
    for (size_t i = first; i < sized_[s].size(); ++i) sized_[s][i].for_all = false;
  }
}

CacheReach DecodeStep::reach() const {
  const bool states = model_->family().facts().states == ModelFacts::States::kYes;
  return {.lines = least_lines_, .ahead = shape().ahead, .back = states ? shape().back : -1};
}

std::vector<uint32_t> DecodeStep::group_counts(const StageSizes& sizes, uint32_t fed,
                                               uint32_t chosen) {
  std::vector<uint32_t> counts;
  for (const Sized& s : sizes) {
    const uint32_t slots = s.for_all ? fed : chosen;
    for (uint32_t axis = 0; axis < 3; ++axis) {
      const bool live = axis == s.axis;
      counts.push_back(live ? (slots + s.slots_per_group - 1) / s.slots_per_group : s.groups[axis]);
    }
  }
  return counts;
}

Status DecodeStep::write_prompts(const GenerationInputs& inputs) {
  if (!prompt_) return {};
  if (key_.part > 0) {
    prompt_tokens_.clear();
    for (size_t i = 0; i < inputs.prompts.size(); ++i) {
      const auto row = static_cast<uint32_t>(static_cast<int64_t>(i) * shape().beams);
      // The last one is a step's.
      for (size_t t = 0; t + 1 < fed_at_once(inputs, i, shape()); ++t) {
        prompt_tokens_.push_back({.row = row,
                                  .position = static_cast<uint32_t>(t),
                                  .token = static_cast<uint32_t>(inputs.prompts[i][t])});
      }
    }
    return {};
  }
  if (model_->family().prompt_tokens(key_.shape) == 0) return prompt_->feed(memory_, inputs.words);
  VKF_ASSIGN(const FeedWords words, prompt_words(model_->family(), key_.shape, inputs));
  return prompt_->feed(memory_, words);
}

Status DecodeStep::write_slots(std::span<const FedToken> fed, uint32_t items, uint32_t position) {
  VKF_CHECK(memory_.write("decode_state", 0, slot_state(fed, items, position)));
  return memory_.write("step_ids", 0, slot_tokens(fed));
}

Status DecodeStep::write_groups(uint32_t fed, uint32_t chosen) {
  for (size_t s = 0; s < sized_.size(); ++s) {
    VKF_CHECK(memory_.write(step_->stages()[s].args, 0, group_counts(sized_[s], fed, chosen)));
  }
  return {};
}

Status DecodeStep::write_groups_and_table() {
  const uint32_t rows = params_.batch * params_.beams;
  for (size_t s = 0; s < sized_.size(); ++s) {
    const StagedGraph::Stage& stage = step_->stages()[s];
    if (first_args_.size() == s) {
      first_args_.push_back(group_counts(sized_[s], rows, rows));
      if (stage.graph && stage.args == kArgs) {
        const std::vector<uint32_t> table = step_arg_table(stage.graph->plan());
        first_args_[s].insert(first_args_[s].end(), table.begin(), table.end());
      }
    }
    VKF_CHECK(memory_.write(stage.args, 0, first_args_[s]));
  }
  return {};
}

Status DecodeStep::submit(Prompt prompt, RecordingPart part, int64_t times,
                          std::span<const TensorPart> reads) {
  if (model_->split() != nullptr) return submit_stages(prompt, part, times, reads);
  std::vector<RecordingRange> ranges;
  if (prompt == Prompt::kYes && prompt_) ranges.push_back(prompt_->only().all());
  ranges.insert(ranges.end(), static_cast<size_t>(times), step_->only().part(part));
  return memory_.only().submit(ranges, reads);
}

Status DecodeStep::submit_parts() {
  if (prompt_tokens_.empty()) return {};
  const auto most = static_cast<size_t>(key_.part);
  const size_t parts = (prompt_tokens_.size() + most - 1) / most;
  const auto feed = [&](size_t part, size_t at) -> Status {
    const size_t first = part * most;
    const auto fed = std::span(std::as_const(prompt_tokens_))
                         .subspan(first, std::min(most, prompt_tokens_.size() - first));
    uint32_t position = 0;
    for (const FedToken& f : fed) position = std::max(position, f.position);
    const StagedGraph::Stage& stage = prompt_->stages()[at];
    const auto count = static_cast<uint32_t>(fed.size());
    VKF_CHECK(memory_.write_at(stage.member, kPartState, slot_state(fed, rows(), position)));
    VKF_CHECK(memory_.write_at(stage.member, kPartIds, slot_tokens(fed)));
    return memory_.write_at(stage.member, stage.args, group_counts(part_sizes_[at], count, count));
  };
  VKF_ASSIGN(const int64_t rounds, prompt_->submit_parts(memory_, parts, feed));
  prompt_parts_.parts += static_cast<int64_t>(parts);
  prompt_parts_.rounds += rounds;
  return {};
}

Status DecodeStep::submit_stages(Prompt prompt, RecordingPart part, int64_t times,
                                 std::span<const TensorPart> reads) {
  if (prompt == Prompt::kYes && prompt_) {
    VKF_CHECK(key_.part > 0 ? submit_parts() : prompt_->submit(memory_, RecordingPart::kAll, {}));
  }
  const bool host_feeds =
      key_.choice == GenerationKey::Choice::kSlots || key_.choice == GenerationKey::Choice::kHost;
  for (int64_t i = 0; i < times; ++i) {
    VKF_CHECK(step_->submit(memory_, part, reads));
    if (host_feeds || part == RecordingPart::kBeforeCut) continue;
    std::array<uint32_t, 4> state{};
    VKF_CHECK(memory_.wait());
    VKF_CHECK(memory_.read({"decode_state", 0, sizeof state},
                           std::as_writable_bytes(std::span<uint32_t>(state))));
    const uint32_t live = state[1];
    if (live == 0) break;
    for (size_t s = 0; s < sized_.size(); ++s) {
      const std::string& args = step_->stages()[s].args;
      if (args != kArgs) VKF_CHECK(memory_.write(args, 0, group_counts(sized_[s], live, live)));
    }
  }
  return {};
}

void DecodeStep::add_units(Prompt prompt, int64_t times, SlicedPlan& plan) {
  VulkanDevice& device = *model_->device();
  if (prompt == Prompt::kYes && prompt_) {
    RecordedGraph& graph = prompt_->only();
    if (!prompt_costs_) prompt_costs_.emplace(costs_of(device, graph.plan()));
    plan.units.push_back({&graph.recording(), &*prompt_costs_, 1});
  }
  RecordedGraph& graph = step_->only();
  if (!step_costs_) step_costs_.emplace(costs_of(device, graph.plan()));
  plan.units.push_back({&graph.recording(), &*step_costs_, times});
}

int64_t DecodeStep::workgroups(uint32_t live_slots) const {
  int64_t total = 0;
  for (const StagedGraph::Stage& stage : step_->stages()) {
    if (!stage.graph) continue;
    const LoadedModel& part =
        model_->split() != nullptr ? *model_->split()->parts[stage.member] : *model_;
    const double limit = part.device()->caps().max_dispatch_flops;
    total += static_cast<int64_t>(stage.graph->recording().direct_workgroups());
    for (const Dispatch& d : stage.graph->plan().dispatches) {
      if (!is_indirect(d, limit)) continue;
      int64_t groups = (live_slots + d.slots_per_group - 1) / d.slots_per_group;
      for (int axis = 0; axis < 3; ++axis) groups *= axis == d.live_axis ? 1 : d.groups[axis];
      total += groups;
    }
  }
  return total;
}

}  // namespace vkformer
