// An operator recorded into the application's own command buffer, reading and writing its buffers.
#include <cstring>

#include "support/test_device.h"
#include "vulkan/host_queue.h"

namespace vkformer {
namespace {

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
