// Log-mel features: the transform against its definition, the whole against transformers.
#include "audio/log_mel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "audio/wav_samples.h"
#include "checkpoint/temp_dir.h"
#include "vkformer/audio.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

LogMelExtractor extractor(const TempDir& folder) {
  auto made = LogMelExtractor::load(folder.path());
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  return std::move(made).value();
}

std::vector<float> features(const LogMelExtractor& from, const Sound& sound) {
  const auto tensor = from.extract(sound);
  REQUIRE_MESSAGE(tensor.ok(), (tensor.ok() ? std::string() : tensor.error().message));
  CHECK(tensor->shape == Shape{1, from.mel_bands(), from.frames()});
  return tensor->to_floats().value();
}

void check_refused(const std::string& config, ErrorCode code, const std::string& says) {
  const TempDir folder;
  folder.write("preprocessor_config.json", config);
  const auto made = LogMelExtractor::load(folder.path());
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().code == code);
  CHECK_MESSAGE(contains(made.error().message, says), made.error().message);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("frame_fft: agrees with the definition for every kind of length") {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    for (const size_t length : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 12u, 25u, 49u, 60u, 97u, 128u, 360u,
                                390u, 400u, 401u, 512u}) {
      const auto fft = FrameFft::plan(static_cast<int64_t>(length));
      REQUIRE(fft.ok());
      std::vector<FrameFft::Values> in(length);
      for (auto& value : in) {
        for (size_t lane = 0; lane < FrameFft::kLanes; ++lane) {
          value.re[lane] = uniform(random);
          value.im[lane] = uniform(random);
        }
      }
      std::vector<FrameFft::Values> out = in;
      std::vector<FrameFft::Values> scratch(length);
      fft->transform(out, scratch);
      double worst = 0.0;
      for (size_t lane = 0; lane < FrameFft::kLanes; lane += 5) {
        for (size_t k = 0; k < length; ++k) {
          double re = 0.0;
          double im = 0.0;
          for (size_t n = 0; n < length; ++n) {
            const double angle = -2.0 * std::numbers::pi * static_cast<double>(k * n % length) /
                                 static_cast<double>(length);
            re += in[n].re[lane] * std::cos(angle) - in[n].im[lane] * std::sin(angle);
            im += in[n].re[lane] * std::sin(angle) + in[n].im[lane] * std::cos(angle);
          }
          worst = std::max({worst, std::abs(re - out[k].re[lane]), std::abs(im - out[k].im[lane])});
        }
      }
      CAPTURE(length);
      CHECK(worst < 3e-6 * std::sqrt(static_cast<double>(length)));
    }
    CHECK(FrameFft::plan(0).error().code == ErrorCode::kUnsupported);
    CHECK(FrameFft::plan(1 << 17).error().code == ErrorCode::kUnsupported);
    CHECK(contains(FrameFft::plan(65521).error().message, "65521"));
  }

  TEST_CASE("log-mel: features of the golden sounds") {
    const auto golden =
        read_tensor_file(VKFORMER_SOURCE_DIR "/tests/audio/golden/sounds.safetensors");
    REQUIRE_MESSAGE(golden.ok(), (golden.ok() ? std::string() : golden.error().message));
    int cases = 0;
    for (; golden->contains("file." + std::to_string(cases)); ++cases) {
      const auto tensor = [&](const std::string& kind) -> const Tensor& {
        return golden->at(kind + "." + std::to_string(cases));
      };
      CAPTURE(cases);
      const auto sound = decode_wav_bytes(tensor("file").bytes, "golden.wav");
      REQUIRE(sound.ok());
      CHECK(sound->samples == tensor("samples").to_floats().value());
      const TempDir folder;
      const auto& config = tensor("config").bytes;
      folder.write("preprocessor_config.json",
                   {reinterpret_cast<const char*>(config.data()), config.size()});
      const auto got = features(extractor(folder), *sound);
      const auto wanted = tensor("features").to_floats().value();
      REQUIRE(got.size() == wanted.size());
      float worst = 0.0f;
      for (size_t i = 0; i < got.size(); ++i) {
        worst = std::max(worst, std::abs(got[i] - wanted[i]));
      }
      CHECK(worst < 2e-4f);
    }
    CHECK(cases == 3);
  }

  TEST_CASE("log-mel: lengths, padding and rates") {
    const TempDir folder;
    folder.write("preprocessor_config.json",
                 R"({"feature_extractor_type": "WhisperFeatureExtractor", "chunk_length": 2,
                     "feature_size": 12, "nb_max_frames": 7, "dither": 0.5})");
    const LogMelExtractor whisper = extractor(folder);
    CHECK(whisper.sampling_rate() == 16000);
    CHECK(whisper.chunk_samples() == 32000);
    CHECK(whisper.mel_bands() == 12);
    CHECK(whisper.frames() == 200);
    // Silence is the floor everywhere: (log10(1e-10) + 4) / 4.
    CHECK(features(whisper, {}) == std::vector<float>(12 * 200, -1.5f));
    Sound sound;
    std::mt19937 random(9);
    for (int i = 0; i < 40000; ++i) {
      sound.samples.push_back(0.2f * static_cast<float>(random() % 1000) / 1000.0f - 0.1f);
    }
    const auto whole = features(whisper, sound);
    sound.samples.resize(32000);
    CHECK(features(whisper, sound) == whole);
    // Filled up on the left by what the right would have had.
    folder.write("preprocessor_config.json",
                 R"({"chunk_length": 2, "feature_size": 12, "padding_side": "left"})");
    const LogMelExtractor left = extractor(folder);
    Sound late{std::vector<float>(32000, 0.0f)};
    std::copy_n(sound.samples.begin(), 5000, late.samples.end() - 5000);
    sound.samples.resize(5000);
    CHECK(features(left, sound) == features(left, late));
    // Another rate is resampled first.
    sound.sampling_rate = 8000;
    const auto doubled = resample_sound(sound, 16000);
    REQUIRE(doubled.ok());
    CHECK(doubled->samples.size() == 10000);
    CHECK(features(whisper, sound) == features(whisper, *doubled));
  }

  TEST_CASE("log-mel: sounds that are refused") {
    const TempDir folder;
    folder.write("processor_config.json",
                 R"({"feature_extractor": {"chunk_length": 1, "feature_size": 20}})");
    const LogMelExtractor whisper = extractor(folder);
    CHECK(whisper.mel_bands() == 20);
    Sound sound{std::vector<float>(100, 0.0f)};
    sound.samples[7] = std::numeric_limits<float>::quiet_NaN();
    auto failed = whisper.extract(sound);
    REQUIRE_FALSE(failed.ok());
    CHECK(contains(failed.error().message, "Sample [7]"));
    sound.samples[7] = 1e30f;
    failed = whisper.extract(sound);
    REQUIRE_FALSE(failed.ok());
    CHECK(contains(failed.error().message, "too loud"));
    sound.sampling_rate = 0;
    failed = whisper.extract(sound);
    REQUIRE_FALSE(failed.ok());
    CHECK(contains(failed.error().message, "[0] Hz"));
  }

  TEST_CASE("log-mel: settings that are refused") {
    const auto invalid = ErrorCode::kInvalidFile;
    check_refused("{", invalid, "preprocessor_config.json");
    check_refused(R"({"feature_extractor_type": "Wav2Vec2FeatureExtractor"})",
                  ErrorCode::kUnsupported, "Wav2Vec2FeatureExtractor");
    check_refused(R"({"feature_size": 0})", invalid, "[feature_size]");
    check_refused(R"({"feature_size": "80"})", invalid, "feature_size");
    check_refused(R"({"sampling_rate": 5})", invalid, "[sampling_rate]");
    check_refused(R"({"hop_length": 0})", invalid, "[hop_length]");
    check_refused(R"({"hop_length": -160})", invalid, "[hop_length]");
    check_refused(R"({"n_fft": 1})", invalid, "[n_fft]");
    check_refused(R"({"n_fft": 9000000000})", invalid, "[n_fft]");
    check_refused(R"({"n_fft": 1031})", ErrorCode::kUnsupported, "1031");
    check_refused(R"({"chunk_length": 0})", invalid, "[chunk_length]");
    check_refused(R"({"chunk_length": 3600, "sampling_rate": 768000})", invalid, "the limits are");
    check_refused(R"({"hop_length": 1, "n_fft": 65536})", invalid, "the limits are");
    check_refused(R"({"chunk_length": 1, "n_fft": 65536})", invalid, "too few");
    check_refused(R"({"padding_side": "top"})", invalid, "[top]");
    const TempDir empty;
    CHECK(LogMelExtractor::load(empty.path()).error().code == ErrorCode::kNotFound);
  }
}
