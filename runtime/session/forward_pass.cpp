#include "session/forward_pass.h"

#include <algorithm>

#include "base/message.h"

namespace vkformer {
namespace {

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

// The host reads every external tensor that neither it nor the application writes.
HostAccess forward_access(const ModelBuilder& builder,
                          const std::map<std::string, TensorPlace>& places) {
  HostAccess access = host_access(builder, {});
  const auto written = [&](const std::string& name) {
    return std::find(access.writes.begin(), access.writes.end(), name) != access.writes.end();
  };
  for (const TensorDesc& desc : builder.graph().tensors()) {
    if (desc.kind != TensorKind::kExternal || places.count(desc.name) != 0) continue;
    if (!written(desc.name)) access.reads.push_back(desc.name);
  }
  return access;
}

Status ForwardPass::build(ModelBuilder& builder, const ForwardShape& shape) const {
  const ModelFamily& family = model_->family();
  VKF_CHECK(key_.pass == ForwardKey::Pass::kSecond
                ? family.build_second(builder, shape)
                : family.build_forward(builder, shape, key_.taps));
  return apply_attention_request(builder.graph(), key_.attention);
}

Status ForwardPass::plan() {
  const LoadedModel& m = *model_;
  Graph graph;
  ModelBuilder builder(graph, m.weights());
  VKF_CHECK(build(builder, key_.shape));
  VKF_CHECK(check_places(graph, key_.places));
  RecordedGraphOptions options{.precision = m.precision()};
  options.host = forward_access(builder, key_.places);
  for (const std::string& name : options.host.reads) {
    const TensorDesc& desc = graph.tensor(graph.find_external(name));
    const auto bytes = static_cast<uint64_t>(element_count(desc.shape)) * dtype_size(desc.dtype);
    outputs_.push_back({name, 0, bytes});
    described_.push_back(desc);
  }
  if (key_.cuts) {
    const auto build_other = [this](const ForwardShape& shape) -> Result<Graph> {
      Graph other;
      ModelBuilder other_builder(other, model_->weights());
      VKF_CHECK(build(other_builder, shape));
      return other;
    };
    VKF_ASSIGN(axes_, output_axes(graph, options.host.reads, key_.shape, build_other));
  }
  for (const HostFeed& feed : builder.feeds()) {
    const TensorDesc& desc = graph.tensor(feed.tensor);
    if (desc.dtype == DType::kI32) echoes_.emplace_back(desc, feed.what);
  }
  const char* name = key_.pass == ForwardKey::Pass::kSecond ? "second" : "forward";
  std::vector<StageSource> sources;
  sources.push_back({&builder, std::move(options), name});
  VKF_ASSIGN(std::vector<std::vector<PlannedStage>> planned,
             plan_stages(m, memory_, std::move(sources)));
  planned_ = std::move(planned[0]);
  return {};
}

std::vector<const Plan*> ForwardPass::plans() const {
  // Who makes pipelines ahead makes them for one device.
  if (model_->split() != nullptr) return {};
  return {&planned_[0].planned->plan};
}

Status ForwardPass::record() {
  const bool split = model_->split() != nullptr;
  if (!split) memory_.only().place(key_.places);
  VKF_ASSIGN(graph_, StagedGraph::record(memory_, std::move(planned_)));
  planned_.clear();
  if (!split) costs_.emplace(costs_of(*model_->device(), graph_->only().plan()));
  return {};
}

Result<TensorMap> ForwardPass::run(const PassInputs& inputs) {
  VKF_CHECK(graph_->feed(memory_, inputs.words));
  if (model_->split() != nullptr) {
    VKF_CHECK(graph_->submit(memory_, RecordingPart::kAll, outputs_));
  } else {
    const RecordingRange all[] = {graph_->only().all()};
    VKF_CHECK(memory_.only().submit(all, outputs_));
  }
  VKF_CHECK(memory_.wait());
  return read_outputs(inputs);
}

Result<SlicedPlan> ForwardPass::sliced(std::vector<SliceWrite> writes) {
  SlicedPlan plan{.units = {{&graph_->only().recording(), &*costs_, 1}},
                  .writes = std::move(writes)};
  plan.before = memory_.only().take_writes();
  VKF_ASSIGN(plan.after, memory_.only().copies_of(outputs_));
  return plan;
}

Result<TensorMap> ForwardPass::read_outputs(const PassInputs& inputs) {
  TensorMap outputs;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Tensor tensor = Tensor::zeros(described_[i].dtype, described_[i].shape);
    VKF_CHECK(memory_.read(outputs_[i], tensor.bytes));
    outputs.emplace(described_[i].name, std::move(tensor));
  }
  for (const auto& [desc, what] : echoes_) {
    const auto found = inputs.words.find(what);
    if (found == inputs.words.end()) continue;
    Tensor tensor = Tensor::zeros(desc.dtype, desc.shape);
    const auto bytes = std::as_bytes(std::span(found->second));
    std::copy_n(bytes.begin(), std::min(bytes.size(), tensor.bytes.size()), tensor.bytes.begin());
    outputs.emplace(desc.name, std::move(tensor));
  }
  cut_outputs(axes_, inputs.given, outputs);
  return outputs;
}

std::map<std::string, PassTensor> ForwardPass::tensors() const {
  std::map<std::string, PassTensor> found;
  const Graph& graph = graph_->only().graph();
  const RecordingInputs bound = memory_.only().bind(graph_->only().plan(), model_.get());
  for (TensorId id = 0; id < graph.tensors().size(); ++id) {
    const TensorDesc& desc = graph.tensor(id);
    if (desc.kind == TensorKind::kExternal && bound.memory[id].buffer) {
      found[desc.name] = {desc, bound.memory[id]};
    }
  }
  return found;
}

}  // namespace vkformer
