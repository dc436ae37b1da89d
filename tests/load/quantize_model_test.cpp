// Quantized weights and caches in whole models. What `vkformer quantize` writes loads to the bits
// of weights quantized at load. Both are as far from f32 as docs/numerics.md says.
#include "vkformer/quantize.h"

#include <cmath>

#include "checkpoint/temp_dir.h"
#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/session.h"
#include "vkformer/tasks.h"

namespace vkformer::testing {
namespace {

using W = WeightFormat;
using C = CacheFormat;

TensorMap outputs_of(const std::string& directory, WeightFormat weights, const TensorMap& inputs) {
  ModelOptions options;
  options.weights = weights;
  const auto model = Model::load(*test_device(), directory, options);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model);
  REQUIRE(session.ok());
  auto outputs = session->run(inputs);
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  return std::move(outputs).value();
}

// Root of the mean squared difference, as a share of the root of the mean square.
double relative_error(const Tensor& got, const Tensor& wanted) {
  const std::vector<float> a = *got.to_floats(), b = *wanted.to_floats();
  REQUIRE(a.size() == b.size());
  double error = 0, square = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = double{a[i]} - b[i];
    error += difference * difference;
    square += double{b[i]} * b[i];
  }
  return std::sqrt(error / square);
}

std::string g2p() {
  return VKFORMER_SOURCE_DIR "/models/g2p-en";
}

std::string spoken(WeightFormat weights, CacheFormat cache, const std::string& word) {
  TaskOptions options;
  options.model.weights = weights;
  options.session.cache = cache;
  auto generator = TextGenerator::load(*test_device(), ModelSource::directory(g2p()), options);
  REQUIRE_MESSAGE(generator.ok(), generator.error().message);
  const auto texts = generator->generate(std::vector<std::string>{word});
  REQUIRE_MESSAGE(texts.ok(), texts.error().message);
  return texts->front().front().text;
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a quantized directory gives the bits of weights quantized at load") {
    if (!have_test_device()) return;
    for (const char* name : {"gpt2-batch", "marian-base"}) {
      for (const W weights : {W::kQ8, W::kQ4, W::kQ4M}) {
        CAPTURE(name);
        CAPTURE(choice_name(weights));
        const GoldenCase golden = golden_case(name);
        test::TempDir target;
        const auto report =
            quantize_model(golden.path("model"), target.path(), {.weights = weights});
        REQUIRE_MESSAGE(report.ok(), report.error().message);
        CHECK(report->matrices > 0);
        CHECK(report->bytes_after < report->bytes_before);
        const TensorMap inputs = golden.pass_inputs();
        const TensorMap at_load = outputs_of(golden.path("model"), weights, inputs);
        const TensorMap stored = outputs_of(target.path(), W::kAsStored, inputs);
        REQUIRE(at_load.size() == stored.size());
        for (const auto& [bound_output, tensor] : stored) {
          const auto& output = bound_output;
          CAPTURE(output);
          CHECK(tensor.bytes == at_load.at(output).bytes);
        }
      }
    }
  }

  TEST_CASE("quantized weights are as far from f32 as their bits say") {
    if (!have_test_device()) return;
    // The error of one product (docs/numerics.md) adds up over those that a token passes: four in
    // each of two layers, and the head.
    const std::pair<W, double> kOneProduct[] = {
        {W::kF16, 2e-4}, {W::kBF16, 1.6e-3}, {W::kQ8, 4e-3}, {W::kQ4M, 5.6e-2}, {W::kQ4, 6.4e-2}};
    constexpr double kProducts = 9;
    for (const char* name : {"gpt2-batch", "llama-gqa"}) {
      const GoldenCase golden = golden_case(name);
      const TensorMap inputs = golden.pass_inputs();
      const TensorMap exact = outputs_of(golden.path("model"), W::kF32, inputs);
      double before = 0;
      for (const auto& [bound_weights, product] : kOneProduct) {
        const auto& weights = bound_weights;
        CAPTURE(name);
        CAPTURE(choice_name(weights));
        const TensorMap rounded = outputs_of(golden.path("model"), weights, inputs);
        const double error = relative_error(rounded.at("logits"), exact.at("logits"));
        CHECK(error < kProducts * product);
        CHECK(error > before / 2);  // fewer bits, more error
        before = error;
      }
    }
  }

  TEST_CASE("words sound the same with small weights and small caches") {
    if (!have_test_device()) return;
    for (const char* word : {"attention", "transformer"}) {
      const std::string exact = spoken(W::kF32, C::kF32, word);
      CHECK_FALSE(exact.empty());
      for (const C cache : {C::kF16, C::kQ8}) CHECK(spoken(W::kF32, cache, word) == exact);
      for (const W weights : {W::kBF16, W::kQ8, W::kQ4M}) {
        CHECK(spoken(weights, C::kF32, word) == exact);
      }
      CHECK(spoken(W::kQ8, C::kQ8, word) == exact);
    }
  }

  TEST_CASE("caches in halves and bytes take a half and about a quarter of the memory") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("gpt2-batch");
    const auto model = Model::load(*test_device(), golden.path("model"));
    REQUIRE(model.ok());
    int64_t bytes[3] = {};
    const C kCaches[] = {C::kF32, C::kF16, C::kQ8};
    for (size_t i = 0; i < 3; ++i) {
      auto session = Session::create(*model, {.cache = kCaches[i]});
      REQUIRE_MESSAGE(session.ok(), session.error().message);
      GenerateOptions options = session->generation_defaults();
      options.max_new_tokens = 5;
      options.beams = 2;
      const auto generated = session->generate({{3, 5, 4, 6}, {7, 8}}, options);
      REQUIRE_MESSAGE(generated.ok(), generated.error().message);
      CHECK(std::isfinite(generated->front().front().score));
      bytes[i] = session->counters().cache_bytes;
    }
    CHECK(2 * bytes[1] == bytes[0]);
    CHECK(bytes[2] * 32 == bytes[0] * 9);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("quantize_model refuses what has no end or no meaning") {
    const auto refused = [](const std::string& target, WeightFormat weights,
                            const std::string& part) {
      const auto report = quantize_model(g2p(), target, {.weights = weights});
      REQUIRE_FALSE(report.ok());
      CHECK_MESSAGE(test::contains(report.error().message, part), report.error().message);
    };
    test::TempDir target;
    refused(target.path(), W::kF32, "[weights] is 'f32'");
    refused(target.path(), W::kAsStored, "[weights] is 'stored'");
    refused(g2p(), W::kQ8, "model's directory");
    CHECK_FALSE(quantize_model(target.path(), target.path() + "/out", {}).ok());
    const auto made = quantize_model(g2p(), target.path() + "/a/b", {});
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    CHECK(made->bytes_after < made->bytes_before);
    CHECK(inspect_model(target.path() + "/a/b").ok());
    const auto again = quantize_model(target.path() + "/a/b", target.path() + "/c", {});
    REQUIRE_MESSAGE(again.ok(), again.error().message);
    CHECK(again->bytes_before == made->bytes_after);
  }
}

}  // namespace vkformer::testing
