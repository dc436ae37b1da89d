#include "model/blocks/encoder_decoder.h"

namespace vkformer {

EncoderDecoderFamily::EncoderDecoderFamily(ModelFacts facts, GenerationFacts generation,
                                           EncoderDecoderConfig block)
    : facts_(std::move(facts)), generation_(std::move(generation)), block_(std::move(block)) {
  facts_.slots = ModelFacts::Slots::kYes;
}

Result<Memory> EncoderDecoderFamily::encode(ModelBuilder& b, const ForwardShape& shape,
                                            const ForwardTaps& taps) const {
  VKF_ASSIGN(TextStates text, add_text_stack(b, block_.encoder, block_.source, shape, taps));
  return Memory{.states = text.states, .tokens = shape.source, .mask = text.mask};
}

Result<TensorId> EncoderDecoderFamily::decode(ModelBuilder& b, StackRun run) const {
  VKF_ASSIGN(EmbeddedTokens embedded,
             add_text_embedding(b, block_.decoder, block_.target, {.prefix = "decoder_"},
                                {run.batch, run.tokens}));
  run.positions = embedded.positions;
  return add_stack(b, block_.decoder, run, embedded.x);
}

Result<TensorId> EncoderDecoderFamily::logits(ModelBuilder& b, TensorId states) const {
  const HeadConfig head{.dense = block_.head_dense,
                        .activation = block_.head_activation,
                        .norm = block_.head_norm,
                        .output = block_.head,
                        .scale = block_.head_scale};
  return add_head_layers(b, block_.decoder, head, {.states = states});
}

Status EncoderDecoderFamily::build_forward(ModelBuilder& b, const ForwardShape& shape,
                                           const ForwardTaps& taps) const {
  VKF_ASSIGN(Memory memory, encode(b, shape, taps));
  const TensorId output = memory.output == kNoTensor ? memory.states : memory.output;
  b.mark_output(output, block_.memory_output);
  if (shape.target == 0) return {};
  StackRun run{.batch = shape.batch, .tokens = shape.target};
  const std::string mask = taps.decoder_mask == ForwardTaps::Tap::kOn ? "decoder_key_mask" : "";
  run.terms = add_stack_terms(b, block_.decoder, mask, shape.batch, shape.target);
  run.taps = taps;
  run.memory = memory.states;
  run.source = memory.tokens;
  run.source_mask = memory.mask;
  VKF_ASSIGN(TensorId states, decode(b, run));
  b.mark_output(states, block_.states_output);
  if (block_.head.empty()) return {};
  VKF_ASSIGN(const TensorId scores, logits(b, states));
  b.mark_output(scores, "logits");
  return {};
}

Status EncoderDecoderFamily::build_prompt(ModelBuilder& b, const StepShape& s) const {
  const ForwardShape shape{
      .batch = s.batch, .source = s.source, .height = s.height, .width = s.width, .more = s.more};
  VKF_ASSIGN(Memory memory, encode(b, shape, {}));
  if (s.prompt == 1) return add_cross_keys(b, block_.decoder, memory.states);
  StackRun run{.mode = StackRun::Mode::kPrompt, .batch = s.batch, .tokens = s.prompt - 1};
  run.terms = add_stack_terms(b, block_.decoder, "", s.batch, run.tokens);
  run.step = s;
  run.memory = memory.states;
  run.source = memory.tokens;
  run.source_mask = memory.mask;
  VKF_CHECK(decode(b, run));
  return {};
}

Result<StepResult> EncoderDecoderFamily::build_step(ModelBuilder& b, const StepShape& s) const {
  if (block_.head.empty()) return ModelFamily::build_step(b, s);
  b.graph().set_step(static_cast<uint32_t>(s.step_rows()));
  const StepTensors tensors = add_step_tensors(b, block_.decoder, s);
  StackRun run{.mode = StackRun::Mode::kStep, .batch = s.batch, .tokens = 1};
  run.step = s;
  run.state = tensors.state;
  run.ancestry = tensors.ancestry;
  // Rows of slots have inputs of different sizes, and the mask says how many keys each has.
  const bool slots = s.slots > 0;
  run.source =
      slots ? s.source : source_tokens({.source = s.source, .height = s.height, .width = s.width});
  if (slots || facts_.source == SourceKind::kTokens || facts_.source == SourceKind::kWaveform) {
    run.source_mask =
        b.graph().add_external("key_mask", DType::kU32, {s.batch, (run.source + 31) / 32});
  }
  VKF_ASSIGN(TensorId x, add_step_embedding(b, block_.decoder, block_.target, tensors));
  VKF_ASSIGN(x, add_stack(b, block_.decoder, run, x));
  StepResult result{.states = x};
  VKF_ASSIGN(result.logits, logits(b, x));
  return result;
}

}  // namespace vkformer
