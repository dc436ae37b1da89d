#include "model/blocks/heads.h"

#include "model/sentence_files.h"
#include "ops/combine.h"
#include "ops/concat_columns.h"
#include "ops/gather_rows.h"
#include "ops/mean_pool.h"

namespace vkformer {
namespace {

// The mean of the states (B, T, D) from `token` on -> (B, D).
Result<TensorId> add_mean_from(ModelBuilder& b, TensorId states, int64_t token) {
  if (token == 0) return add_mean_pool(b.graph(), states, kNoTensor, {});
  const Shape shape = b.graph().tensor(states).shape;
  std::vector<uint32_t> rows;
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t t = token; t < shape[1]; ++t) {
      rows.push_back(static_cast<uint32_t>(i * shape[1] + t));
    }
  }
  const TensorId indices = b.host_tensor("tokens.from." + std::to_string(token), DType::kU32,
                                         {shape[0], shape[1] - token}, std::move(rows));
  VKF_ASSIGN(const TensorId last, add_gather_rows(b.graph(), {.x = states, .indices = indices}));
  return add_mean_pool(b.graph(), last, kNoTensor, {});
}

Result<TensorId> select_states(ModelBuilder& b, const HeadConfig& head, const HeadInput& input) {
  switch (head.input) {
    case HeadConfig::Input::kAll:
      return input.states;
    case HeadConfig::Input::kToken:
      return add_token_states(b, input.states, head.token);
    case HeadConfig::Input::kLast:
      return add_mean_pool(b.graph(), input.states, input.mask, {.kind = PoolKind::kLast});
    case HeadConfig::Input::kMaskedMean:
      return add_mean_pool(b.graph(), input.states, input.mask, {});
    case HeadConfig::Input::kMean:
      return add_mean_from(b, input.states, head.token);
  }
  return internal_error("[head] unknown input");
}

// The pool of one token is the token: x (B, D) -> (B, D), perhaps of length 1.
Result<TensorId> add_pooled_token(ModelBuilder& b, TensorId x, MeanPoolAttrs::Normalize lengths) {
  Shape& shape = b.graph().tensor(x).shape;
  shape.insert(shape.begin() + 1, 1);
  return add_mean_pool(b.graph(), x, kNoTensor, {.normalize = lengths});
}

// (B, T, D) -> (B, D).
Result<TensorId> add_pooled(ModelBuilder& b, const MeanPoolAttrs& attrs, TensorId states,
                            TensorId mask) {
  if (attrs.kind != PoolKind::kFirst) return add_mean_pool(b.graph(), states, mask, attrs);
  VKF_ASSIGN(const TensorId first, add_token_states(b, states, 0));
  return add_pooled_token(b, first, attrs.normalize);
}

// The output row of x (..., D), times `scale`, then softly capped where `cap` is not 0 -> (..., V).
Result<TensorId> add_scaled_output(ModelBuilder& b, const std::string& output, TensorId x,
                                   float scale, float cap) {
  if (cap == 0.0f) return add_named_linear(b, output, x, {.alpha = scale});
  VKF_ASSIGN(x, add_named_linear(b, output, x,
                                 {.alpha = scale / cap, .activation = ActivationKind::kTanh}));
  return add_combine(b.graph(), x, x, {.alpha = 0.5f * cap, .beta = 0.5f * cap});
}

}  // namespace

Result<TensorId> add_unit_rows(ModelBuilder& b, TensorId x) {
  return add_pooled_token(b, x, MeanPoolAttrs::Normalize::kOn);
}

Result<TensorId> add_token_states(ModelBuilder& b, TensorId states, int64_t token) {
  const Shape shape = b.graph().tensor(states).shape;
  std::vector<uint32_t> rows;
  for (int64_t i = 0; i < shape[0]; ++i) {
    rows.push_back(static_cast<uint32_t>(i * shape[1] + token));
  }
  const TensorId indices =
      b.host_tensor("token." + std::to_string(token), DType::kU32, {shape[0]}, std::move(rows));
  return add_gather_rows(b.graph(), {.x = states, .indices = indices});
}

Result<TensorId> add_head_layers(ModelBuilder& b, const StackConfig& stack, const HeadConfig& head,
                                 const HeadInput& selected) {
  TensorId x = selected.states;
  if (!head.dense.empty()) {
    VKF_ASSIGN(x, add_named_linear(b, head.dense, x, {.activation = head.activation}));
  }
  if (!head.norm.empty()) {
    VKF_ASSIGN(x, add_named_norm(b, stack, head.norm, x));
  }
  if (head.late_mean == HeadConfig::LateMean::kMasked) {
    VKF_ASSIGN(x, add_mean_pool(b.graph(), x, selected.mask, {}));
  }
  if (!head.output.empty()) {
    VKF_ASSIGN(x, add_scaled_output(b, head.output, x, head.scale, head.cap));
  }
  return x;
}

Result<TensorId> add_head(ModelBuilder& b, const StackConfig& stack, const HeadConfig& head,
                          const HeadInput& input) {
  b.graph().set_scope(head.name);
  VKF_ASSIGN(TensorId x, select_states(b, head, input));
  if (!head.input_norm.empty()) {
    VKF_ASSIGN(x, add_named_norm(b, stack, head.input_norm, x));
  }
  VKF_ASSIGN(x, add_head_layers(b, stack, head, {x, input.mask}));
  if (x == input.states) return internal_error("[head] nothing to add for " + head.name);
  b.mark_output(x, head.name);
  if (head.squeeze == HeadConfig::Squeeze::kYes) b.graph().tensor(x).shape.pop_back();
  return x;
}

Status add_heads(ModelBuilder& b, const StackConfig& stack, const std::vector<HeadConfig>& heads,
                 const HeadInput& input) {
  for (const HeadConfig& head : heads) VKF_CHECK(add_head(b, stack, head, input));
  return {};
}

Status add_sentence_embedding(ModelBuilder& b, const SentenceFacts& sentence,
                              const ForwardTaps& taps, const HeadInput& input) {
  if (!sentence.pools()) return {};
  b.graph().set_scope("sentence");
  TensorId mask = input.mask;
  if (taps.pooling_mask == ForwardTaps::Tap::kOn) {
    const Shape& states = b.graph().tensor(input.states).shape;
    mask = b.graph().add_external("pooling_mask", DType::kU32, {states[0], (states[1] + 31) / 32});
    b.feed("pooling_mask", mask);
  }
  // One way to pool makes lengths 1 by the way.
  using Kind = SentenceFacts::Step::Kind;
  const bool unit = sentence.pooling.size() == 1 && !sentence.steps.empty() &&
                    sentence.steps[0].kind == Kind::kNormalize;
  const auto lengths = unit ? MeanPoolAttrs::Normalize::kOn : MeanPoolAttrs::Normalize::kOff;
  TensorId y = kNoTensor;
  for (const PoolKind kind : sentence.pooling) {
    VKF_ASSIGN(const TensorId part, add_pooled(b, {kind, lengths}, input.states, mask));
    if (y == kNoTensor) {
      y = part;
    } else {
      VKF_ASSIGN(y, add_concat_columns(b.graph(), y, part));
    }
  }
  for (size_t i = unit ? 1 : 0; i < sentence.steps.size(); ++i) {
    const SentenceFacts::Step& step = sentence.steps[i];
    if (step.kind == Kind::kDense) {
      VKF_ASSIGN(y, add_named_linear(b, sentence_row(i), y, {.activation = step.activation}));
    } else {
      VKF_ASSIGN(y, add_pooled_token(b, y, MeanPoolAttrs::Normalize::kOn));
    }
  }
  b.mark_output(y, "sentence_embedding");
  return {};
}

}  // namespace vkformer
