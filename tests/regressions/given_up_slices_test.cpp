// On memory that the host cannot map, inputs wait for the next submit of their pass. A pass that is
// given up before its first slice must not take along what is written only once. These are tables
// of rotary embeddings, biases by distance.
#include <doctest/doctest.h>

#include "generate/generation_case.h"

using namespace vkformer;
using namespace vkformer::testing;

TEST_SUITE("model") {
  TEST_CASE("a generation after one that was given up before its first slice is as it is alone") {
    if (!have_test_device()) return;
    DeviceTweaks staged = test_device_tweaks();
    staged.device_memory = DeviceTweaks::DeviceMemory::kStaged;
    const auto device = make_test_device(test_device_options(), staged);
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    for (const char* name : {"llama-gqa", "t5-gated"}) {
      CAPTURE(name);
      const auto model = Model::load(*device, golden_case(name).path("model"));
      REQUIRE_MESSAGE(model.ok(), model.error().message);
      const Rows rows = random_rows(*model, 1, 7);
      Session plain = make_session(*model);
      const GenerateOptions options = options_for(plain, 1, 8, {});
      const Generation expected = generate(plain, rows, options);
      Session session = make_session(*model);
      const auto length = static_cast<int64_t>(rows[0].size());
      const TensorMap inputs{{"input_ids", Tensor::from_ints({1, length}, rows[0])}};
      const Status started = session.start_generation(inputs, options);
      REQUIRE_MESSAGE(started.ok(), started.error().message);
      REQUIRE(session.cancel().ok());
      const Generation found = generate(session, rows, options);
      CHECK(found[0][0].ids == expected[0][0].ids);
      CHECK(found[0][0].log_probabilities == expected[0][0].log_probabilities);
    }
  }
}
