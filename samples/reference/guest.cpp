// Examples of vkformer as a guest on the application's own Vulkan device.
#include <vkformer/frame_scheduler.h>
#include <vkformer/vulkan_interop.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "c/guest.h"
#include "examples.h"
#include "host/frame.h"
#include "host/memory.h"
#include "host/vulkan_host.h"

using sample::VulkanHost;
using vkformer::Tensor;

namespace {

// Submits what was recorded and waits. The renderer wants all moments of its frames marked.
vkformer::Status submit(sample::Frame& frame) {
  frame.mark(sample::Moment::kSliceDone);
  frame.mark(sample::Moment::kEnd);
  return frame.run({});
}

vkformer::Status show_features(const VulkanHost& host) {
  const PFN_vkGetInstanceProcAddr load = host.get_instance_proc_addr();
  const VkInstance instance = host.instance();
  const VkPhysicalDevice physical_device = host.physical_device();
  //! [device_requirements FeatureChain::create FeatureChain::features]
  //! [FeatureChain::extension_names FeatureChain::extensions]
  // Fills in what of the application's vkCreateDevice is worth enabling for vkformer.
  const auto wanted =
      vkformer::device_requirements(load, instance, physical_device, VK_API_VERSION_1_2);
  if (!wanted) return wanted.error();
  const auto chain = vkformer::FeatureChain::create(*wanted);
  if (!chain) return chain.error();
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = chain->features();
  info.enabledExtensionCount = static_cast<uint32_t>(chain->extension_names().size());
  info.ppEnabledExtensionNames = chain->extension_names().data();
  for (const std::string& name : chain->extensions()) std::puts(name.c_str());
  //! [end]
  return expect(info.pNext != nullptr, "a chain of features");
}

vkformer::Result<vkformer::Device> adopt(const VulkanHost& host) {
  //! [adopt_device]
  // Hands the application's device over; `host` holds what the application made.
  vkformer::AdoptedDevice adopted;
  adopted.get_instance_proc_addr = host.get_instance_proc_addr();
  adopted.instance = host.instance();
  adopted.physical_device = host.physical_device();
  adopted.device = host.device();
  adopted.queue_family = host.queue_family();
  adopted.queue = host.queue();
  adopted.api_version = host.api_version();
  adopted.enabled_features = host.enabled_features();
  adopted.enabled_extensions = host.enabled_extensions();
  auto device = vkformer::adopt_device(adopted);
  if (!device) return device.error();
  //! [end]
  return device;
}

vkformer::Status show_operator(const VulkanHost& host, const vkformer::Device& device) {
  auto frame = sample::Frame::create(host);
  if (!frame) return frame.error();
  const auto buffer = sample::make_buffer(host, 1024, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
  if (!buffer) return buffer.error();
  const VkBuffer place = buffer->buffer.get();
  const auto commands = frame->begin();
  if (!commands) return commands.error();
  const VkCommandBuffer command_buffer = *commands;
  //! [RecordedOperator::create RecordedOperator::inputs RecordedOperator::outputs]
  //! [RecordedOperator::bind RecordedOperator::record]
  // Appends a softmax to the application's commands, whose output goes to the buffer `place`.
  vkformer::OperatorCall call;
  call.name = "softmax";
  call.inputs = {{"X", Tensor::from_floats({2, 2}, {1, 2, 3, 4})}};
  auto softmax = vkformer::RecordedOperator::create(device, call);
  if (!softmax) return softmax.error();
  std::printf("%zu inputs can be bound\n", softmax->inputs().size());
  const auto& [name, tensor] = *softmax->outputs().begin();
  const auto bound = softmax->bind({{name, {place, 0, tensor.bytes}}});
  if (!bound) return bound.error();
  const auto recorded = softmax->record(command_buffer);
  if (!recorded) return recorded.error();
  //! [end]
  const auto ran = submit(*frame);
  if (!ran) return ran;
  const float* values = static_cast<const float*>(buffer->mapped);
  return expect(values[0] > 0.26F && values[0] < 0.28F, "a softmax");
}

vkformer::Status show_buffers(const VulkanHost& host, vkformer::Session& session) {
  const vkformer::TensorMap inputs = {{"input_ids", Tensor::from_ints({1, 4}, {1, 5, 7, 2})}};
  const auto buffer = sample::make_buffer(host, 1024, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
  if (!buffer) return buffer.error();
  const VkBuffer place = buffer->buffer.get();
  //! [start_on_buffers pass_buffers forget_buffers]
  // Runs a pass whose logits go to the application's buffer `place`, then lets the buffer go.
  const auto started = vkformer::start_on_buffers(session, inputs, {{"logits", {place, 0, 1024}}});
  if (!started) return started.error();
  const auto buffers = vkformer::pass_buffers(session);
  if (!buffers) return buffers.error();
  for (const auto& [name, at] : *buffers) std::puts(name.c_str());
  vkformer::Advance advance;
  while (advance.more_to_submit()) {
    const auto slice = session.advance(500);  // once a frame
    if (!slice) return slice.error();
    advance = *slice;
  }
  const auto rest = session.finish();
  if (!rest) return rest.error();
  const auto forgotten = vkformer::forget_buffers(session);
  if (!forgotten) return forgotten.error();
  //! [end]
  return expect(rest->count("logits") == 0, "placed outputs are not in the result");
}

vkformer::Status show_semaphores(const VulkanHost& host, vkformer::Session& session) {
  const vkformer::TensorMap inputs = {{"input_ids", Tensor::from_ints({1, 4}, {1, 5, 7, 2})}};
  VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  VkSemaphore made = VK_NULL_HANDLE;
  const VkResult result = host.vk().CreateSemaphore(host.device(), &info, nullptr, &made);
  if (result != VK_SUCCESS) return sample::driver_error("vkCreateSemaphore", result);
  const sample::Owned<VkSemaphore> owned(host.device(), made, host.vk().DestroySemaphore);
  const auto started = session.start(inputs);
  if (!started) return started;
  //! [advance_between]
  // Submits all that is left; the application's next submit may wait for the semaphore `made`.
  const double all = std::numeric_limits<double>::infinity();
  const auto advance = vkformer::advance_between(session, all, {}, {{made}});
  if (!advance) return advance.error();
  //! [end]
  const auto outputs = session.finish();
  if (!outputs) return outputs.error();
  return expect(!advance->more_to_submit(), "everything submitted");
}

vkformer::Status show_recording(const VulkanHost& host, vkformer::Session& session) {
  const vkformer::TensorMap inputs = {{"input_ids", Tensor::from_ints({1, 4}, {1, 5, 7, 2})}};
  auto frame = sample::Frame::create(host);
  if (!frame) return frame.error();
  const auto started = session.start(inputs);
  if (!started) return started;
  auto commands = frame->begin();
  if (!commands) return commands.error();
  //! [Session::record Session::drop_recorded]
  // Appends a slice to a command buffer that is then never submitted, as when a window closes:
  // the slice comes again.
  const auto slice = session.record(*commands, 500);
  if (!slice) return slice.error();
  const bool lost = slice->progress != vkformer::Advance::Progress::kPreparing;
  if (lost) {
    const auto dropped = session.drop_recorded();
    if (!dropped) return dropped.error();
  }
  //! [end]
  // The lost commands begin anew; the scheduler records the rest.
  const auto ended = submit(*frame);
  if (!ended) return ended;
  vkformer::FrameScheduler scheduler;
  const auto job = scheduler.add(session);
  if (!job) return job.error();
  //! [FrameScheduler::record]
  // Records a millisecond of all jobs into the command buffer of each frame.
  while (scheduler.jobs() > 0) {
    commands = frame->begin();
    if (!commands) return commands.error();
    const auto updates = scheduler.record(*commands, 1000);
    if (!updates) return updates.error();
    const auto ran = submit(*frame);  // the application's submit
    if (!ran) return ran.error();
  }
  //! [end]
  const auto outputs = session.finish();
  if (!outputs) return outputs.error();
  return {};
}

// An image of one color, as a shader reads it.
struct Portrait {
  sample::Image image;
  vkformer::ImageInput input;
};

vkformer::Result<Portrait> make_portrait(const VulkanHost& host) {
  constexpr VkFormat kFormat = VK_FORMAT_R8G8B8A8_UNORM;
  auto image =
      sample::make_image(host, {{48, 32},
                                kFormat,
                                VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT |
                                    VK_IMAGE_USAGE_SAMPLED_BIT});
  if (!image) return image.error();
  auto frame = sample::Frame::create(host);
  if (!frame) return frame.error();
  const auto commands = frame->begin();
  if (!commands) return commands.error();
  VkImageMemoryBarrier barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
  barrier.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.newLayout = VK_IMAGE_LAYOUT_GENERAL;
  barrier.image = image->image.get();
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  host.vk().CmdPipelineBarrier(*commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                               VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, nullptr, 0, nullptr, 1,
                               &barrier);
  const auto clear = reinterpret_cast<PFN_vkCmdClearColorImage>(
      host.get_instance_proc_addr()(host.instance(), "vkCmdClearColorImage"));
  const VkClearColorValue red = {{1, 0, 0, 1}};
  clear(*commands, barrier.image, VK_IMAGE_LAYOUT_GENERAL, &red, 1, &barrier.subresourceRange);
  const auto ran = submit(*frame);
  if (!ran) return ran.error();
  const vkformer::ImageInput input = {barrier.image, kFormat, VK_IMAGE_LAYOUT_GENERAL, 48, 32};
  return Portrait{std::move(*image), input};
}

vkformer::Status show_images(const Setting& setting, const vkformer::Device& device,
                             const vkformer::ImageInput& image) {
  const std::string directory = setting.tasks + "/picture-labels";
  const auto model = vkformer::Model::load(device, directory);
  if (!model) return model.error();
  auto made = vkformer::Session::create(*model);
  if (!made) return made.error();
  vkformer::Session& session = *made;
  //! [start_on_images]
  // Classifies one of the application's images, which the GPU resizes and scales itself.
  const auto processor = vkformer::PictureProcessor::load(directory);
  if (!processor) return processor.error();
  const auto started = vkformer::start_on_images(session, {}, {image}, *processor);
  if (!started) return started.error();
  vkformer::Advance advance;
  while (advance.more_to_submit()) {
    const auto slice = session.advance(500);  // once a frame
    if (!slice) return slice.error();
    advance = *slice;
  }
  const auto outputs = session.finish();
  if (!outputs) return outputs.error();
  //! [end]
  return expect(outputs->count("logits") == 1, "logits");
}

vkformer::Status show_session(const Setting& setting, const VulkanHost& host,
                              const vkformer::Device& device) {
  const auto model = vkformer::Model::load(device, setting.goldens + "/bert-sentiment/model");
  if (!model) return model.error();
  auto session = vkformer::Session::create(*model);
  if (!session) return session.error();
  for (const auto show : {show_buffers, show_semaphores, show_recording}) {
    const auto shown = show(host, *session);
    if (!shown) return shown;
  }
  return {};
}

template <class Handle>
uint64_t bits(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<uintptr_t>(handle);
  } else {
    return handle;
  }
}

// What the examples in C ask the application for.
struct Application {
  const VulkanHost& host;
  sample::Frame& frame;

  static int make_device(void* data, vkf_adopted_device* adopted) {
    const VulkanHost& host = static_cast<Application*>(data)->host;
    adopted->device = host.device();
    adopted->queue = host.queue();
    adopted->queue_family = host.queue_family();
    return 1;
  }
  static void* begin(void* data) {
    const auto commands = static_cast<Application*>(data)->frame.begin();
    return commands ? *commands : nullptr;
  }
  static int submit(void* data) { return ::submit(static_cast<Application*>(data)->frame) ? 1 : 0; }
};

vkformer::Status show_c(const Setting& setting, const VulkanHost& host,
                        const vkformer::ImageInput& image) {
  auto frame = sample::Frame::create(host);
  if (!frame) return frame.error();
  const auto buffer = sample::make_buffer(host, 1024, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
  if (!buffer) return buffer.error();
  Application application = {host, *frame};
  vkf_adopted_device adopted = {};
  adopted.struct_size = sizeof adopted;
  adopted.get_instance_proc_addr =
      reinterpret_cast<vkf_any_function>(host.get_instance_proc_addr());
  adopted.instance = host.instance();
  adopted.physical_device = host.physical_device();
  adopted.api_version = host.api_version();
  c_guest guest = {};
  guest.host = &adopted;
  guest.application = &application;
  guest.make_device = Application::make_device;
  guest.begin = Application::begin;
  guest.submit = Application::submit;
  guest.buffer = bits(buffer->buffer.get());
  guest.image = {bits(image.image),
                 uint32_t(image.format),
                 uint32_t(image.layout),
                 image.width,
                 image.height,
                 0,
                 0};
  const std::string classifier = setting.goldens + "/bert-sentiment/model";
  const std::string vision = setting.tasks + "/picture-labels";
  guest.classifier = classifier.c_str();
  guest.vision = vision.c_str();
  const std::unique_ptr<vkf_error, decltype(&vkf_error_free)> error(vkf_error_create(),
                                                                    vkf_error_free);
  if (show_c_guest(&guest, error.get()) != 0) return {};
  return vkformer::Error{vkformer::ErrorCode::kInternal, vkf_error_message(error.get())};
}

}  // namespace

vkformer::Status show_guest(const Setting& setting) {
  const auto host = VulkanHost::create({});
  if (!host) return host.error();
  const auto features = show_features(*host);
  if (!features) return features;
  const auto device = adopt(*host);
  if (!device) return device.error();
  const auto portrait = make_portrait(*host);
  if (!portrait) return portrait.error();
  const auto operated = show_operator(*host, *device);
  if (!operated) return operated;
  const auto ran = show_session(setting, *host, *device);
  if (!ran) return ran;
  const auto seen = show_images(setting, *device, portrait->input);
  if (!seen) return seen;
  return show_c(setting, *host, portrait->input);
}
