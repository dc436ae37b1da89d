// Samples as models take them, and what is refused.
#include "audio/waveform.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "checkpoint/temp_dir.h"

namespace vkformer {
namespace {

Result<WaveformSettings> settings_with(const std::string& config) {
  const test::TempDir folder;
  folder.write("preprocessor_config.json", config);
  return load_waveform_settings(*make_directory_store(folder.path()));
}

void check_settings_refused(const std::string& config, ErrorCode code, const std::string& says) {
  const auto made = settings_with(config);
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().code == code);
  CHECK_MESSAGE(test::contains(made.error().message, says), made.error().message);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("waveform: settings and their defaults are those of the extractor's class") {
    using Scale = WaveformSettings::Scale;
    CHECK(settings_with("{}")->scale == Scale::kUnit);
    CHECK(settings_with("{}")->sampling_rate == 16000);
    CHECK(settings_with(R"({"do_normalize": false, "sampling_rate": 8000})")->sampling_rate ==
          8000);
    CHECK(settings_with(R"({"do_normalize": false})")->scale == Scale::kAsIs);
    CHECK(settings_with(R"({"feature_extractor_type": "SpeechT5FeatureExtractor"})")->scale ==
          Scale::kAsIs);
    check_settings_refused(R"({"feature_extractor_type": "WhisperFeatureExtractor"})",
                           ErrorCode::kUnsupported, "WhisperFeatureExtractor");
    check_settings_refused(R"({"sampling_rate": 5})", ErrorCode::kInvalidFile, "[sampling_rate]");
    check_settings_refused("{", ErrorCode::kInvalidFile, "preprocessor_config.json");
  }

  TEST_CASE("waveform: a mean of 0 and a variance of 1, or the samples as they are") {
    const std::vector<float> samples = {0.5f, -0.25f, 1.0f, 0.75f};
    CHECK(*waveform_values({}, samples) == samples);
    const WaveformSettings unit{.scale = WaveformSettings::Scale::kUnit};
    const std::vector<float> values = *waveform_values(unit, samples);
    const double spread = std::sqrt(0.21875 + 1e-7);
    for (size_t i = 0; i < samples.size(); ++i) {
      CHECK(values[i] == doctest::Approx((static_cast<double>(samples[i]) - 0.5) / spread));
    }
    CHECK(*waveform_values(unit, std::vector<float>(3, 0.5f)) == std::vector<float>(3, 0.0f));
    CHECK(waveform_values(unit, {})->empty());
    const auto failed =
        waveform_values(unit, std::vector<float>{0, std::numeric_limits<float>::infinity()});
    REQUIRE_FALSE(failed.ok());
    CHECK(test::contains(failed.error().message, "Sample [1]"));
  }
}

}  // namespace vkformer
