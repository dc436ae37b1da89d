// What the application hands in beside options: a logger and host memory for Vulkan's objects.
#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "support/test_device.h"
#include "vkformer/operators.h"
#include "vulkan/device_impl.h"

using namespace vkformer;

namespace {

// Host memory that remembers what it gave out.
struct CountedMemory {
  struct Block {
    size_t bytes;
    std::align_val_t alignment;
  };
  std::mutex mutex;
  std::map<void*, Block> given;
  int allocations = 0;
  int unknown = 0;  // freed, but never given out

  void* allocate(size_t bytes, size_t alignment) {
    const std::align_val_t step{std::max(alignment, sizeof(void*))};
    void* memory = ::operator new(bytes, step);
    const std::lock_guard<std::mutex> lock(mutex);
    ++allocations;
    given[memory] = {bytes, step};
    return memory;
  }

  void free(void* memory) {
    if (memory == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex);
    const auto block = given.find(memory);
    if (block == given.end()) {
      ++unknown;
      return;
    }
    ::operator delete(memory, block->second.alignment);
    given.erase(block);
  }

  size_t bytes_of(void* memory) {
    const std::lock_guard<std::mutex> lock(mutex);
    return given.at(memory).bytes;
  }
};

VKAPI_ATTR void* VKAPI_CALL allocate(void* data, size_t bytes, size_t alignment,
                                     VkSystemAllocationScope) {
  return static_cast<CountedMemory*>(data)->allocate(bytes, alignment);
}

VKAPI_ATTR void VKAPI_CALL free_memory(void* data, void* memory) {
  static_cast<CountedMemory*>(data)->free(memory);
}

VKAPI_ATTR void* VKAPI_CALL reallocate(void* data, void* old, size_t bytes, size_t alignment,
                                       VkSystemAllocationScope) {
  auto& memory = *static_cast<CountedMemory*>(data);
  if (bytes == 0) {
    memory.free(old);
    return nullptr;
  }
  void* made = memory.allocate(bytes, alignment);
  if (old != nullptr) std::memcpy(made, old, std::min(bytes, memory.bytes_of(old)));
  memory.free(old);
  return made;
}

struct Message {
  LogLevel level;
  std::string text;
};

bool heard(const std::vector<Message>& messages, LogLevel level, const char* part) {
  return std::any_of(messages.begin(), messages.end(), [&](const Message& message) {
    return message.level == level && message.text.find(part) != std::string::npos;
  });
}

VKAPI_ATTR VkResult VKAPI_CALL lose_queue_submit(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) {
  return VK_ERROR_DEVICE_LOST;
}

OperatorCall softmax_call() {
  OperatorCall call;
  call.name = "softmax";
  call.inputs["X"] = Tensor::from_floats({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  return call;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("host memory of Vulkan objects comes from the application and goes back to it") {
    if (!have_test_device()) return;
    CountedMemory memory;
    VkAllocationCallbacks callbacks{};
    callbacks.pUserData = &memory;
    callbacks.pfnAllocation = allocate;
    callbacks.pfnReallocation = reallocate;
    callbacks.pfnFree = free_memory;
    DeviceOptions options = test_device_options();
    options.allocator = &callbacks;
    {
      const auto device = make_test_device(options, test_device_tweaks());
      REQUIRE(device);
      callbacks = {};  // they were copied
      OperatorOptions twice;
      twice.repeats = 2;
      const auto ran = run_operator(*device, softmax_call(), twice);
      REQUIRE(ran);
      CHECK(ran->outputs.begin()->second.count() == 6);
      CHECK(memory.allocations > 0);
    }
    CHECK(memory.given.empty());
    CHECK(memory.unknown == 0);
  }

  TEST_CASE("the logger hears of the device, of a cache that cannot be kept, and of a loss") {
    if (!have_test_device()) return;
    std::vector<Message> messages;
    DeviceOptions options = test_device_options();
    options.cache_directory = "/proc/no-such-folder";
    options.log = [&](LogLevel level, const std::string& text) {
      messages.push_back({level, text});
    };
    {
      const auto device = make_test_device(options, test_device_tweaks());
      REQUIRE(device);
      CHECK(heard(messages, LogLevel::kInfo, device->info().name.c_str()));
      CHECK(heard(messages, LogLevel::kInfo, choice_name(device->tier())));
      REQUIRE(run_operator(*device, softmax_call()));
      vulkan_of(*device)->save_pipeline_cache();
      CHECK(heard(messages, LogLevel::kWarning, "/proc/no-such-folder"));
      vulkan_of(*device)->impl().context.api.QueueSubmit = lose_queue_submit;
      CHECK_FALSE(run_operator(*device, softmax_call()));
      CHECK_FALSE(run_operator(*device, softmax_call()));
    }
    CHECK(heard(messages, LogLevel::kError, "was lost"));
    CHECK(std::count_if(messages.begin(), messages.end(), [](const Message& message) {
            return message.level == LogLevel::kError;
          }) == 1);
  }

  TEST_CASE("validation messages go to the logger") {
    if (!have_test_device()) return;
    if (!test_environment("VK_LAYER_SETTINGS_PATH").empty()) {
      MESSAGE("skipped: the layer is watched from outside, and this test plants a mistake");
      return;
    }
    std::vector<Message> messages;
    DeviceOptions options = test_device_options();
    options.validation = true;
    options.log = [&](LogLevel level, const std::string& text) {
      messages.push_back({level, text});
    };
    const auto device = make_test_device(options, test_device_tweaks());
    REQUIRE(device);
    if (heard(messages, LogLevel::kInfo, "its layer is not installed")) {
      MESSAGE("skipped: the validation layer is not installed");
      return;
    }
    Context& context = vulkan_of(*device)->impl().context;
    VkBufferCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    VkBuffer buffer = VK_NULL_HANDLE;
    // No bytes: a mistake that the layer knows.
    if (context.api.CreateBuffer(context.device, &info, nullptr, &buffer) == VK_SUCCESS) {
      context.api.DestroyBuffer(context.device, buffer, nullptr);
    }
    CHECK(heard(messages, LogLevel::kError, "[validation]"));
  }
}
