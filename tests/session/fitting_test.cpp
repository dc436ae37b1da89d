// Where memory runs out, the error says what would fit; and what it says fits.
#include <charconv>

#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

Result<Device> device_with(uint64_t budget) {
  DeviceOptions options = test_device_options();
  options.memory_budget = budget;
  return make_test_device(options, test_device_tweaks());
}

TensorMap token_inputs(int64_t batch, int64_t tokens) {
  TensorMap inputs;
  const std::vector<int64_t> ids(static_cast<size_t>(batch * tokens), 3);
  inputs["input_ids"] = Tensor::from_ints({batch, tokens}, ids);
  return inputs;
}

// The number after `words` in a message, or -1.
int64_t number_after(const std::string& message, const std::string& words) {
  const size_t at = message.find(words);
  if (at == message.npos) return -1;
  int64_t number = -1;
  const char* begin = message.data() + at + words.size();
  std::from_chars(begin, message.data() + message.size(), number);
  return number;
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a pass beyond the memory says which batch would fit, and that one does") {
    if (!have_test_device()) return;
    const auto device = device_with(12 << 20);
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    const auto model = Model::load(*device, golden_case("bert-base").path("model"));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    auto session = Session::create(*model);
    REQUIRE(session.ok());
    REQUIRE(session->run(token_inputs(2, 16)).ok());
    const auto refused = session->run(token_inputs(1024, 32));
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kOutOfMemory);
    const int64_t batch = number_after(refused.error().message, "a batch of ");
    CHECK_MESSAGE((batch >= 8 && batch < 1024), refused.error().message);
    const auto given = session->run(token_inputs(batch, 32));
    CHECK_MESSAGE(given.ok(), given.error().message);
    CHECK_FALSE(session->run(token_inputs(3 * batch, 32)).ok());
  }

  TEST_CASE("a generation beyond the memory says which batch would fit, and that one does") {
    if (!have_test_device()) return;
    const auto device = device_with(6 << 20);
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    const auto model = Model::load(*device, golden_case("gpt2-base").path("model"));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    auto session = Session::create(*model);
    REQUIRE(session.ok());
    GenerateOptions options = session->generation_defaults();
    options.max_new_tokens = 4;
    const auto refused = session->generate_masked(token_inputs(900, 16), options);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kOutOfMemory);
    const int64_t batch = number_after(refused.error().message, "a batch of ");
    CHECK_MESSAGE((batch >= 2 && batch < 900), refused.error().message);
    const auto given = session->generate_masked(token_inputs(batch, 16), options);
    CHECK_MESSAGE(given.ok(), given.error().message);
  }

  TEST_CASE("recordings of other shapes give way before a pass is refused") {
    if (!have_test_device()) return;
    const auto device = device_with(12 << 20);
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    const auto model = Model::load(*device, golden_case("bert-base").path("model"));
    REQUIRE(model.ok());
    auto session = Session::create(*model);
    REQUIRE(session.ok());
    const auto refused = session->run(token_inputs(1024, 32));
    REQUIRE_FALSE(refused.ok());
    const int64_t batch = number_after(refused.error().message, "a batch of ");
    REQUIRE(batch > 4);
    // Each takes more than half of what there is.
    for (const int64_t less : {0, 1, 2}) {
      const auto given = session->run(token_inputs(batch - less, 32));
      CHECK_MESSAGE(given.ok(), given.error().message);
    }
  }

  TEST_CASE("weights beyond the memory say in which format they would fit") {
    if (!have_test_device()) return;
    const std::string folder = golden_case("bert-base").path("model");
    const auto whole = make_test_device(test_device_options(), test_device_tweaks());
    REQUIRE(whole.ok());
    const auto model = Model::load(*whole, folder);
    REQUIRE(model.ok());
    const auto device = device_with(model->weight_bytes() - 64);
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    const auto refused = Model::load(*device, folder);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kOutOfMemory);
    CHECK_MESSAGE(refused.error().message.find("would fit as 'f16'") != std::string::npos,
                  refused.error().message);
    ModelOptions options;
    options.weights = WeightFormat::kF16;
    const auto smaller = Model::load(*device, folder, options);
    CHECK_MESSAGE(smaller.ok(), smaller.error().message);
    const auto nothing = device_with(4096);
    REQUIRE(nothing.ok());
    const auto none = Model::load(*nothing, folder);
    REQUIRE_FALSE(none.ok());
    CHECK_MESSAGE(none.error().message.find("no smaller format") != std::string::npos,
                  none.error().message);
  }
}

}  // namespace vkformer::testing
