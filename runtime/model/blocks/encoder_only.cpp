#include "model/blocks/encoder_only.h"

namespace vkformer {

EncoderFamily::EncoderFamily(ModelFacts facts, EncoderConfig block)
    : facts_(std::move(facts)), block_(std::move(block)) {}

Status EncoderFamily::build_forward(ModelBuilder& b, const ForwardShape& shape,
                                    const ForwardTaps& taps) const {
  const StackConfig& stack = block_.stack;
  StackRun run{.batch = shape.batch, .tokens = shape.source, .taps = taps};
  const TokenFeeds feeds{.positions = taps.positions == ForwardTaps::Tap::kOn
                                          ? TokenFeeds::Positions::kFed
                                          : TokenFeeds::Positions::kAsModel};
  VKF_ASSIGN(EmbeddedTokens embedded,
             add_text_embedding(b, stack, block_.embedding, feeds, {shape.batch, shape.source}));
  run.positions = embedded.positions;
  run.terms = add_stack_terms(b, stack, "key_mask", shape.batch, shape.source);
  VKF_ASSIGN(TensorId states, add_stack(b, stack, run, embedded.x));
  b.mark_output(states, "last_hidden_state");
  const HeadInput input{states, run.terms.words};
  VKF_CHECK(add_heads(b, stack, block_.heads, input));
  return add_sentence_embedding(b, facts_.sentence, input);
}

}  // namespace vkformer
