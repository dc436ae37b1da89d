#include "model/model.h"

#include "base/check.h"
#include "base/message.h"

namespace vkformer {

Status ModelFamily::prepare(const Checkpoint&) {
  return {};
}

Status ModelFamily::divide(int64_t, WeightTable&) {
  return unsupported(message({"[group] the layers of a ", facts().architecture,
                              " are not divided among devices; split by layers "
                              "(DeviceGroupOptions::split, --split layers)"}));
}

std::vector<std::string> ModelFamily::input_names() const {
  return {};
}

Status ModelFamily::read_inputs(const TensorMap&, ForwardInputs&) const {
  return {};
}

Result<PromptPictures> ModelFamily::read_pictures(const TensorMap&, const PromptTokens&) const {
  return PromptPictures{};
}

Result<int64_t> ModelFamily::image_tokens(int64_t, int64_t) const {
  return unsupported(message(
      {"[images] a ", facts().architecture, " reads no images in its prompts; give texts alone."}));
}

Status ModelFamily::add_prompt_words(const PromptPictures&, const PromptTokens&, FeedWords&) const {
  return {};
}

Result<ForwardInputs> ModelFamily::second_inputs(const TensorMap&, TensorMap&) const {
  return internal_error("[second_inputs] this family has one pass");
}

Result<ForwardShape> ModelFamily::second_shape(const ForwardShape&, int64_t) const {
  return internal_error("[second_shape] this family has one pass");
}

Status ModelFamily::build_second(ModelBuilder&, const ForwardShape&) const {
  return internal_error("[build_second] this family has one pass");
}

Status ModelFamily::build_prompt(ModelBuilder&, const StepShape&) const {
  return unsupported(message({"[generate] a ", facts().architecture,
                              " does not generate text; load a model with a language head"}));
}

Result<StepResult> ModelFamily::build_step(ModelBuilder&, const StepShape&) const {
  return unsupported(message({"[generate] a ", facts().architecture,
                              " does not generate text; load a model with a language head"}));
}

}  // namespace vkformer
