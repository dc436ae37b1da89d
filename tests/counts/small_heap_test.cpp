// A model larger than device memory, which the layer in layers/discrete presents. Run by ctest: it
// sets the layer's environment.
#include <doctest/doctest.h>

#include <mutex>

#include "checkpoint/temp_dir.h"
#include "support/test_device.h"
#include "vkformer/model_pack.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

std::vector<TokenId> generated_by(const Model& model) {
  auto session = Session::create(model);
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  GenerateOptions wanted = session->generation_defaults();
  wanted.max_new_tokens = 24;
  wanted.choice = TokenChoice::kBest;
  const auto generation = session->generate({{82, 79, 77, 69, 79}}, wanted);
  REQUIRE_MESSAGE(generation.ok(), generation.error().message);
  return generation->front().front().ids;
}

}  // namespace

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
      return generated_by(*model);
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

  TEST_CASE("of a pack with weights as GPUs read them, host memory is the file's pages") {
    const test::TempDir directory;
    const std::string path = directory.file("model.vkfpack");
    PackOptions packing;
    packing.device_layout = true;
    const auto packed = pack_model(VKFORMER_SOURCE_DIR "/models/shakespeare", path, packing);
    REQUIRE_MESSAGE(packed.ok(), packed.error().message);
    std::vector<TokenId> first;
    uint64_t of_copies = 0;
    for (const bool copy : {true, false}) {
      CAPTURE(copy);
      // One for each: freed memory that a device keeps has room for no weights in the counting.
      const auto device = Device::create(test_device_options());
      REQUIRE_MESSAGE(device.ok(), device.error().message);
      ModelOptions options;
      options.copy_weights = copy;
      const uint64_t before = device->memory_in_use();
      const auto model = Model::load(*device, path, options);
      REQUIRE_MESSAGE(model.ok(), model.error().message);
      CHECK(model->host_weight_bytes() > 0);
      CHECK(model->host_weight_bytes() < model->weight_bytes());
      const uint64_t grown = device->memory_in_use() - before;
      // lavapipe and SwiftShader take pages of files. Uploads have memory of their own in both.
      if (copy) of_copies = grown;
      if (!copy) CHECK(of_copies - grown >= model->host_weight_bytes());
      const std::vector<TokenId> ids = generated_by(*model);
      if (first.empty()) first = ids;
      CHECK(ids == first);
    }
  }
}

}  // namespace vkformer::testing
