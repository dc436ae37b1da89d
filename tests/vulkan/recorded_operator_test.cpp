// An operator recorded into the application's own command buffer, reading and writing its buffers.
#include <cstring>

#include "support/test_device.h"
#include "vulkan/host_device.h"

namespace vkformer {
namespace {

// What an application has around its device: a command buffer, buffers, a fence.
class HostQueue {
 public:
  explicit HostQueue(const HostDevice& host) : host_(host) {
    auto table = DeviceApi::load(host.api.GetDeviceProcAddr, host.device, {});
    REQUIRE_MESSAGE(table.ok(), table.error().message);
    api_ = *table;
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.queueFamilyIndex = host.family;
    REQUIRE(api_.CreateCommandPool(host.device, &pool, nullptr, &pool_) == VK_SUCCESS);
    VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    info.commandPool = pool_;
    info.commandBufferCount = 1;
    REQUIRE(api_.AllocateCommandBuffers(host.device, &info, &commands_) == VK_SUCCESS);
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    REQUIRE(api_.BeginCommandBuffer(commands_, &begin) == VK_SUCCESS);
  }
  ~HostQueue() {
    for (const auto& [buffer, memory] : buffers_) {
      api_.DestroyBuffer(host_.device, buffer, nullptr);
      api_.FreeMemory(host_.device, memory, nullptr);
    }
    api_.DestroyCommandPool(host_.device, pool_, nullptr);
  }
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;

  VkCommandBuffer commands() const { return commands_; }

  // A mapped, coherent storage buffer; `words` is its host address.
  VkBuffer make_buffer(VkDeviceSize bytes, float*& words) {
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    VkBuffer buffer = VK_NULL_HANDLE;
    REQUIRE(api_.CreateBuffer(host_.device, &info, nullptr, &buffer) == VK_SUCCESS);
    VkMemoryRequirements needs;
    api_.GetBufferMemoryRequirements(host_.device, buffer, &needs);
    VkPhysicalDeviceMemoryProperties memory;
    host_.api.GetPhysicalDeviceMemoryProperties(host_.physical, &memory);
    constexpr VkMemoryPropertyFlags kWanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate.allocationSize = needs.size;
    while ((needs.memoryTypeBits >> allocate.memoryTypeIndex & 1u) == 0 ||
           (memory.memoryTypes[allocate.memoryTypeIndex].propertyFlags & kWanted) != kWanted) {
      REQUIRE(++allocate.memoryTypeIndex < memory.memoryTypeCount);
    }
    VkDeviceMemory block = VK_NULL_HANDLE;
    REQUIRE(api_.AllocateMemory(host_.device, &allocate, nullptr, &block) == VK_SUCCESS);
    REQUIRE(api_.BindBufferMemory(host_.device, buffer, block, 0) == VK_SUCCESS);
    void* mapped = nullptr;
    REQUIRE(api_.MapMemory(host_.device, block, 0, VK_WHOLE_SIZE, 0, &mapped) == VK_SUCCESS);
    words = static_cast<float*>(mapped);
    buffers_.emplace_back(buffer, block);
    return buffer;
  }

  void barrier(VkPipelineStageFlags from, VkAccessFlags wrote, VkPipelineStageFlags to,
               VkAccessFlags reads) {
    VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = wrote;
    memory.dstAccessMask = reads;
    api_.CmdPipelineBarrier(commands_, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
  }

  void submit_and_wait() {
    REQUIRE(api_.EndCommandBuffer(commands_) == VK_SUCCESS);
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands_;
    REQUIRE(api_.QueueSubmit(host_.queue, 1, &submit, VK_NULL_HANDLE) == VK_SUCCESS);
    REQUIRE(api_.QueueWaitIdle(host_.queue) == VK_SUCCESS);
  }

 private:
  const HostDevice& host_;
  DeviceApi api_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  std::vector<std::pair<VkBuffer, VkDeviceMemory>> buffers_;
};

Tensor waves(const Shape& shape, float step) {
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 23) * step - 1.0f;
  }
  return Tensor::from_floats(shape, values);
}

OperatorCall attention_call() {
  return {"attention",
          R"({"causal": true})",
          {{"Q", waves({1, 2, 37, 16}, 0.07f)},
           {"K", waves({1, 2, 37, 16}, 0.11f)},
           {"V", waves({1, 2, 37, 16}, 0.13f)}}};
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("attention runs inside the application's command buffer, on its buffers") {
    if (!have_test_device()) return;
    const HostDevice host(VK_API_VERSION_1_1);
    const auto device = adopt_device(host.adopted(), no_cache());
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    const OperatorCall call = attention_call();
    const auto wanted = run_operator(*device, call);
    REQUIRE_MESSAGE(wanted.ok(), wanted.error().message);

    HostQueue queue(host);
    auto op = RecordedOperator::create(*device, call);
    REQUIRE_MESSAGE(op.ok(), op.error().message);
    REQUIRE(op->inputs().count("Q") == 1);
    REQUIRE(op->inputs().count("KV") == 1);
    REQUIRE(op->outputs().count("output") == 1);
    CHECK(op->outputs().at("output").shape == Shape{1, 2, 37, 16});
    const VkDeviceSize bytes = op->outputs().at("output").bytes;
    CHECK(bytes == 2 * 37 * 16 * 4);
    float* q = nullptr;
    float* y = nullptr;
    // The input begins inside its buffer; K, V and the mask are uploaded from the call.
    const VkBuffer q_buffer = queue.make_buffer(256 + bytes, q);
    const VkBuffer y_buffer = queue.make_buffer(bytes, y);
    const std::vector<float> q_values = call.inputs.at("Q").to_floats().value();
    const Status bound =
        op->bind({{"Q", {q_buffer, 256, bytes}}, {"output", {y_buffer, 0, bytes}}});
    REQUIRE_MESSAGE(bound.ok(), bound.error().message);
    queue.barrier(VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_WRITE_BIT,
                  VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT);
    // Twice: the second finds the temporaries of the first.
    REQUIRE(op->record(queue.commands()).ok());
    REQUIRE(op->record(queue.commands()).ok());
    queue.barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                  VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    // Nothing has run yet: what the command buffer reads is what the buffer holds at submit.
    std::memcpy(q + 64, q_values.data(), bytes);
    queue.submit_and_wait();
    const std::vector<float> expected = wanted->outputs.at("output").to_floats().value();
    for (size_t i = 0; i < expected.size(); ++i) CHECK(y[i] == expected[i]);
  }

  TEST_CASE("what cannot be bound or recorded is refused by name") {
    if (!have_test_device()) return;
    const HostDevice host(VK_API_VERSION_1_1);
    const auto device = adopt_device(host.adopted(), no_cache());
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    HostQueue queue(host);
    float* words = nullptr;
    const VkBuffer buffer = queue.make_buffer(4096, words);
    const auto refused = [&](const std::map<std::string, BufferRange>& places, const char* part) {
      auto op = RecordedOperator::create(*device, attention_call());
      REQUIRE(op.ok());
      CHECK_FALSE(op->record(queue.commands()).ok());
      const Status bound = op->bind(places);
      REQUIRE_FALSE(bound.ok());
      CHECK_MESSAGE(bound.error().message.find(part) != std::string::npos, bound.error().message);
    };
    refused({}, "[output]");
    refused({{"W", {buffer, 0, 4096}}}, "[W]");
    refused({{"output", {buffer, 0, 4096}}}, "4736 bytes");
    refused({{"output", {VK_NULL_HANDLE, 0, 4096}}}, "no buffer");
    const auto host_made = RecordedOperator::create(
        *device, {"alibi_bias", R"({"num_heads": 2, "query_length": 3, "key_length": 3})", {}});
    REQUIRE_FALSE(host_made.ok());
    CHECK(host_made.error().code == ErrorCode::kUnsupported);
  }
}

}  // namespace vkformer
