// The counts of the test layer in layers/discrete, if that layer is loaded in this process.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "layers/discrete/discrete_layer.h"
#include "support/test_options.h"

namespace vkformer::testing {

// The functions that the layer hands out. Before the first VkInstance they are absent.
class LayerReader {
 public:
  // A test that counts cannot run without the layer: then the test fails.
  static LayerReader open() {
    LayerReader reader;
    // Opens only what the Vulkan loader has opened before, so the counts are those of this process.
    void* library = dlopen(VKFORMER_DISCRETE_LAYER, RTLD_NOW | RTLD_NOLOAD);
    REQUIRE_MESSAGE(library != nullptr,
                    "[VK_LAYER_VKFORMER_discrete] is not loaded. Run this test by ctest, or set "
                    "VK_ADD_LAYER_PATH and VK_INSTANCE_LAYERS (docs/testing.md).");
    reader.find(library, "vkformer_layer_counts", reader.counts_);
    reader.find(library, "vkformer_layer_waits", reader.waits_);
    reader.find(library, "vkformer_layer_thread", reader.thread_);
    reader.find(library, "vkformer_layer_restart", reader.restart_);
    return reader;
  }

  LayerCounts counts() const {
    LayerCounts counts;
    counts_(&counts);
    return counts;
  }
  std::vector<LayerWait> waits() const {
    std::vector<LayerWait> waits(waits_(nullptr, 0));
    waits.resize(std::min(waits.size(), waits_(waits.data(), waits.size())));
    return waits;
  }
  // The number of the calling thread in LayerWait.
  uint32_t thread() const { return thread_(); }
  void restart() const { restart_(); }

 private:
  template <class Function>
  static void find(void* library, const char* name, Function*& function) {
    void* found = dlsym(library, name);
    REQUIRE_MESSAGE(found != nullptr, name);
    function = reinterpret_cast<Function*>(found);
  }
  LayerCountsFunction* counts_ = nullptr;
  LayerWaitsFunction* waits_ = nullptr;
  LayerThreadFunction* thread_ = nullptr;
  LayerRestartFunction* restart_ = nullptr;
};

// The memory that the layer presents: "discrete", "small-bar", "resizable-bar" or "driver".
inline std::string layer_memory() {
  const std::string set = test_environment("VKFORMER_LAYER_MEMORY");
  return set.empty() ? "discrete" : set;
}

}  // namespace vkformer::testing
