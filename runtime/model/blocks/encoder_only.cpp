#include "model/blocks/encoder_only.h"

namespace vkformer {

EncoderFamily::EncoderFamily(ModelFacts facts, EncoderConfig block)
    : facts_(std::move(facts)), block_(std::move(block)) {}

std::vector<std::string> EncoderFamily::input_names() const {
  return block_.form == nullptr ? std::vector<std::string>() : block_.form->input_names();
}

Status EncoderFamily::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  return block_.form == nullptr ? Status{} : block_.form->read_inputs(inputs, result);
}

Status EncoderFamily::build_forward(ModelBuilder& b, const ForwardShape& shape,
                                    const ForwardTaps& taps) const {
  const StackConfig& stack = block_.stack;
  const EncoderForm* form = block_.form.get();
  VKF_ASSIGN(TextStates text, add_text_stack(b, stack, block_.embedding, shape, taps, form));
  b.mark_output(text.states, "last_hidden_state");
  HeadInput input{text.states, text.mask};
  if (form != nullptr) {
    VKF_ASSIGN(input.states, form->head_states(b, shape, input.states));
  }
  VKF_CHECK(add_heads(b, stack, block_.heads, input));
  if (form != nullptr) VKF_CHECK(form->add_heads(b, stack, shape, input));
  return add_sentence_embedding(b, facts_.sentence, taps, input);
}

}  // namespace vkformer
