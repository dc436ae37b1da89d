// Pipelines made on several threads: the same ones, and the same results.
#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/session.h"
#include "vulkan/device_impl.h"

namespace vkformer::testing {
namespace {

struct Made {
  size_t pipelines = 0;
  TensorMap outputs;
};

Made run_with(uint32_t threads) {
  DeviceOptions options = test_device_options();
  options.compile_threads = threads;
  const auto device = make_test_device(options, test_device_tweaks());
  REQUIRE_MESSAGE(device.ok(), device.error().message);
  const GoldenCase golden = golden_case("bert-base");
  const auto model = Model::load(*device, golden.path("model"));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model);
  REQUIRE(session.ok());
  auto outputs = session->run(golden.pass_inputs());
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  return {vulkan_of(*device)->impl().pipelines->made(), std::move(outputs).value()};
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("any number of compiling threads makes the same pipelines and results") {
    if (!have_test_device()) return;
    const Made alone = run_with(0);
    CHECK(alone.pipelines > 2);
    for (uint32_t threads : {1u, 3u, 64u}) {
      CAPTURE(threads);
      const Made made = run_with(threads);
      CHECK(made.pipelines == alone.pipelines);
      for (const auto& [name, tensor] : alone.outputs) {
        CHECK(made.outputs.at(name).bytes == tensor.bytes);
      }
    }
  }
}

}  // namespace vkformer::testing
