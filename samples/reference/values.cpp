// Examples of results and of named values.
#include <vkformer/choices.h>
#include <vkformer/result.h>
#include <vkformer/tokenizer.h>

#include <cstdio>

#include "examples.h"

namespace {

//! [Result::ok Result::value Result::error Error::with_context]
// Uses a result's value where there is one, and else hands its error on.
vkformer::Result<size_t> count_tokens(const std::string& model) {
  const vkformer::Result<vkformer::Tokenizer> tokenizer = vkformer::Tokenizer::load(model);
  if (!tokenizer.ok()) return tokenizer.error().with_context("count_tokens");
  return tokenizer.value().vocab_size();
}
//! [end]

}  // namespace

vkformer::Status show_values(const Setting& setting) {
  const auto tokens = count_tokens(setting.models + "/g2p-en");
  if (!tokens) return tokens.error();
  const auto missing = count_tokens(setting.models + "/absent");
  const auto held = expect(!missing && missing.error().message.starts_with("count_tokens: "),
                           "an error with its context");
  if (!held) return held;

  //! [choice_from_name choice_name choice_names weight_bits]
  // Reads a format that a user has typed, and lists those that there are.
  const auto format = vkformer::choice_from_name<vkformer::WeightFormat>("q4_k");
  if (!format) return format.error();
  std::printf("%s: %.2f bits a weight\n", vkformer::choice_name(*format),
              vkformer::weight_bits(*format));
  for (const char* name : vkformer::choice_names<vkformer::WeightFormat>()) std::puts(name);
  //! [end]
  return expect(vkformer::weight_bits(*format) == 4.5, "q4_k with 4.5 bits a weight");
}
