#include "generate/prompt_reader.h"

#include <algorithm>
#include <utility>

#include "base/message.h"
#include "generate/generation_sizes.h"
#include "generate/input_content.h"
#include "params/decode_state.h"
#include "recording/token_rows.h"

namespace vkformer {
namespace {

// Sizes that recordings are kept for.
constexpr size_t kMostPasses = 4;
constexpr const char* kSelfKeys = "self_kv.";

Status check_own_names(const TensorMap& inputs) {
  for (const char* name : {"input_ids", "attention_mask"}) {
    if (inputs.count(name) == 0) continue;
    return invalid_argument(
        message({"[inputs] has ", name,
                 ", but the tokens of a request are its prompt; give tensors of images alone."}));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const PromptInput>> PromptReader::check(const std::vector<int64_t>& prompt,
                                                               const TensorMap& inputs) const {
  VKF_CHECK(check_own_names(inputs));
  const ModelFamily& family = model_->family();
  VKF_ASSIGN(TensorMap all, pad_rows({prompt}));
  all.insert(inputs.begin(), inputs.end());
  const auto made = std::make_shared<PromptInput>();
  made->shape = slots_.shape();
  made->shape.slots = 0;
  VKF_ASSIGN(made->read, read_single_inputs(family, all, {}, made->shape));
  const auto tokens = static_cast<int64_t>(prompt.size());
  if (made->shape.more.empty() || tokens == 1) return std::shared_ptr<const PromptInput>();
  if (slots_.shape().context > 0) {
    return unsupported(
        message({"[context] of this batch is ", slots_.shape().context,
                 ", but the prompt holds images or its tokens attend to later ones, so that it is "
                 "computed in one pass; make the batch without a context."}));
  }
  made->shape.prompt = std::min(prompt_bucket(tokens, false), made->shape.capacity);
  const PromptPictures& pictures = made->read.pictures;
  for (size_t i = 0; i < prompt.size(); ++i) {
    const bool image = prompt[i] == pictures.image_token || pictures.rows[0].types[i] != 0;
    if (image) made->settled = i + 1;
  }
  const bool whole = family.facts().slots == ModelFacts::Slots::kAfterPrompt;
  if (whole) made->settled = prompt.size() - 1;
  made->content = input_content(inputs, whole ? std::span(prompt) : std::span<const int64_t>());
  return std::shared_ptr<const PromptInput>(made);
}

Status PromptReader::record(const StepShape& shape) {
  std::list<Pass> made;
  Pass& pass = made.emplace_back(model_->device());
  pass.shape = shape;
  VKF_ASSIGN(std::optional<PlannedGraph> planned, plan_prompt(*model_, shape, step_access({})));
  if (!planned) return internal_error("[prompt] a pass over a prompt has no dispatch");
  VKF_ASSIGN(pass.graph, RecordedGraph::record(pass.memory, std::move(planned).value()));
  VKF_CHECK(pass.graph->write_words(pass.memory));
  passes_.splice(passes_.begin(), made);
  if (passes_.size() > kMostPasses) passes_.pop_back();
  return {};
}

Status PromptReader::prepare(const PromptInput& input) {
  for (auto it = passes_.begin(); it != passes_.end(); ++it) {
    if (!(it->shape == input.shape)) continue;
    passes_.splice(passes_.begin(), passes_, it);
    return {};
  }
  const Status recorded = record(input.shape);
  if (recorded || recorded.error().code != ErrorCode::kOutOfMemory || passes_.empty()) {
    return recorded;
  }
  // What is kept for other sizes may be what this one lacks.
  passes_.clear();
  return record(input.shape);
}

Status PromptReader::read(const PromptInput& input, uint32_t row) {
  Pass& pass = passes_.front();
  VKF_ASSIGN(const FeedWords words, prompt_words(model_->family(), pass.shape, input.read));
  VKF_CHECK(pass.graph->feed(pass.memory, words));
  // One row, whose tokens before the last one are written.
  std::vector<uint32_t> state(VKF_STATE_WORDS + 1);
  state[0] = state[1] = 1;
  state[2] = static_cast<uint32_t>(input.tokens());
  VKF_CHECK(pass.memory.write("decode_state", 0, state));
  const PassMemory& slots = slots_.memory().only();
  std::vector<BufferCopy> copies;
  for (const PlanBuffer& b : pass.graph->plan().buffers) {
    if (b.source != BufferSource::kExternal || !b.name.starts_with(kSelfKeys)) continue;
    const Buffer& to = slots.buffer(b.name);
    const uint64_t each = to.bytes() / static_cast<uint64_t>(slots_.shape().batch);
    const auto lines = static_cast<uint64_t>(b.shape[1]);
    const uint64_t written = std::min<uint64_t>(lines, input.tokens());
    copies.push_back(
        {{&pass.memory.buffer(b.name), 0, b.bytes / lines * written}, &to, row * each});
  }
  const RecordingRange all[] = {pass.graph->all()};
  return pass.memory.submit(all, {}, copies);
}

}  // namespace vkformer
