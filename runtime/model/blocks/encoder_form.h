// What a family adds to an encoder besides its configuration. It may add more weights in every
// layer, more inputs, another self-attention, heads that blocks/heads.h does not have. Longformer
// and BigBird are a RoBERTa and a BERT with such a form.
#pragma once

#include "model/blocks/heads.h"

namespace vkformer {

class EncoderForm {
 public:
  virtual ~EncoderForm() = default;

  // Reads what the form needs on the host; `prefix` is what names in the file begin with.
  virtual Status prepare(const Checkpoint& checkpoint, const std::string& prefix);
  // Rows of one layer: `to` is "encoder.0", `from` "longformer.encoder.layer.0.".
  virtual void add_layer_rows(const std::string& to, const std::string& from, int64_t width,
                              WeightTable& table) const;
  // Rows that are no layer's; `prefix` is what names in the file begin with.
  virtual void add_rows(const std::string& prefix, WeightTable& table) const;
  // As ModelFamily::input_names and read_inputs.
  virtual std::vector<std::string> input_names() const;
  virtual Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const;
  // What the family adds to the lookup x (B, S, D) of words, positions and types, before its norm.
  virtual Result<TensorId> after_lookup(ModelBuilder& builder, TensorId x) const;
  // The embedded tokens x (B, S, D) with other tokens after them (B, T, D), or x itself. A form
  // that adds tokens makes the words key_mask of all T in read_inputs.
  virtual Result<TensorId> append_tokens(ModelBuilder& builder, const StackConfig& stack,
                                         const ForwardShape& shape, TensorId x) const;
  // Adds the tensors that self-attention reads in a pass; `mask` is its key mask (B, ceil(T/32)).
  // Without a function the pass has the stack's own.
  virtual Result<StackRun::Attend> begin_pass(ModelBuilder& builder, const StackConfig& stack,
                                              const ForwardShape& shape, TensorId mask) const;
  // What becomes of the output of a layer: the output itself, or something made of it and of the
  // layer's input, both (B, S, D).
  struct LayerStates {
    int64_t layer = 0;
    TensorId input = kNoTensor;
    TensorId output = kNoTensor;
  };
  virtual Result<TensorId> after_layer(ModelBuilder& builder, const StackConfig& stack,
                                       const LayerStates& states) const;
  // The states that heads read, of all states (B, T, D).
  virtual Result<TensorId> head_states(ModelBuilder& builder, const ForwardShape& shape,
                                       TensorId states) const;
  virtual Status add_heads(ModelBuilder& builder, const StackConfig& stack,
                           const ForwardShape& shape, const HeadInput& input) const;
};

}  // namespace vkformer
