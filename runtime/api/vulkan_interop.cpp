#include "vkformer/vulkan_interop.h"

#include "api/interop_tensors.h"
#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "base/message.h"
#include "session/session_state.h"
#include "vulkan/context.h"
#include "vulkan/foreign_buffer.h"

namespace vkformer {

namespace {

// An image as a session takes it, or why it cannot be read.
Result<SourceImage> source_image(const ImageInput& input, size_t index) {
  const std::string who = "[" + std::to_string(index) + "] of the images ";
  if (input.image == VK_NULL_HANDLE) return invalid_argument(who + "is null; give a VkImage");
  const bool plain =
      input.format == VK_FORMAT_R8G8B8A8_UNORM || input.format == VK_FORMAT_R8G8B8A8_SRGB;
  const bool swapped =
      input.format == VK_FORMAT_B8G8R8A8_UNORM || input.format == VK_FORMAT_B8G8R8A8_SRGB;
  if (!plain && !swapped) {
    return unsupported(
        message({who, "has VkFormat ", static_cast<int>(input.format),
                 ", but must have R8G8B8A8 or B8G8R8A8, UNORM or SRGB; copy it to such a one"}));
  }
  if (input.layout == VK_IMAGE_LAYOUT_UNDEFINED || input.layout == VK_IMAGE_LAYOUT_PREINITIALIZED) {
    return invalid_argument(
        message({who, "is in VkImageLayout ", static_cast<int>(input.layout),
                 ", to which it cannot return; give the layout that it has when it is read"}));
  }
  const SliceImage image{.image = handle_bits(input.image),
                         .layout = input.layout,
                         .width = input.width,
                         .height = input.height,
                         .mip_level = input.mip_level,
                         .array_layer = input.array_layer};
  return SourceImage{image, swapped};
}

Status add_uses(const std::vector<SemaphoreUse>& uses, std::vector<uint64_t>& handles,
                std::vector<uint64_t>& values) {
  for (const SemaphoreUse& use : uses) {
    if (use.semaphore == VK_NULL_HANDLE) {
      return invalid_argument(
          message({"[advance] semaphore ", handles.size(), " is null; leave it out or make one"}));
    }
    handles.push_back(handle_bits(use.semaphore));
    values.push_back(use.value);
  }
  return {};
}

}  // namespace

Status start_on_buffers(Session& session, const TensorMap& inputs,
                        const std::map<std::string, BufferRange>& buffers,
                        const RunOptions& options) {
  return guarded([&]() -> Status {
    VKF_ASSIGN(const SessionState::Turn turn, HandleAccess::impl(session)->turn());
    VKF_ASSIGN(const auto places, tensor_places(buffers));
    return HandleAccess::impl(session)->start(inputs, options, places);
  });
}

Status start_on_images(Session& session, const TensorMap& inputs,
                       const std::vector<ImageInput>& images, const PictureProcessor& processor,
                       const std::map<std::string, BufferRange>& buffers,
                       const RunOptions& options) {
  return guarded([&]() -> Status {
    VKF_ASSIGN(const SessionState::Turn turn, HandleAccess::impl(session)->turn());
    VKF_ASSIGN(auto places, tensor_places(buffers));
    std::vector<SourceImage> sources;
    for (const ImageInput& image : images) {
      VKF_ASSIGN(const SourceImage source, source_image(image, sources.size()));
      sources.push_back(source);
    }
    return HandleAccess::impl(session)->start_on_images(inputs, options, std::move(places), sources,
                                                        processor.settings());
  });
}

Status forget_buffers(Session& session) {
  return guarded([&]() -> Status {
    VKF_ASSIGN(const SessionState::Turn turn, HandleAccess::impl(session)->turn());
    return HandleAccess::impl(session)->forget_buffers();
  });
}

Result<std::map<std::string, PassBuffer>> pass_buffers(const Session& session) {
  return guarded([&]() -> Result<std::map<std::string, PassBuffer>> {
    VKF_ASSIGN(const SessionState::Turn turn, HandleAccess::impl(session)->turn());
    VKF_ASSIGN(const auto tensors, HandleAccess::impl(session)->tensors());
    std::map<std::string, PassBuffer> result;
    for (const auto& [name, tensor] : tensors) {
      const BufferSpan& span = tensor.span;
      result[name] = {described(tensor.desc),
                      {vulkan_handle(*span.buffer), span.offset, span.bytes}};
    }
    return result;
  });
}

Result<Advance> advance_between(Session& session, double microseconds,
                                const std::vector<SemaphoreUse>& wait,
                                const std::vector<SemaphoreUse>& signal) {
  return guarded([&]() -> Result<Advance> {
    VKF_ASSIGN(const SessionState::Turn turn, HandleAccess::impl(session)->turn());
    SubmitSemaphores semaphores;
    VKF_CHECK(add_uses(wait, semaphores.wait_handles, semaphores.wait_values));
    VKF_CHECK(add_uses(signal, semaphores.signal_handles, semaphores.signal_values));
    return HandleAccess::impl(session)->advance(microseconds, semaphores);
  });
}

}  // namespace vkformer
