#include "model/blocks/heads.h"

#include "ops/combine.h"
#include "ops/gather_rows.h"
#include "ops/mean_pool.h"

namespace vkformer {
namespace {

Result<TensorId> select_states(ModelBuilder& b, const HeadConfig& head, const HeadInput& input) {
  switch (head.input) {
    case HeadConfig::Input::kAll:
      return input.states;
    case HeadConfig::Input::kToken:
      return add_token_states(b, input.states, head.token);
    case HeadConfig::Input::kMaskedMean:
      return add_mean_pool(b.graph(), input.states, input.mask, {});
    case HeadConfig::Input::kMean:
      return add_mean_pool(b.graph(), input.states, kNoTensor, {});
  }
  return internal_error("[head] unknown input");
}

}  // namespace

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

Result<TensorId> add_capped_output(ModelBuilder& b, const std::string& output, TensorId x,
                                   float cap) {
  if (cap == 0.0f) return add_named_linear(b, output, x);
  VKF_ASSIGN(x, add_named_linear(b, output, x,
                                 {.alpha = 1.0f / cap, .activation = ActivationKind::kTanh}));
  return add_combine(b.graph(), x, x, {.alpha = 0.5f * cap, .beta = 0.5f * cap});
}

Result<TensorId> add_head(ModelBuilder& b, const StackConfig& stack, const HeadConfig& head,
                          const HeadInput& input) {
  b.graph().set_scope(head.name);
  VKF_ASSIGN(TensorId x, select_states(b, head, input));
  if (!head.input_norm.empty()) {
    VKF_ASSIGN(x, add_named_norm(b, stack, head.input_norm, x));
  }
  if (!head.dense.empty()) {
    VKF_ASSIGN(x, add_named_linear(b, head.dense, x, {.activation = head.activation}));
  }
  if (!head.norm.empty()) {
    VKF_ASSIGN(x, add_named_norm(b, stack, head.norm, x));
  }
  if (!head.output.empty()) {
    VKF_ASSIGN(x, add_capped_output(b, head.output, x, head.cap));
  }
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
                              const HeadInput& input) {
  if (sentence.pooling == SentenceFacts::Pooling::kNone) return {};
  b.graph().set_scope("sentence");
  const MeanPoolAttrs attrs{.normalize = sentence.normalize == SentenceFacts::Normalize::kYes
                                             ? MeanPoolAttrs::Normalize::kOn
                                             : MeanPoolAttrs::Normalize::kOff};
  HeadInput from = input;
  if (sentence.pooling == SentenceFacts::Pooling::kFirst) {
    // The mean of one token is the token.
    VKF_ASSIGN(from.states, add_token_states(b, input.states, 0));
    Shape& shape = b.graph().tensor(from.states).shape;
    shape.insert(shape.begin() + 1, 1);
    from.mask = kNoTensor;
  }
  VKF_ASSIGN(TensorId y, add_mean_pool(b.graph(), from.states, from.mask, attrs));
  b.mark_output(y, "sentence_embedding");
  return {};
}

}  // namespace vkformer
