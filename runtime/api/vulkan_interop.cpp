#include "vkformer/vulkan_interop.h"

#include <algorithm>

#include "base/check.h"
#include "session/appended_operator.h"
#include "vulkan/foreign_buffer.h"

namespace vkformer {

struct RecordedOperator::Impl {
  AppendedOperator op;
  std::map<std::string, OperatorTensor> inputs;
  std::map<std::string, OperatorTensor> outputs;
  std::map<std::string, Buffer> views;
};

namespace {

std::map<std::string, OperatorTensor> described(const std::map<std::string, TensorDesc>& tensors) {
  std::map<std::string, OperatorTensor> result;
  for (const auto& [name, desc] : tensors) {
    const auto words = static_cast<VkDeviceSize>(std::max<int64_t>(1, element_count(desc.shape)));
    result[name] = {desc.dtype, desc.shape, desc.bytes != 0 ? desc.bytes : 4 * words};
  }
  return result;
}

}  // namespace

RecordedOperator::RecordedOperator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RecordedOperator::RecordedOperator(RecordedOperator&&) noexcept = default;
RecordedOperator& RecordedOperator::operator=(RecordedOperator&&) noexcept = default;
RecordedOperator::~RecordedOperator() = default;

Result<RecordedOperator> RecordedOperator::create(const Device& device, const OperatorCall& call) {
  VKF_ASSIGN(AppendedOperator op, AppendedOperator::create(device.impl(), call));
  auto impl = std::make_unique<Impl>(Impl{std::move(op), {}, {}, {}});
  impl->inputs = described(impl->op.tensors(false));
  impl->outputs = described(impl->op.tensors(true));
  return RecordedOperator(std::move(impl));
}

const std::map<std::string, OperatorTensor>& RecordedOperator::inputs() const {
  return impl_->inputs;
}

const std::map<std::string, OperatorTensor>& RecordedOperator::outputs() const {
  return impl_->outputs;
}

Status RecordedOperator::bind(const std::map<std::string, BufferRange>& buffers) {
  std::map<std::string, BufferSpan> places;
  for (const auto& [name, range] : buffers) {
    if (range.buffer == VK_NULL_HANDLE) {
      return invalid_argument("[" + name + "] is given no buffer; leave it out or give one");
    }
    Buffer& view = impl_->views[name];
    view = view_foreign_buffer(range.buffer, range.offset + range.bytes, name);
    places[name] = {&view, range.offset, range.bytes};
  }
  return impl_->op.bind(places);
}

Status RecordedOperator::record(VkCommandBuffer commands) {
  return impl_->op.append(commands);
}

}  // namespace vkformer
