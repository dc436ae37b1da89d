#include "model/blocks/encoder_form.h"

namespace vkformer {

Status EncoderForm::prepare(const Checkpoint&, const std::string&) {
  return {};
}

void EncoderForm::add_layer_rows(const std::string&, const std::string&, int64_t,
                                 WeightTable&) const {}

void EncoderForm::add_rows(const std::string&, WeightTable&) const {}

std::vector<std::string> EncoderForm::input_names() const {
  return {};
}

Status EncoderForm::read_inputs(const TensorMap&, ForwardInputs&) const {
  return {};
}

Result<TensorId> EncoderForm::after_lookup(ModelBuilder&, TensorId x) const {
  return x;
}

Result<TensorId> EncoderForm::append_tokens(ModelBuilder&, const StackConfig&, const ForwardShape&,
                                            TensorId x) const {
  return x;
}

Result<StackRun::Attend> EncoderForm::begin_pass(ModelBuilder&, const StackConfig&,
                                                 const ForwardShape&, TensorId) const {
  return StackRun::Attend();
}

Result<TensorId> EncoderForm::after_layer(ModelBuilder&, const StackConfig&,
                                          const LayerStates& states) const {
  return states.output;
}

Result<TensorId> EncoderForm::head_states(ModelBuilder&, const ForwardShape&,
                                          TensorId states) const {
  return states;
}

Status EncoderForm::add_heads(ModelBuilder&, const StackConfig&, const ForwardShape&,
                              const HeadInput&) const {
  return {};
}

}  // namespace vkformer
