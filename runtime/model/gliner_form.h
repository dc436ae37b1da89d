// What GLiNER has after a DeBERTa: scores of all spans of words, up to a width, for labels that are
// part of the input. Formulas: the library gliner; Zaratiana et al., "GLiNER: Generalist model for
// named entity recognition using bidirectional transformer", 2024.
//
//   w_n = the state of the first token of word n, 0 where it has none; after them an LSTM
//   p_c = prompt(the state of the marker of label c)
//   span(s, e) = out([relu(start(w_s)), relu(end(w_e))])
//   logits(s, e, c) = span(s, e) . p_c
//
// start, end and prompt are linear, ReLU, linear. `out` is one matrix (marker), or linear, ReLU,
// linear (markerV0). The first matrix of `out` is applied to starts and ends apart, its second one
// to prompts. So what a span costs is a sum and a product with each label.
//
// Weight rows in addition to DeBERTa's: projection and the LSTM's (blocks/recurrent.h). Then there
// are span.start, span.end and prompt, each with .up and .down. Of `out` there are span.out.start
// and span.out.end, and of a markerV0 span.out.prompt and span.out.bias.
#pragma once

#include "model/blocks/disentangled_attention.h"
#include "model/blocks/recurrent.h"

namespace vkformer {

struct GlinerConfig {
  int64_t width = 0;        // H of words, labels and spans
  int64_t max_width = 0;    // K, words of a span at most
  int64_t label_token = 0;  // id of the marker before each label
  // Whose state is a label's: the marker's, or that of the token after it.
  enum class LabelState : uint8_t { kMarker, kNextToken } label_state = LabelState::kMarker;
  enum class SpanMode : uint8_t { kMarker, kMarkerV0 } mode = SpanMode::kMarkerV0;
  int64_t lstm_layers = 0;  // 0: none

  // Features of a span before its product with labels.
  int64_t span_features() const { return mode == SpanMode::kMarkerV0 ? 4 * width : width; }
};

// Inputs in addition to a text encoder's:
//   words_mask (B, S): n for the first token of word n, counted from 1, else 0. Without it every
//     token that the attention mask keeps is a word.
//   text_lengths (B) or (B, 1): words of each text; without it the largest of its words_mask.
//   span_mask (B, W, K): 1 for the span of k + 1 words from word s on, where it is asked for.
//     Without it W is the most words of a text, and all spans inside their text are.
// Output: logits (B, W, K, C), C the most labels of a row. A span that is not asked for has the
// logits of the first word alone.
class GlinerForm : public DisentangledForm {
 public:
  GlinerForm(DisentangledConfig encoder, GlinerConfig config, int64_t encoder_width);

  void add_rows(const std::string& prefix, WeightTable& table) const override;
  std::vector<std::string> input_names() const override;
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Status add_heads(ModelBuilder& builder, const StackConfig& stack, const ForwardShape& shape,
                   const HeadInput& input) const override;

 private:
  struct Words;
  Status read_words(const TensorMap& inputs, const ForwardInputs& read, Words& words) const;
  Status read_lengths(const TensorMap& inputs, Words& words) const;
  Status read_spans(const TensorMap& inputs, const Words& words, ForwardInputs& result) const;
  int64_t read_labels(ForwardInputs& result) const;
  RecurrentEncoder lstm() const;
  // Of all spans (B, W K, features), and what they are multiplied with (B, C, features).
  Result<TensorId> add_spans(ModelBuilder& builder, TensorId words) const;
  Result<TensorId> add_products(ModelBuilder& builder, TensorId spans, TensorId prompts) const;

  GlinerConfig config_;
  int64_t encoder_width_;
};

}  // namespace vkformer
