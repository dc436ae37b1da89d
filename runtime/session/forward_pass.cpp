#include "session/forward_pass.h"

namespace vkformer {
namespace {

bool is_input(const std::string& name) {
  return name == "input_ids" || name == "key_mask" || name == "decoder_input_ids" ||
         name == "decoder_key_mask";
}

}  // namespace

bool ForwardKey::operator==(const ForwardKey& other) const {
  return shape.batch == other.shape.batch && shape.source == other.shape.source &&
         shape.target == other.shape.target && taps.attentions == other.taps.attentions &&
         taps.hidden_states == other.taps.hidden_states &&
         taps.decoder_mask == other.taps.decoder_mask &&
         taps.attention_layer == other.taps.attention_layer &&
         taps.attention_head == other.taps.attention_head &&
         taps.raw_scores == other.taps.raw_scores;
}

Result<std::unique_ptr<ForwardPass>> ForwardPass::create(std::shared_ptr<const LoadedModel> model,
                                                         const ForwardKey& key,
                                                         RecordingInputs::Profile profile) {
  std::unique_ptr<ForwardPass> pass(new ForwardPass(std::move(model), key));
  const LoadedModel& m = *pass->model_;
  ModelBuilder builder(pass->graph_, m.weights());
  VKF_CHECK(m.family().build_forward(builder, key.shape, key.taps));
  VKF_ASSIGN(pass->plan_, make_plan(pass->graph_, m.device()->caps(), m.precision()));
  VKF_CHECK(pass->buffers_.allocate(*m.device(), pass->plan_));
  RecordingInputs inputs = pass->buffers_.bind(pass->plan_, m);
  inputs.profile = profile;
  VKF_ASSIGN(Recording recording, Recording::create(m.device(), pass->plan_, inputs));
  pass->recording_ = std::make_unique<Recording>(std::move(recording));
  return pass;
}

Result<TensorMap> ForwardPass::run(const TokenRows& source, const TokenRows* target) {
  VulkanDevice& device = *model_->device();
  const std::vector<uint32_t> mask = source.mask_words();
  VKF_CHECK(buffers_.upload<uint32_t>(device, "input_ids", source.ids));
  VKF_CHECK(buffers_.upload<uint32_t>(device, "key_mask", mask));
  if (target != nullptr) {
    VKF_CHECK(buffers_.upload<uint32_t>(device, "decoder_input_ids", target->ids));
    if (buffers_.has("decoder_key_mask")) {
      const std::vector<uint32_t> words = target->mask_words();
      VKF_CHECK(buffers_.upload<uint32_t>(device, "decoder_key_mask", words));
    }
  }
  const Recording* list[] = {recording_.get()};
  VKF_ASSIGN(uint64_t value, device.submit(list));
  VKF_CHECK(device.wait(value));
  TensorMap outputs;
  for (const TensorDesc& desc : graph_.tensors()) {
    if (desc.kind != TensorKind::kExternal || is_input(desc.name)) continue;
    Tensor tensor = Tensor::zeros(desc.dtype, desc.shape);
    VKF_CHECK(device.download(buffers_.at(desc.name), 0, tensor.bytes));
    outputs.emplace(desc.name, std::move(tensor));
  }
  return outputs;
}

std::vector<DispatchTime> ForwardPass::profile() const {
  std::vector<DispatchTime> list;
  const auto times = recording_->dispatch_times();
  if (!times) return list;
  for (size_t i = 0; i < times->size() && i < plan_.dispatches.size(); ++i) {
    const Dispatch& d = plan_.dispatches[i];
    list.push_back(
        {d.label, std::string(kernel_info(d.kernel).name), (*times)[i] * 1e-3, d.flops, d.bytes});
  }
  return list;
}

}  // namespace vkformer
