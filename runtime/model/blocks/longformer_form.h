// Self-attention of Longformer (Beltagy, Peters and Cohan, 2020) and of LED's encoder. A token sees
// a window around itself and the global tokens. A global token sees everything, by separate
// projections.
//
// Weight rows that it asks for beside a stack's: i.global.q (D, D), i.global.kv (2 D, D). Feeds:
// global_tokens, global_rows, global_places, global_map_rows, global_head_rows. What is global are
// data; only its number, rounded up, is part of a recording's shape.
#pragma once

#include <optional>

#include "model/blocks/encoder_form.h"

namespace vkformer {

struct LongformerConfig {
  std::vector<int64_t> windows;  // by layer: keys around a query, half of them on each side
  int64_t heads = 1;             // H
  std::string module = "attention.self.";  // of the projections, after a layer's path
  // Which tokens are global where the inputs do not say.
  enum class Default : uint8_t {
    kNone,
    kFirst,     // token 0: sequence classification
    kQuestion,  // those before the first of three separators: question answering
  } without = Default::kNone;
  int64_t separator = 2;  // token id
};

// attention_window: one even number above 0 for all layers, or one each.
Result<std::vector<int64_t>> read_attention_windows(const JsonConfig& config, int64_t layers);

class LongformerForm : public EncoderForm {
 public:
  explicit LongformerForm(LongformerConfig config) : config_(std::move(config)) {}

  void add_layer_rows(const std::string& to, const std::string& from, int64_t width,
                      WeightTable& table) const override;
  std::vector<std::string> input_names() const override;
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Result<StackRun::Attend> begin_pass(ModelBuilder& builder, const StackConfig& stack,
                                      const ForwardShape& shape, TensorId mask) const override;

 private:
  // 1 = global, (B, S).
  Result<std::vector<uint8_t>> global_flags(const TensorMap& inputs,
                                            const ForwardInputs& read) const;
  Status default_flags(const TensorMap& inputs, const ForwardInputs& read,
                       std::vector<uint8_t>& flags) const;

  LongformerConfig config_;
};

}  // namespace vkformer
