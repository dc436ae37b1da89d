#include "session/memory_needs.h"

#include <algorithm>

#include "ops/op.h"
#include "params/decode_state.h"
#include "session/forward_inputs.h"
#include "session/generation_sizes.h"
#include "session/loaded_model.h"

namespace vkformer {
namespace {

// A picture's sides where neither the caller nor the model says more.
constexpr int64_t kUsualSide = 224;

Status check_sizes(const SessionSizes& s) {
  constexpr int64_t kMost = int64_t{1} << 20;
  const bool fits = s.batch >= 1 && s.batch <= kMost && s.tokens >= 1 && s.tokens <= kMost &&
                    s.new_tokens >= 0 && s.new_tokens <= kMost && s.beams >= 1 && s.beams <= kMost;
  if (fits && (s.new_tokens == 0 || s.batch * s.beams <= VKF_MAX_SLOTS)) return {};
  if (fits) {
    return invalid_argument("[memory] batch " + std::to_string(s.batch) + " with " +
                            std::to_string(s.beams) + " beams are more than the " +
                            std::to_string(VKF_MAX_SLOTS) + " rows that can run together");
  }
  return invalid_argument("[memory] batch " + std::to_string(s.batch) + ", tokens " +
                          std::to_string(s.tokens) + ", new tokens " +
                          std::to_string(s.new_tokens) + " and beams " + std::to_string(s.beams) +
                          " are not all from 1 (new tokens from 0) to " + std::to_string(kMost));
}

int64_t side(int64_t fixed) {
  return fixed > 0 ? fixed : kUsualSide;
}

// The caller's, or zeros of these sizes.
Result<TensorMap> inputs_of(const ModelFacts& facts, const SessionSizes& s) {
  if (!s.inputs.empty()) return s.inputs;
  TensorMap inputs;
  const GridFacts& grid = facts.grid;
  switch (facts.source) {
    case SourceKind::kTokens:
      inputs["input_ids"] = Tensor::zeros(DType::kI64, {s.batch, s.tokens});
      if (s.new_tokens == 0 && facts.kind == ModelKind::kEncoderDecoder) {
        inputs["decoder_input_ids"] = Tensor::zeros(DType::kI64, {s.batch, s.tokens});
      }
      return inputs;
    case SourceKind::kPictures:
      inputs["pixel_values"] = Tensor::zeros(
          DType::kF32,
          {s.batch, std::max<int64_t>(1, grid.channels), side(grid.height), side(grid.width)});
      return inputs;
    case SourceKind::kFeatures:
      inputs["input_features"] = Tensor::zeros(
          DType::kF32, {s.batch, std::max<int64_t>(1, grid.channels), side(grid.width)});
      return inputs;
    case SourceKind::kArrays:
      break;
  }
  return unsupported(
      "[memory] a " + facts.architecture +
      " reads arrays of its own, whose sizes a number of tokens does not say; give the "
      "inputs themselves");
}

Status add_forward(const ModelFamily& family, const std::vector<PackedWeight>& weights,
                   const SessionSizes& sizes, MemoryTally& tally) {
  VKF_ASSIGN(const TensorMap inputs, inputs_of(family.facts(), sizes));
  VKF_ASSIGN(const ForwardInputs read, read_forward_inputs(family, inputs));
  Graph graph;
  ModelBuilder builder(graph, weights);
  ForwardTaps taps;
  taps.decoder_mask = read.decoder_mask;
  taps.positions = read.positions;
  VKF_CHECK(family.build_forward(builder, read.shape, taps));
  return tally.add(graph);
}

Status add_generation(const ModelFamily& family, const std::vector<PackedWeight>& weights,
                      const SessionSizes& sizes, MemoryTally& tally) {
  VKF_ASSIGN(const TensorMap inputs, inputs_of(family.facts(), sizes));
  GenerateOptions options;
  options.beams = static_cast<int>(sizes.beams);
  options.max_new_tokens = static_cast<int>(sizes.new_tokens);
  options.eos = family.generation().eos;
  options.decoder_start = family.generation().decoder_start;
  options.decoder_prompt = family.generation().decoder_prompt;
  GenerationKey key;
  key.shape.beams = sizes.beams;
  VKF_ASSIGN(key.shape.cache, cache_format_from(sizes.cache));
  VKF_ASSIGN(const GenerationInputs read,
             read_generation_inputs(family, inputs, options, key.shape));
  VKF_ASSIGN(const GenerationSizes made,
             generation_sizes(family.facts(), read.longest(), key, options));
  return tally.add_generation(family, weights, made.key);
}

}  // namespace

Status MemoryTally::add(const Graph& graph) {
  VKF_ASSIGN(const Plan plan, make_plan(graph, device_.caps(), precision_));
  if (plan.arena_bytes > 0) needs_.arena += device_.placed_bytes(plan.arena_bytes);
  needs_.arena_bound += plan.arena_bound_bytes;
  for (const PlanBuffer& b : plan.buffers) {
    if (b.source != BufferSource::kExternal || !counted_.insert(b.name).second) continue;
    const bool carried = b.name.starts_with("self_kv.") || b.name.starts_with("cross_kv.") ||
                         b.name.starts_with("self_state.");
    (carried ? needs_.cache : needs_.tensors) += device_.placed_bytes(b.bytes);
  }
  return {};
}

Status MemoryTally::add_generation(const ModelFamily& family,
                                   const std::vector<PackedWeight>& weights,
                                   const GenerationKey& key) {
  Graph prompt, step;
  ModelBuilder prompt_builder(prompt, weights), step_builder(step, weights);
  VKF_CHECK(family.build_prompt(prompt_builder, key.shape));
  VKF_CHECK(build_generation_step(step_builder, family, key));
  VKF_CHECK(add(prompt));
  return add(step);
}

Result<MemoryNeeds> memory_needs_of(VulkanDevice& device, const FileStore& files,
                                    const ModelOptions& options, const SessionSizes& sizes) {
  VKF_CHECK(check_sizes(sizes));
  VKF_ASSIGN(const ModelWeights model, read_model_weights(device, files, options));
  MemoryTally tally(device, model.precision);
  VKF_CHECK(sizes.new_tokens == 0 ? add_forward(*model.family, model.weights, sizes, tally)
                                  : add_generation(*model.family, model.weights, sizes, tally));
  MemoryNeeds needs = tally.needs();
  for (uint64_t chunk : model.layout.chunks) needs.weights += device.placed_bytes(chunk);
  needs.staging = device.staging_bytes();
  needs.total = needs.weights + needs.arena + needs.cache + needs.tensors + needs.staging;
  return needs;
}

}  // namespace vkformer
