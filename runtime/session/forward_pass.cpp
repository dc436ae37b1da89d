#include "session/forward_pass.h"

#include <algorithm>

#include "base/message.h"

namespace vkformer {
namespace {

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
  RecordedGraphOptions options{.model = &m, .precision = m.precision()};
  options.host = forward_access(builder, key_.places);
  for (const std::string& name : options.host.reads) {
    const TensorDesc& desc = graph.tensor(graph.find_external(name));
    const auto bytes = static_cast<uint64_t>(element_count(desc.shape)) * dtype_size(desc.dtype);
    outputs_.push_back({name, 0, bytes});
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
  VKF_ASSIGN(planned_, plan_graph(*m.device(), builder, std::move(options)));
  return {};
}

Status ForwardPass::record() {
  memory_.place(key_.places);
  VKF_ASSIGN(graph_, RecordedGraph::record(memory_, std::move(*planned_)));
  planned_.reset();
  costs_.emplace(costs_of(*model_->device(), graph_->plan()));
  return {};
}

Result<TensorMap> ForwardPass::run(const PassInputs& inputs) {
  VKF_CHECK(graph_->feed(memory_, inputs.words));
  const RecordingRange all[] = {graph_->all()};
  VKF_CHECK(memory_.submit(all, outputs_));
  VKF_CHECK(memory_.wait());
  return read_outputs(inputs);
}

Result<SlicedPlan> ForwardPass::sliced(std::vector<SliceWrite> writes) {
  SlicedPlan plan{.units = {{&graph_->recording(), &*costs_, 1}}, .writes = std::move(writes)};
  plan.before = memory_.take_writes();
  VKF_ASSIGN(plan.after, memory_.copies_of(outputs_));
  return plan;
}

Result<TensorMap> ForwardPass::read_outputs(const PassInputs& inputs) {
  TensorMap outputs;
  for (const TensorPart& part : outputs_) {
    const TensorDesc& desc = graph_->graph().tensor(graph_->graph().find_external(part.name));
    Tensor tensor = Tensor::zeros(desc.dtype, desc.shape);
    VKF_CHECK(memory_.read(part, tensor.bytes));
    outputs.emplace(desc.name, std::move(tensor));
  }
  add_echoes(graph_->graph(), graph_->feeds(), inputs.words, outputs);
  cut_outputs(axes_, inputs.given, outputs);
  return outputs;
}

std::map<std::string, PassTensor> ForwardPass::tensors() const {
  std::map<std::string, PassTensor> found;
  const Graph& graph = graph_->graph();
  const RecordingInputs bound = memory_.bind(graph_->plan(), model_.get());
  for (TensorId id = 0; id < graph.tensors().size(); ++id) {
    const TensorDesc& desc = graph.tensor(id);
    if (desc.kind == TensorKind::kExternal && bound.memory[id].buffer) {
      found[desc.name] = {desc, bound.memory[id]};
    }
  }
  return found;
}

}  // namespace vkformer
