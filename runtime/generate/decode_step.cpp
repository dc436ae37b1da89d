#include "generate/decode_step.h"

#include <algorithm>

#include "generate/token_choice.h"
#include "ops/step_advance.h"
#include "params/decode_state.h"

namespace vkformer {

DecodeStep::DecodeStep(std::shared_ptr<const LoadedModel> model, const GenerationKey& key,
                       Prompt prompt)
    : model_(std::move(model)),
      key_(key),
      wants_prompt_(prompt),
      params_(search_params(model_->family(), key)),
      memory_(model_->device()) {}

Result<std::unique_ptr<DecodeStep>> DecodeStep::create(std::shared_ptr<const LoadedModel> model,
                                                       const GenerationKey& key, Prompt prompt) {
  auto made = std::make_unique<DecodeStep>(std::move(model), key, prompt);
  VKF_CHECK(prepare_now(*made));
  return made;
}

Status DecodeStep::plan() {
  const HostAccess access = step_access(key_);
  if (wants_prompt_ == Prompt::kYes) {
    VKF_ASSIGN(planned_prompt_, plan_prompt(*model_, key_.shape, access));
  }
  Graph graph;
  ModelBuilder builder(graph, model_->weights());
  VKF_CHECK(build_generation_step(builder, model_->family(), key_));
  RecordedGraphOptions options{.model = model_.get(), .precision = model_->precision()};
  options.host = access;
  options.indirect_args = "args";
  options.cut_at = kScoresKernel;
  VKF_ASSIGN(planned_step_, plan_graph(*model_->device(), builder, std::move(options)));
  return {};
}

std::vector<const Plan*> DecodeStep::plans() const {
  std::vector<const Plan*> list;
  if (planned_prompt_) list.push_back(&planned_prompt_->plan);
  list.push_back(&planned_step_->plan);
  return list;
}

Status DecodeStep::record() {
  if (planned_prompt_) {
    VKF_ASSIGN(prompt_, RecordedGraph::record(memory_, std::move(*planned_prompt_)));
  }
  VKF_ASSIGN(step_, RecordedGraph::record(memory_, std::move(*planned_step_)));
  planned_prompt_.reset();
  planned_step_.reset();
  find_sizes();
  return {};
}

Status DecodeStep::finish() {
  if (prompt_) VKF_CHECK(prompt_->write_words(memory_));
  return step_->write_words(memory_);
}

void DecodeStep::find_sizes() {
  const Plan& plan = step_->plan();
  std::vector<bool> is_cache(plan.buffers.size());
  least_lines_ = key_.shape.capacity;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& b = plan.buffers[i];
    const bool states = b.name.starts_with("self_state.");
    if (!states && !b.name.starts_with("self_kv.")) continue;
    is_cache[i] = true;
    cache_bytes_ += static_cast<int64_t>(b.bytes);
    if (states) continue;
    least_lines_ = std::min(least_lines_, b.shape[1]);
  }
  size_t last_write = 0;
  for (const Dispatch& d : plan.dispatches) {
    for (const BoundBuffer& b : d.bindings) {
      if (is_cache[b.buffer] && b.access != Access::kRead) last_write = sized_.size();
    }
    if (d.live_axis < 0) continue;
    sized_.push_back({.groups = d.groups,
                      .axis = static_cast<uint32_t>(d.live_axis),
                      .slots_per_group = d.slots_per_group});
  }
  for (size_t i = last_write + 1; i < sized_.size(); ++i) sized_[i].for_all = false;
}

CacheReach DecodeStep::reach() const {
  const bool states = model_->family().facts().states == ModelFacts::States::kYes;
  return {.lines = least_lines_, .ahead = shape().ahead, .back = states ? shape().back : -1};
}

std::vector<uint32_t> DecodeStep::group_counts(uint32_t fed, uint32_t chosen) const {
  std::vector<uint32_t> counts;
  for (const Sized& s : sized_) {
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
  VKF_ASSIGN(const FeedWords words, prompt_words(model_->family(), key_.shape, inputs));
  return prompt_->feed(memory_, words);
}

Status DecodeStep::write_slots(std::span<const FedToken> fed, uint32_t items, uint32_t position) {
  std::vector<uint32_t> state(VKF_STATE_WORDS), ids;
  state[0] = items;
  state[1] = static_cast<uint32_t>(fed.size());
  state[2] = position;
  for (const FedToken& f : fed) {
    state.push_back(f.row | ((position - f.position) << VKF_SLOT_ROW_BITS));
    ids.push_back(f.token);
  }
  VKF_CHECK(memory_.write("decode_state", 0, state));
  return memory_.write("step_ids", 0, ids);
}

Status DecodeStep::write_groups(uint32_t fed, uint32_t chosen) {
  return memory_.write("args", 0, group_counts(fed, chosen));
}

Status DecodeStep::write_groups_and_table() {
  if (first_args_.empty()) {
    const uint32_t rows = params_.batch * params_.beams;
    first_args_ = group_counts(rows, rows);
    const std::vector<uint32_t> table = step_arg_table(step_->plan());
    first_args_.insert(first_args_.end(), table.begin(), table.end());
  }
  return memory_.write("args", 0, first_args_);
}

Status DecodeStep::submit(Prompt prompt, RecordingPart part, int64_t times,
                          std::span<const TensorPart> reads) {
  std::vector<RecordingRange> ranges;
  if (prompt == Prompt::kYes && prompt_) ranges.push_back(prompt_->all());
  ranges.insert(ranges.end(), static_cast<size_t>(times), step_->part(part));
  return memory_.submit(ranges, reads);
}

void DecodeStep::add_units(Prompt prompt, int64_t times, SlicedPlan& plan) {
  VulkanDevice& device = *model_->device();
  if (prompt == Prompt::kYes && prompt_) {
    if (!prompt_costs_) prompt_costs_.emplace(costs_of(device, prompt_->plan()));
    plan.units.push_back({&prompt_->recording(), &*prompt_costs_, 1});
  }
  if (!step_costs_) step_costs_.emplace(costs_of(device, step_->plan()));
  plan.units.push_back({&step_->recording(), &*step_costs_, times});
}

int64_t DecodeStep::workgroups(uint32_t live_slots) const {
  const double limit = model_->device()->caps().max_dispatch_flops;
  auto total = static_cast<int64_t>(step_->recording().direct_workgroups());
  for (const Dispatch& d : step_->plan().dispatches) {
    if (!is_indirect(d, limit)) continue;
    int64_t groups = (live_slots + d.slots_per_group - 1) / d.slots_per_group;
    for (int axis = 0; axis < 3; ++axis) groups *= axis == d.live_axis ? 1 : d.groups[axis];
    total += groups;
  }
  return total;
}

}  // namespace vkformer
