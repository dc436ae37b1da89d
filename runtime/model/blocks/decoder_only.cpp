#include "model/blocks/decoder_only.h"

namespace vkformer {

DecoderFamily::DecoderFamily(ModelFacts facts, GenerationFacts generation, DecoderConfig block)
    : facts_(std::move(facts)), generation_(std::move(generation)), block_(std::move(block)) {
  facts_.rolling = block_.embedding.positions.empty() ? ModelFacts::Rolling::kFree
                                                      : ModelFacts::Rolling::kInTable;
  facts_.slots = ModelFacts::Slots::kYes;
}

// The last layer's states in the width of the embeddings.
Result<TensorId> DecoderFamily::project(ModelBuilder& b, TensorId states) const {
  if (block_.projection.empty()) return states;
  b.graph().set_scope(block_.projection);
  return add_named_linear(b, block_.projection, states);
}

HeadConfig DecoderFamily::head() const {
  return {.dense = block_.head_dense,
          .activation = block_.head_activation,
          .norm = block_.head_norm,
          .output = block_.head,
          .scale = block_.head_scale,
          .cap = block_.logit_cap};
}

Status DecoderFamily::build_forward(ModelBuilder& b, const ForwardShape& shape,
                                    const ForwardTaps& taps) const {
  VKF_ASSIGN(TextStates text, add_text_stack(b, block_.stack, block_.embedding, shape, taps));
  VKF_ASSIGN(text.states, project(b, text.states));
  b.mark_output(text.states, "last_hidden_state");
  const HeadInput input{text.states, text.mask};
  if (!block_.head.empty()) {
    HeadConfig config = head();
    if (taps.last_logits == ForwardTaps::Tap::kOn) config.input = HeadConfig::Input::kLast;
    VKF_CHECK(add_head(b, block_.stack, config, input));
  }
  return add_sentence_embedding(b, facts_.sentence, taps, input);
}

Status DecoderFamily::build_prompt(ModelBuilder& b, const StepShape& shape) const {
  const int64_t tokens = shape.prompt - 1;  // the last one is the first step's
  if (tokens == 0) return {};
  const StackConfig& stack = block_.stack;
  StackRun run{.mode = StackRun::Mode::kPrompt, .batch = shape.batch, .tokens = tokens};
  run.step = shape;
  VKF_ASSIGN(EmbeddedTokens embedded,
             add_text_embedding(b, stack, block_.embedding, {}, {shape.batch, tokens}));
  run.positions = embedded.positions;
  // Prompts are padded on the right, after what a causal query sees: no mask is needed.
  run.terms = add_stack_terms(b, stack, "", shape.batch, tokens);
  // Tokens of a prompt longer than the context come one by one, through steps, each with the keys
  // that it would find had it been generated.
  VKF_CHECK(add_stack(b, stack, run, embedded.x));
  return {};
}

Result<StepResult> DecoderFamily::build_step(ModelBuilder& b, const StepShape& shape) const {
  if (block_.head.empty()) return ModelFamily::build_step(b, shape);
  b.graph().set_step(static_cast<uint32_t>(shape.step_rows()));
  const StepTensors tensors = add_step_tensors(b, block_.stack, shape);
  StackRun run{.mode = StackRun::Mode::kStep, .batch = shape.batch, .tokens = 1};
  run.step = shape;
  run.state = tensors.state;
  run.ancestry = tensors.ancestry;
  VKF_ASSIGN(TensorId x, add_step_embedding(b, block_.stack, block_.embedding, tensors));
  VKF_ASSIGN(x, add_stack(b, block_.stack, run, x));
  VKF_ASSIGN(x, project(b, x));
  StepResult result{.states = x};
  VKF_ASSIGN(result.logits, add_head_layers(b, block_.stack, head(), {x, kNoTensor}));
  return result;
}

}  // namespace vkformer
