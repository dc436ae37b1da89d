// Features of whole recordings, against float64 (tools/golden/parakeet_golden.py).
#include "audio/utterance_mel.h"

#include <cmath>
#include <limits>

#include "support/golden.h"
#include "vkformer/audio.h"

namespace vkformer::testing {
namespace {

const std::string kTasks = std::string(VKFORMER_SOURCE_DIR) + "/tests/tasks/golden";

UtteranceMel golden_extractor() {
  auto made = load_utterance_mel(*make_directory_store(kTasks + "/frames"));
  REQUIRE_MESSAGE(made.ok(), made.error().message);
  return std::move(*made);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("utterance mel: features of a recording are normalized by band") {
    const UtteranceMel mel = golden_extractor();
    const Json expected = read_json(kTasks + "/frames/expected.json");
    const auto sound = load_wav(kTasks + "/" + expected["sounds"][0].get<std::string>());
    REQUIRE(sound.ok());
    const auto found = mel.extract(sound->samples);
    REQUIRE_MESSAGE(found.ok(), found.error().message);
    const Json& features = expected["features"];
    const auto frames = features["shape"][0].get<size_t>(),
               bands = features["shape"][1].get<size_t>();
    REQUIRE(mel.frames(sound->samples.size()) == static_cast<int64_t>(frames));
    REQUIRE(found->size() == frames * bands);
    for (size_t t = 0; t < 2; ++t) {
      for (size_t band = 0; band < bands; ++band) {
        const double first = (*found)[t * bands + band];
        const double last = (*found)[(frames - 2 + t) * bands + band];
        CHECK(std::abs(first - features["first"][t][band].get<double>()) < 2e-4);
        CHECK(std::abs(last - features["last"][t][band].get<double>()) < 2e-4);
      }
    }
    for (size_t band = 0; band < bands; ++band) {
      double mean = 0;
      for (size_t t = 0; t < frames; ++t) mean += (*found)[t * bands + band];
      CHECK(std::abs(mean / static_cast<double>(frames)) < 1e-5);
    }
  }

  TEST_CASE("utterance mel: silence stays finite, and what has no features is refused") {
    const UtteranceMel mel = golden_extractor();
    const auto silence = mel.extract(std::vector<float>(mel.least_samples(), 0.0f));
    REQUIRE(silence.ok());
    for (const float value : *silence) CHECK(value == 0.0f);
    CHECK_FALSE(mel.extract(std::vector<float>(mel.least_samples() - 1, 0.0f)).ok());
    std::vector<float> broken(1000, 0.1f);
    broken[7] = std::numeric_limits<float>::quiet_NaN();
    CHECK_FALSE(mel.extract(broken).ok());
    CHECK_FALSE(mel.extract(std::vector<float>(1000, 1e30f)).ok());
    CHECK_FALSE(UtteranceMel::create({.mel_bands = 0}).ok());
    CHECK_FALSE(UtteranceMel::create({.fft_length = 256}).ok());
    CHECK_FALSE(UtteranceMel::create({.preemphasis = 2.0}).ok());
  }
}

}  // namespace vkformer::testing
