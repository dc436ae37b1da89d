// Weights that stay in host memory, since device memory is to hold only a part of them.
#include "load/weight_places.h"

#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

PackedWeight weight_of(const std::string& name, uint64_t bytes, int64_t experts = 0) {
  PackedWeight weight;
  weight.row.name = name;
  weight.row.experts = experts;
  weight.bytes = bytes;
  return weight;
}

std::string hosted(const std::vector<PackedWeight>& weights, uint64_t most,
                   const std::vector<bool>& held = {}) {
  const std::vector<bool> host = weights_in_host_memory(weights, held, most);
  REQUIRE(host.size() == weights.size());
  std::string text;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (host[i]) text += (text.empty() ? "" : " ") + weights[i].row.name;
  }
  return text;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("weight places: experts leave the device first, then layers from the last on") {
    const std::vector<PackedWeight> weights = {weight_of("embedding.words", 100),
                                               weight_of("decoder.0.self.qkv", 10),
                                               weight_of("decoder.0.experts.up", 50, 8),
                                               weight_of("decoder.0.experts.down", 50, 8),
                                               weight_of("decoder.1.self.qkv", 10),
                                               weight_of("decoder.1.experts.up", 50, 8),
                                               weight_of("decoder.10.norm", 1),
                                               weight_of("decoder.10.mlp", 30),
                                               weight_of("head", 7)};
    CHECK(hosted(weights, 308).empty());
    CHECK(hosted(weights, 307) == "decoder.1.experts.up");
    CHECK(hosted(weights, 258) == "decoder.1.experts.up");
    CHECK(hosted(weights, 257) ==
          "decoder.0.experts.up decoder.0.experts.down decoder.1.experts.up");
    CHECK(hosted(weights, 157) ==
          "decoder.0.experts.up decoder.0.experts.down decoder.1.experts.up decoder.10.norm "
          "decoder.10.mlp");
    CHECK(hosted(weights, 107).find("embedding") == std::string::npos);
    CHECK(hosted(weights, 0).find("embedding.words") == 0);
    // Only what is held counts.
    std::vector<bool> held(weights.size(), false);
    held[0] = held[1] = true;
    CHECK(hosted(weights, 110, held).empty());
    CHECK(hosted(weights, 109, held) == "decoder.0.self.qkv");
  }

  TEST_CASE("weight places: encoders' layers stay longer than decoders', odd names are no layers") {
    const std::vector<PackedWeight> weights = {
        weight_of("encoder.5.mlp", 10), weight_of("decoder.0.mlp", 10),
        weight_of("stage.x.mlp", 10), weight_of("head.99999999999.w", 10), weight_of("plain", 10)};
    CHECK(hosted(weights, 45) == "decoder.0.mlp");
    CHECK(hosted(weights, 35) == "encoder.5.mlp decoder.0.mlp");
    CHECK(hosted(weights, 25) == "encoder.5.mlp decoder.0.mlp plain");
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("weight places: a model whose weights lie in both kinds of memory has the same bits") {
    if (!have_test_device()) return;
    for (const char* name : {"llama-bare", "qwen3_moe-bare", "t5-relu"}) {
      CAPTURE(name);
      const GoldenCase golden = golden_case(name);
      TensorMap whole;
      for (const double share : {1.0, 0.6, 0.0}) {
        CAPTURE(share);
        ModelOptions options;
        uint64_t all = 0;
        {
          const auto model = Model::load(*test_device(), golden.path("model"));
          REQUIRE_MESSAGE(model.ok(), model.error().message);
          CHECK(model->host_weight_bytes() == 0);
          all = model->weight_bytes();
        }
        options.device_memory =
            std::max<uint64_t>(1, static_cast<uint64_t>(share * static_cast<double>(all)));
        const auto model = Model::load(*test_device(), golden.path("model"), options);
        REQUIRE_MESSAGE(model.ok(), model.error().message);
        CHECK((model->host_weight_bytes() > 0) == (share < 1.0));
        if (share == 0.0) CHECK(model->host_weight_bytes() == model->weight_bytes());
        auto session = Session::create(*model);
        REQUIRE(session.ok());
        const auto outputs = session->run(golden.pass_inputs());
        REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
        if (whole.empty()) whole = *outputs;
        for (const auto& [key, tensor] : *outputs) CHECK(tensor.bytes == whole.at(key).bytes);
      }
    }
  }
}

}  // namespace vkformer::testing
