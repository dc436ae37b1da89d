// Self-attention whose scores have the content of tokens and their distance apart (He et al., 2021,
// DeBERTa), inside the fused kernels (ops/attention.h):
//
//   score(i, j) = scale (q_i . k_j + q_i . K r(i - j) + k_j . Q r(i - j))
//
// r is a row of a table (2 S, D): distances have rows of their own, or by buckets that grow with
// the logarithm. The second term is called c2p, the third p2c. A pass projects the rows that it
// needs, and puts those of every distance after its queries, keys and values. Products of keys
// with Q r are made before by one matrix product where they are few enough. Else the kernel makes
// them, and memory grows with T alone.
//
// Weight rows that it asks for in addition to a stack's: positions (2 S, D), with a norm
// positions.norm. Where layers have separate projections: i.positions.key and i.positions.query (D,
// D). With a convolution: conv (D, D * kernel) and conv.norm.
#pragma once

#include "model/blocks/encoder_form.h"

namespace vkformer {

struct DistanceRowsConfig {
  int64_t span = 0;      // S; farther distances share the last row
  int64_t buckets = 0;   // 0: every distance has a row
  int64_t farthest = 0;  // tokens, the distance of the last bucket
};

// Whether a row can be found for every distance below `tokens`.
Status check_distance_rows(const DistanceRowsConfig& config, int64_t tokens);
// The row of distance i - j of query i and key j.
int64_t distance_row(const DistanceRowsConfig& config, int64_t distance);

struct DisentangledConfig {
  DistanceRowsConfig rows;
  enum class Term : uint8_t { kNo, kYes } keys = Term::kNo;  // c2p
  Term queries = Term::kNo;                                  // p2c
  enum class Norm : uint8_t { kNo, kYes } norm = Norm::kNo;  // of the table
  // kContent: K and Q are the layer's own projections of keys and queries.
  enum class Projection : uint8_t { kOwn, kContent } projection = Projection::kOwn;
  // A convolution over the first layer's input is added to its output: norm(y + act(conv x)).
  int64_t kernel = 0;  // tokens, odd; 0: none
  ActivationKind activation = ActivationKind::kTanh;
};

class DisentangledForm : public EncoderForm {
 public:
  explicit DisentangledForm(DisentangledConfig config) : config_(config) {}

  void add_layer_rows(const std::string& to, const std::string& from, int64_t width,
                      WeightTable& table) const override;
  void add_rows(const std::string& prefix, WeightTable& table) const override;
  Result<StackRun::Attend> begin_pass(ModelBuilder& builder, const StackConfig& stack,
                                      const ForwardShape& shape, TensorId mask) const override;
  Result<TensorId> after_layer(ModelBuilder& builder, const StackConfig& stack,
                               const LayerStates& states) const override;
  // D of the rows that add_rows lists.
  void set_width(int64_t width) { width_ = width; }

 private:
  bool relates() const {
    return config_.keys == DisentangledConfig::Term::kYes ||
           config_.queries == DisentangledConfig::Term::kYes;
  }

  DisentangledConfig config_;
  int64_t width_ = 0;
};

}  // namespace vkformer
