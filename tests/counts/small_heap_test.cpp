// A model larger than device memory, which the layer in layers/discrete presents. Run by ctest: it
// sets the layer's environment.
#include <doctest/doctest.h>

#include <mutex>

#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer::testing {

TEST_SUITE("small_heap") {
  TEST_CASE("weights without room in device memory lie in host memory, with the same results") {
    std::string said;
    std::mutex mutex;
    DeviceOptions device_options = test_device_options();
    device_options.log = [&](LogLevel level, const std::string& message) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (level == LogLevel::kWarning) said += message + "\n";
    };
    const auto device = Device::create(device_options);
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    const auto generated = [&](uint64_t device_memory, uint64_t& host_bytes, uint64_t& bytes) {
      ModelOptions options;
      options.device_memory = device_memory;
      const auto model = Model::load(*device, VKFORMER_SOURCE_DIR "/models/shakespeare", options);
      REQUIRE_MESSAGE(model.ok(), model.error().message);
      host_bytes = model->host_weight_bytes();
      bytes = model->weight_bytes();
      auto session = Session::create(*model);
      REQUIRE_MESSAGE(session.ok(), session.error().message);
      GenerateOptions wanted = session->generation_defaults();
      wanted.max_new_tokens = 24;
      wanted.choice = TokenChoice::kBest;
      const auto generation = session->generate({{82, 79, 77, 69, 79}}, wanted);
      REQUIRE_MESSAGE(generation.ok(), generation.error().message);
      return generation->front().front().ids;
    };
    uint64_t host_bytes = 0, bytes = 0;
    const auto ids = generated(0, host_bytes, bytes);
    CHECK(host_bytes > 0);
    CHECK(host_bytes < bytes);
    CHECK_MESSAGE(said.find("bytes of weights lie in host memory") != std::string::npos, said);
    // Whoever says how much may lie there knows better than the driver.
    said.clear();
    const auto whole = generated(bytes, host_bytes, bytes);
    CHECK(host_bytes == 0);
    CHECK(said.empty());
    CHECK(whole == ids);
  }
}

}  // namespace vkformer::testing
