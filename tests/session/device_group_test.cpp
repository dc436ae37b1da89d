// A model whose layers lie on several devices gives what it gives on one: the test device opened
// once for each member is as many devices.
#include <doctest/doctest.h>

#include "generate/generation_case.h"
#include "load/model_split.h"
#include "vkformer/device_group.h"
#include "vkformer/generation_batch.h"

namespace vkformer::testing {
namespace {

Model split_model(const std::string& name, const DeviceGroupOptions& options) {
  std::vector<Device> devices;
  for (size_t i = 0; i < options.shares.size(); ++i) {
    auto device = Device::create(test_device_options());
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    devices.push_back(std::move(device).value());
  }
  auto group = DeviceGroup::create(devices, options);
  REQUIRE_MESSAGE(group.ok(), group.error().message);
  auto model = Model::load(devices[0], golden_case(name).path("model"), {.group = *group});
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  return std::move(model).value();
}

void check_equal(const Generation& split, const Generation& whole) {
  REQUIRE(split.size() == whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    REQUIRE(split[i].size() == whole[i].size());
    for (size_t k = 0; k < whole[i].size(); ++k) CHECK(split[i][k].ids == whole[i][k].ids);
  }
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("a place is a layer, or what stands before or behind layers") {
    CHECK(place_of("decoder.3.self.qkv") == "decoder.3");
    CHECK(place_of("encoder.12") == "encoder.12");
    CHECK(place_of("head") == "head");
    CHECK(place_of("decoder.norm") == "decoder.norm");
    CHECK(place_of("").empty());
  }

  TEST_CASE("places go to members by speed, as far as memory allows") {
    const std::vector<uint64_t> bytes(8, 100);
    std::vector<SplitPlace> places;
    for (uint32_t i = 0; i < 8; ++i) {
      places.push_back({.name = "decoder." + std::to_string(i), .weights = {i}, .work = 100});
    }
    std::vector<GroupMember> members(2);
    members[0] = {.device = nullptr, .name = "a", .speed = 3, .memory = 10000};
    members[1] = {.device = nullptr, .name = "b", .speed = 1, .memory = 10000};
    auto first = share_places(places, bytes, members);
    REQUIRE(first.ok());
    CHECK(*first == std::vector<size_t>{0, 6});
    members[0].memory = 340;  // nine tenths of it are three layers
    first = share_places(places, bytes, members);
    REQUIRE(first.ok());
    CHECK(*first == std::vector<size_t>{0, 3});
    members[1].memory = 340;
    first = share_places(places, bytes, members);
    REQUIRE(!first.ok());
    CHECK(first.error().code == ErrorCode::kOutOfMemory);
    CHECK(first.error().message.find("800 bytes") != std::string::npos);
    members.resize(9, members[0]);
    first = share_places(places, bytes, members);
    REQUIRE(!first.ok());
    CHECK(first.error().code == ErrorCode::kUnsupported);
  }
}

TEST_SUITE("model") {
  TEST_CASE("generations of a split model have the tokens of the whole one") {
    if (!have_test_device()) return;
    for (const char* name : {"llama-gqa", "gpt2-base", "bart-base", "t5-gated"}) {
      CAPTURE(name);
      const Model& whole = golden_model(name);
      const Model split = split_model(name, {.shares = {1, 1}});
      REQUIRE(split.stages().size() == 2);
      for (const GroupStage& stage : split.stages())
        CHECK(stage.weight_bytes < whole.weight_bytes());
      Session alone = make_session(whole), together = make_session(split);
      const Rows rows = random_rows(whole, 5, 7);
      for (const int beams : {1, 3}) {
        CAPTURE(beams);
        const GenerateOptions options =
            options_for(alone, beams, 9, alone.generation_defaults().eos);
        check_equal(generate(together, rows, options), generate(alone, rows, options));
      }
      GenerateOptions drawn = options_for(alone, 1, 9, {});
      drawn.choice = TokenChoice::kDrawn;
      drawn.sampling.seed = 11;
      check_equal(generate(together, rows, drawn), generate(alone, rows, drawn));
    }
  }

  TEST_CASE("requests of a batch on a split model have the tokens of the whole one") {
    if (!have_test_device()) return;
    const Model split = split_model("llama-gqa", {.shares = {1, 2}});
    SessionOptions kept;
    kept.prefix_reuse = true;
    auto session = Session::create(split, kept);
    REQUIRE(session.ok());
    Session alone = make_session(golden_model("llama-gqa"));
    const Rows rows = random_rows(split, 2, 3);
    const GenerateOptions options = options_for(alone, 1, 8, {});
    check_equal(generate(*session, rows, options), generate(alone, rows, options));
  }

  TEST_CASE("what needs a model on one device says so") {
    if (!have_test_device()) return;
    const Model split = split_model("bart-base", {.shares = {1, 1}});
    Session session = make_session(split);
    const TensorMap inputs = {{"input_ids", Tensor::from_ints({1, 2}, {3, 4})}};
    const Status started = session.start(inputs);
    REQUIRE(!started.ok());
    CHECK(started.error().code == ErrorCode::kUnsupported);
    CHECK(!session.warm_up({.new_tokens = 3}).ok());
    const auto batch = GenerationBatch::create(split);
    REQUIRE(!batch.ok());
    CHECK(batch.error().message.find("several devices") != std::string::npos);
  }

  TEST_CASE("groups are refused where they make no sense") {
    if (!have_test_device()) return;
    const Device& device = *test_device();
    CHECK(!DeviceGroup::create({device}).ok());
    CHECK(!DeviceGroup::create({device, device}, {.shares = {1}}).ok());
    CHECK(!DeviceGroup::create({device, device}, {.shares = {1, -1}}).ok());
    CHECK(!DeviceGroup::create({device, device}, {.shares = {1, 1}, .lanes = 65}).ok());
  }
}

}  // namespace vkformer::testing
