#include "api/interop_tensors.h"
#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "operators/appended_operator.h"

namespace vkformer {

class RecordedOperatorState {
 public:
  AppendedOperator op;
  std::map<std::string, OperatorTensor> inputs;
  std::map<std::string, OperatorTensor> outputs;
};

namespace {

std::map<std::string, OperatorTensor> described(const std::map<std::string, TensorDesc>& tensors) {
  std::map<std::string, OperatorTensor> result;
  for (const auto& [name, desc] : tensors) result[name] = described(desc);
  return result;
}

}  // namespace

RecordedOperator::RecordedOperator(std::unique_ptr<RecordedOperatorState> impl)
    : impl_(std::move(impl)) {}
RecordedOperator::RecordedOperator(RecordedOperator&&) noexcept = default;
RecordedOperator& RecordedOperator::operator=(RecordedOperator&&) noexcept = default;
RecordedOperator::~RecordedOperator() = default;

Result<RecordedOperator> RecordedOperator::create(const Device& device, const OperatorCall& call) {
  return guarded([&]() -> Result<RecordedOperator> {
    VKF_ASSIGN(AppendedOperator op, AppendedOperator::create(HandleAccess::impl(device), call));
    auto impl =
        std::make_unique<RecordedOperatorState>(RecordedOperatorState{std::move(op), {}, {}});
    impl->inputs = described(impl->op.tensors(false));
    impl->outputs = described(impl->op.tensors(true));
    return HandleAccess::make<RecordedOperator>(std::move(impl));
  });
}

const std::map<std::string, OperatorTensor>& RecordedOperator::inputs() const {
  return impl_->inputs;
}

const std::map<std::string, OperatorTensor>& RecordedOperator::outputs() const {
  return impl_->outputs;
}

Status RecordedOperator::bind(const std::map<std::string, BufferRange>& buffers) {
  return guarded([&]() -> Status {
    VKF_ASSIGN(const auto places, tensor_places(buffers));
    return impl_->op.bind(places);
  });
}

Status RecordedOperator::record(VkCommandBuffer commands) {
  return guarded([&] { return impl_->op.append(commands); });
}

}  // namespace vkformer
