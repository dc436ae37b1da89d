// Temperature and entropy of attention, against the maps and scores of the same model.
#include <cmath>

#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

Session open_session(const GoldenCase& golden) {
  const auto model = Model::load(*test_device(), golden.path("model"));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model);
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  return std::move(session).value();
}

TensorMap outputs_of(Session& session, const GoldenCase& golden, const RunOptions& options) {
  auto outputs = session.run(golden.pass_inputs(), options);
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  return std::move(outputs).value();
}

std::vector<float> floats(const TensorMap& outputs, const std::string& name) {
  REQUIRE_MESSAGE(outputs.count(name) == 1, name);
  return outputs.at(name).to_floats().value();
}

// Rows of `width` scores, each through a softmax in double.
std::vector<double> softmax_rows(const std::vector<float>& scores, size_t width, double tau) {
  std::vector<double> result(scores.size());
  for (size_t row = 0; row < scores.size(); row += width) {
    double highest = -INFINITY;
    for (size_t j = 0; j < width; ++j) highest = std::max<double>(highest, scores[row + j]);
    double sum = 0;
    for (size_t j = 0; j < width; ++j) sum += std::exp((scores[row + j] - highest) / tau);
    for (size_t j = 0; j < width; ++j) {
      result[row + j] = std::exp((scores[row + j] - highest) / tau) / sum;
    }
  }
  return result;
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("temperature divides the scores of every attention, from argmax to uniform") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("bert-holes");
    Session session = open_session(golden);
    // Scores of layer 0 depend on no softmax before it.
    const RunOptions raw{.attentions = true,
                         .attention_layer = 0,
                         .attention_values = RunOptions::AttentionValues::kScores};
    const TensorMap plain = outputs_of(session, golden, raw);
    const auto width = static_cast<size_t>(plain.at("attentions.0").shape.back());
    const std::vector<float> scores = floats(plain, "attentions.0");
    for (double tau : {1e-9, 0.3, 1.0, 7.0, 1e9}) {
      CAPTURE(tau);
      const RunOptions options{.attentions = true, .attention_layer = 0, .temperature = tau};
      const std::vector<float> map = floats(outputs_of(session, golden, options), "attentions.0");
      const std::vector<double> wanted = softmax_rows(scores, width, tau);
      for (size_t i = 0; i < map.size(); ++i) {
        CHECK(map[i] == doctest::Approx(wanted[i]).epsilon(2e-5));
      }
    }
    // The outputs follow, not only the maps.
    const RunOptions cold{.temperature = 0.1};
    CHECK(outputs_of(session, golden, cold).at("last_hidden_state").bytes !=
          outputs_of(session, golden, {}).at("last_hidden_state").bytes);
  }

  TEST_CASE("entropy is that of the maps, and comes without them") {
    if (!have_test_device()) return;
    for (const char* name : {"t5-gated", "gpt2-batch", "vit-base", "swin-base"}) {
      CAPTURE(name);
      const GoldenCase golden = golden_case(name);
      Session session = open_session(golden);
      RunOptions options{.entropy = true};
      const TensorMap alone = outputs_of(session, golden, options);
      options.attentions = true;
      const TensorMap both = outputs_of(session, golden, options);
      size_t maps = 0;
      for (const auto& [bound_output, tensor] : both) {
        const auto& output = bound_output;
        const size_t at = output.find("attentions.");
        if (at == std::string::npos) continue;
        ++maps;
        CAPTURE(output);
        CHECK(alone.count(output) == 0);
        std::string entropy_name = output;
        entropy_name.replace(at, 11, "attention_entropy.");
        const std::vector<float> map = tensor.to_floats().value();
        const std::vector<float> entropy = floats(both, entropy_name);
        CHECK(alone.at(entropy_name).bytes == both.at(entropy_name).bytes);
        const auto width = static_cast<size_t>(tensor.shape.back());
        REQUIRE(entropy.size() * width == map.size());
        for (size_t row = 0; row < entropy.size(); ++row) {
          double wanted = 0;
          for (size_t j = 0; j < width; ++j) {
            const double p = map[row * width + j];
            if (p > 0) wanted -= p * std::log(p);
          }
          CHECK(entropy[row] == doctest::Approx(wanted).epsilon(2e-5));
        }
      }
      CHECK(maps > 0);
    }
  }

  TEST_CASE("temperature and entropy that make no sense are refused") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("bert-holes");
    Session session = open_session(golden);
    const auto refused = [&](const RunOptions& options, const char* part) {
      const auto outputs = session.run(golden.pass_inputs(), options);
      REQUIRE_FALSE(outputs.ok());
      CHECK_MESSAGE(outputs.error().message.find(part) != std::string::npos,
                    outputs.error().message);
    };
    refused({.temperature = 0}, "[temperature] is 0");
    refused({.temperature = -1}, "[temperature] is -1");
    refused({.temperature = std::nan("")}, "[temperature]");
    refused({.attentions = true,
             .attention_values = RunOptions::AttentionValues::kScores,
             .entropy = true},
            "[entropy]");
    // Reformer hands out no maps, and the rows of Nystromformer's are no probabilities.
    for (const std::string name : {"reformer-short", "nystromformer-classes"}) {
      CAPTURE(name);
      const GoldenCase other_case = golden_case(name);
      Session other = open_session(other_case);
      const auto outputs = other.run(other_case.pass_inputs(), {.entropy = true});
      REQUIRE_FALSE(outputs.ok());
      CHECK_MESSAGE(outputs.error().code == ErrorCode::kUnsupported, outputs.error().message);
    }
  }
}

}  // namespace vkformer::testing
