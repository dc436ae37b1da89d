#include "session/forward_pass.h"

#include <algorithm>

#include "base/message.h"

namespace vkformer {
namespace {

// External tensors that the host does not write.
std::vector<TensorId> outputs_of(const Graph& graph, const ModelBuilder& builder) {
  std::vector<bool> written(graph.tensors().size(), false);
  for (const HostFeed& feed : builder.feeds()) written[feed.tensor] = true;
  for (const HostWords& words : builder.words()) written[words.tensor] = true;
  std::vector<TensorId> outputs;
  for (TensorId id = 0; id < graph.tensors().size(); ++id) {
    if (graph.tensor(id).kind == TensorKind::kExternal && !written[id]) outputs.push_back(id);
  }
  return outputs;
}

// Whole numbers (I32) that the host knows and no operator reads, such as the ids of a sequence that
// a family puts together: they are handed out as they were fed.
void add_echoes(const Graph& graph, const std::vector<HostFeed>& feeds, const FeedWords& words,
                TensorMap& outputs) {
  for (const HostFeed& feed : feeds) {
    const TensorDesc& desc = graph.tensor(feed.tensor);
    const auto found = words.find(feed.what);
    if (desc.dtype != DType::kI32 || found == words.end()) continue;
    Tensor tensor = Tensor::zeros(desc.dtype, desc.shape);
    const auto bytes = std::as_bytes(std::span(found->second));
    std::copy_n(bytes.begin(), std::min(bytes.size(), tensor.bytes.size()), tensor.bytes.begin());
    outputs.emplace(desc.name, std::move(tensor));
  }
}

Status check_places(const Graph& graph, const std::map<std::string, TensorPlace>& places) {
  for (const auto& [name, place] : places) {
    if (graph.find_external(name) != kNoTensor) continue;
    std::string known;
    for (const TensorDesc& desc : graph.tensors()) {
      if (desc.kind == TensorKind::kExternal) known += (known.empty() ? "" : ", ") + desc.name;
    }
    return not_found(message({"[", name, "] is not a tensor of this pass; there are ", known}));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ForwardPass>> ForwardPass::create(std::shared_ptr<const LoadedModel> model,
                                                         const ForwardKey& key,
                                                         RecordingInputs::Profile profile) {
  std::unique_ptr<ForwardPass> pass(new ForwardPass(std::move(model), key));
  const LoadedModel& m = *pass->model_;
  ModelBuilder builder(pass->graph_, m.weights());
  VKF_CHECK(m.family().build_forward(builder, key.shape, key.taps));
  VKF_CHECK(apply_attention_request(pass->graph_, key.attention));
  VKF_CHECK(check_places(pass->graph_, key.places));
  VKF_ASSIGN(Plan plan, make_plan(pass->graph_, m.device()->caps(), m.precision()));
  pass->buffers_.place(key.places);
  VKF_CHECK(pass->buffers_.allocate(*m.device(), plan));
  VKF_CHECK(pass->buffers_.upload_words(*m.device(), pass->graph_, builder.words()));
  pass->feeds_ = builder.feeds();
  pass->outputs_ = outputs_of(pass->graph_, builder);
  RecordingInputs inputs = pass->buffers_.bind(plan, m);
  inputs.profile = profile;
  pass->costs_.emplace(plan, first_rate(m.device()->caps()));
  VKF_ASSIGN(Recording recording, Recording::create(m.device(), std::move(plan), inputs));
  pass->recording_ = std::make_unique<Recording>(std::move(recording));
  return pass;
}

Result<TensorMap> ForwardPass::run(const FeedWords& words) {
  VulkanDevice& device = *model_->device();
  VKF_CHECK(buffers_.upload_feeds(device, graph_, feeds_, words));
  const Recording* list[] = {recording_.get()};
  VKF_ASSIGN(uint64_t value, device.submit(list));
  VKF_CHECK(device.wait(value));
  return read_outputs(words);
}

Result<TensorMap> ForwardPass::read_outputs(const FeedWords& words) {
  VulkanDevice& device = *model_->device();
  TensorMap outputs;
  for (TensorId id : outputs_) {
    const TensorDesc& desc = graph_.tensor(id);
    if (buffers_.placed(desc.name)) continue;
    Tensor tensor = Tensor::zeros(desc.dtype, desc.shape);
    VKF_CHECK(device.download(buffers_.at(desc.name), 0, tensor.bytes));
    outputs.emplace(desc.name, std::move(tensor));
  }
  add_echoes(graph_, feeds_, words, outputs);
  return outputs;
}

std::map<std::string, PassTensor> ForwardPass::tensors() const {
  std::map<std::string, PassTensor> found;
  const RecordingInputs bound = buffers_.bind(recording_->plan(), *model_);
  for (TensorId id = 0; id < graph_.tensors().size(); ++id) {
    const TensorDesc& desc = graph_.tensor(id);
    if (desc.kind == TensorKind::kExternal && bound.memory[id].buffer) {
      found[desc.name] = {desc, bound.memory[id]};
    }
  }
  return found;
}

std::vector<DispatchTime> ForwardPass::profile() const {
  std::vector<DispatchTime> list;
  const auto times = recording_->dispatch_times();
  if (!times) return list;
  const std::vector<Dispatch>& dispatches = recording_->plan().dispatches;
  for (size_t i = 0; i < times->size() && i < dispatches.size(); ++i) {
    const Dispatch& d = dispatches[i];
    list.push_back(
        {d.label, std::string(kernel_info(d.kernel).name), (*times)[i] * 1e-3, d.flops, d.bytes});
  }
  return list;
}

}  // namespace vkformer
