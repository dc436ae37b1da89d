// Examples of sessions: passes, generations and scores.
#include <vkformer/session.h>
#include <vkformer/tokenizer.h>

#include <cstdio>

#include "examples.h"

namespace {

vkformer::Status show_pass(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  const std::string directory = setting.goldens + "/bert-sentiment/model";
  //! [Session::create Session::run]
  // Runs one pass of a classifier over a text of four tokens.
  const auto model = vkformer::Model::load(device, directory);
  if (!model) return model.error();
  auto session = vkformer::Session::create(*model);
  if (!session) return session.error();
  const auto outputs =
      session->run({{"input_ids", vkformer::Tensor::from_ints({1, 4}, {1, 5, 7, 2})}});
  if (!outputs) return outputs.error();
  const auto logits = outputs->at("logits").to_floats();
  if (!logits) return logits.error();
  std::printf("%zu classes\n", logits->size());
  //! [end]
  return expect(!logits->empty(), "classes");
}

vkformer::Status show_generations(const Setting& setting) {
  const std::string directory = setting.models + "/shakespeare";
  const auto model = vkformer::Model::load(setting.device, directory);
  if (!model) return model.error();
  auto session = vkformer::Session::create(*model);
  if (!session) return session.error();
  const auto tokenizer = vkformer::Tokenizer::load(directory);
  if (!tokenizer) return tokenizer.error();

  //! [Session::generate Session::generation_defaults Session::counters]
  // Continues a prompt by 12 tokens, and says how many decoding steps that took.
  const auto prompt = tokenizer->encode("ROMEO:");
  if (!prompt) return prompt.error();
  vkformer::GenerateOptions options = session->generation_defaults();
  options.max_new_tokens = 12;
  const auto generation = session->generate({prompt->ids}, options);
  if (!generation) return generation.error();
  const auto text = tokenizer->decode(generation->front().front().ids);
  if (!text) return text.error();
  std::printf("%s\n%lld steps\n", text->c_str(), static_cast<long long>(session->counters().steps));
  //! [end]

  //! [Session::generate_masked]
  // Continues the same prompt as a tensor; its mask says which tokens count.
  const auto length = static_cast<int64_t>(prompt->ids.size());
  const vkformer::TensorMap inputs = {
      {"input_ids", vkformer::Tensor::from_ints({1, length}, prompt->ids)},
      {"attention_mask", vkformer::Tensor::from_ints({1, length}, prompt->attention_mask)}};
  const auto masked = session->generate_masked(inputs, options);
  if (!masked) return masked.error();
  //! [end]
  const auto held = expect(masked->front().front().ids == generation->front().front().ids,
                           "the same text from tensors");
  if (!held) return held;

  //! [Session::score Session::score_masked]
  // How likely a continuation is: the log-probability of each of its tokens.
  const auto continuation = tokenizer->encode(" O");
  if (!continuation) return continuation.error();
  const auto scores = session->score({prompt->ids}, {continuation->ids});
  if (!scores) return scores.error();
  for (const float log_probability : scores->front()) std::printf("%.3f\n", log_probability);
  // The same with the prompt as tensors.
  const auto masked_scores = session->score_masked(inputs, {continuation->ids});
  if (!masked_scores) return masked_scores.error();
  //! [end]
  return expect(*scores == *masked_scores, "the same scores from tensors");
}

}  // namespace

vkformer::Status show_session(const Setting& setting) {
  const auto passed = show_pass(setting);
  if (!passed) return passed;
  return show_generations(setting);
}
