#include "session/sized_graphs.h"

#include <algorithm>

#include "base/message.h"
#include "generate/generation_sizes.h"
#include "params/decode_state.h"
#include "recording/forward_inputs.h"
#include "session/forward_pass.h"

namespace vkformer {
namespace {

// A picture's sides where neither the caller nor the model says more.
constexpr int64_t kUsualSide = 224;

Status check_sizes(const SessionSizes& s) {
  constexpr int64_t kMost = int64_t{1} << 20;
  const bool fits = s.batch >= 1 && s.batch <= kMost && s.tokens >= 1 && s.tokens <= kMost &&
                    s.new_tokens >= 0 && s.new_tokens <= kMost && s.beams >= 0 && s.beams <= kMost;
  if (fits && (s.new_tokens == 0 || s.batch * std::max<int64_t>(1, s.beams) <= VKF_MAX_SLOTS))
    return {};
  if (fits) {
    return invalid_argument(
        message({"[sizes] batch ", s.batch, " with ", s.beams, " beams are more than the ",
                 VKF_MAX_SLOTS, " rows that can run together"}));
  }
  return invalid_argument(message(
      {"[sizes] batch ", s.batch, ", tokens ", s.tokens, ", new tokens ", s.new_tokens,
       " and beams ", s.beams, " are not all from 1 (new tokens and beams from 0) to ", kMost}));
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
      // Bands first, or as many frames of bands as tokens are asked for.
      inputs["input_features"] = Tensor::zeros(
          DType::kF32, {s.batch, grid.channels > 0 ? grid.channels : s.tokens, side(grid.width)});
      return inputs;
    case SourceKind::kWaveform: {
      // As many frames as tokens are asked for.
      const int64_t samples =
          facts.wave.least_samples + (s.tokens - 1) * facts.wave.samples_per_frame;
      inputs["input_values"] = Tensor::zeros(DType::kF32, {s.batch, samples});
      if (s.new_tokens == 0 && facts.kind == ModelKind::kEncoderDecoder) {
        inputs["decoder_input_ids"] = Tensor::zeros(DType::kI64, {s.batch, s.tokens});
      }
      return inputs;
    }
    case SourceKind::kArrays:
      break;
  }
  return unsupported(
      message({"[sizes] a ", facts.architecture,
               " reads more arrays, whose sizes a number of tokens does not say; give the "
               "inputs themselves"}));
}

GenerateOptions options_of(const ModelFamily& family, const SessionSizes& sizes) {
  GenerateOptions options;
  if (sizes.beams == 0) {
    options = generation_defaults(family);
  } else {
    options.beams = static_cast<int>(sizes.beams);
    options.eos = family.generation().eos;
    options.decoder_start = family.generation().decoder_start;
    options.decoder_prompt = family.generation().decoder_prompt;
  }
  options.max_new_tokens = static_cast<int>(sizes.new_tokens);
  return options;
}

Result<ForwardKey> forward_key(const ModelFamily& family, const SessionSizes& sizes,
                               Lengths lengths) {
  VKF_ASSIGN(TensorMap inputs, inputs_of(family.facts(), sizes));
  ForwardKey key;
  if (lengths == Lengths::kRounded) {
    VKF_ASSIGN(const std::optional<GivenLengths> given, round_lengths(family.facts(), inputs));
    key.cuts = given.has_value();
  }
  VKF_ASSIGN(const ForwardInputs read, read_forward_inputs(family, inputs));
  key.shape = read.shape;
  key.taps.decoder_mask = read.decoder_mask;
  key.taps.positions = read.positions;
  key.taps.pooling_mask = read.pooling_mask;
  return key;
}

Result<GenerationKey> generation_key(const ModelFamily& family, const SessionSizes& sizes) {
  VKF_ASSIGN(const TensorMap inputs, inputs_of(family.facts(), sizes));
  const GenerateOptions options = options_of(family, sizes);
  GenerationKey key;
  key.shape.beams = options.beams;
  key.shape.cache = sizes.cache;
  VKF_ASSIGN(const GenerationInputs read,
             read_generation_inputs(family, inputs, options, key.shape));
  VKF_ASSIGN(const GenerationSizes made,
             generation_sizes(family.facts(), read.longest(), key, options));
  return made.key;
}

}  // namespace

Result<std::vector<SizedGraph>> generation_graphs(const ModelFamily& family,
                                                  const std::vector<PackedWeight>& weights,
                                                  const GenerationKey& key) {
  std::vector<SizedGraph> graphs(2);
  ModelBuilder prompt(graphs[0].graph, weights), step(graphs[1].graph, weights);
  VKF_CHECK(build_generation_prompt(prompt, family, key.shape));
  VKF_CHECK(build_generation_step(step, family, key));
  graphs[0].host = host_access(prompt, step_access(key));
  graphs[1].host = host_access(step, step_access(key));
  return graphs;
}

Result<SizedPasses> sized_passes(const ModelFamily& family, const SessionSizes& sizes,
                                 Lengths lengths) {
  VKF_CHECK(check_sizes(sizes));
  SizedPasses passes;
  const bool two = family.facts().passes == ModelFacts::Passes::kTwo;
  if (sizes.new_tokens > 0 && !two) {
    VKF_ASSIGN(passes.step, generation_key(family, sizes));
    return passes;
  }
  VKF_ASSIGN(passes.forward, forward_key(family, sizes, lengths));
  if (sizes.new_tokens == 0) return passes;
  passes.second.emplace().pass = ForwardKey::Pass::kSecond;
  VKF_ASSIGN(passes.second->shape, family.second_shape(passes.forward->shape, sizes.new_tokens));
  return passes;
}

Result<std::vector<SizedGraph>> sized_graphs(const ModelFamily& family,
                                             const std::vector<PackedWeight>& weights,
                                             const SessionSizes& sizes, Lengths lengths) {
  VKF_ASSIGN(const SizedPasses passes, sized_passes(family, sizes, lengths));
  if (passes.step) return generation_graphs(family, weights, *passes.step);
  std::vector<SizedGraph> graphs(passes.second ? 2 : 1);
  ModelBuilder builder(graphs[0].graph, weights);
  VKF_CHECK(family.build_forward(builder, passes.forward->shape, passes.forward->taps));
  graphs[0].host = forward_access(builder, {});
  if (!passes.second) return graphs;
  ModelBuilder second(graphs[1].graph, weights);
  VKF_CHECK(family.build_second(second, passes.second->shape));
  graphs[1].host = forward_access(second, {});
  return graphs;
}

}  // namespace vkformer
