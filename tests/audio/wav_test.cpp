// WAV files: every sample format, odd layouts, and files that must be refused.
#include "audio/wav.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "audio/wav_samples.h"
#include "checkpoint/temp_dir.h"
#include "vkformer/audio.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

std::vector<float> samples_of(const std::string& file) {
  const auto sound = decode_wav(bytes_of(file), "test.wav");
  REQUIRE_MESSAGE(sound.ok(), (sound.ok() ? std::string() : sound.error().message));
  return sound->samples;
}

void check_error(const std::string& file, ErrorCode code, const std::string& says) {
  const auto sound = decode_wav(bytes_of(file), "test.wav");
  REQUIRE_FALSE(sound.ok());
  CHECK(sound.error().code == code);
  CHECK_MESSAGE(contains(sound.error().message, says), sound.error().message);
  CHECK(contains(sound.error().message, "[test.wav]"));
}

using Samples = std::vector<float>;

const std::string kTail("\x00\x00\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71", 14);

// What an extensible format chunk adds: valid bits, speakers and the subformat.
std::string extension(uint16_t valid_bits, uint16_t kind) {
  return little_endian_bytes(22, 2) + little_endian_bytes(valid_bits, 2) +
         little_endian_bytes(3, 4) + little_endian_bytes(kind, 2) + kTail;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("wav: integer samples of every width") {
    CHECK(samples_of(wav_file({1, 1, 8000, 8}, std::string("\x80\x00\xFF\xC0", 4))) ==
          Samples{0.0f, -1.0f, 127.0f / 128.0f, 0.5f});
    CHECK(samples_of(wav_file({1, 1, 8000, 16}, std::string("\0\0\0\x80\xFF\x7F\0\x40", 8))) ==
          Samples{0.0f, -1.0f, 32767.0f / 32768.0f, 0.5f});
    CHECK(samples_of(wav_file({1, 1, 8000, 24}, std::string("\0\0\x80\1\0\0\0\0\xC0", 9))) ==
          Samples{-1.0f, 1.0f / 8388608.0f, -0.5f});
    CHECK(samples_of(wav_file({1, 1, 8000, 32}, std::string("\0\0\0\x80\0\0\0\x20", 8))) ==
          Samples{-1.0f, 0.25f});
    // 12 bits stand at the top of their two bytes.
    CHECK(samples_of(wav_file({1, 1, 8000, 12}, std::string("\xF0\x7F\0\xC0", 4))) ==
          Samples{2047.0f / 2048.0f, -0.5f});
    CHECK(samples_of(wav_file({}, "")).empty());
  }

  TEST_CASE("wav: what is written is read again") {
    const Samples samples = {0.0f, 0.5f, -1.0f, 1.0f, 2.0f, -3.0f, 1.0f / 32767.0f};
    const auto bytes = encode_wav_file(samples, 22050);
    REQUIRE_MESSAGE(bytes.ok(), bytes.error().message);
    const auto sound = decode_wav(*bytes, "test.wav");
    REQUIRE_MESSAGE(sound.ok(), sound.error().message);
    CHECK(sound->sampling_rate == 22050);
    REQUIRE(sound->samples.size() == samples.size());
    for (size_t i = 0; i < samples.size(); ++i) {
      const float wanted = std::clamp(samples[i], -1.0f, 1.0f) * 32767.0f / 32768.0f;
      CHECK(std::abs(sound->samples[i] - wanted) <= 0.5f / 32768.0f);
    }
    CHECK(encode_wav_file({}, 8000).ok());
    const auto rate = encode_wav_file(samples, 0);
    REQUIRE_FALSE(rate.ok());
    CHECK(contains(rate.error().message, "[sampling_rate] is 0"));
    const auto nan = encode_wav_file(Samples{0.0f, std::nanf("")}, 8000);
    REQUIRE_FALSE(nan.ok());
    CHECK(contains(nan.error().message, "not a number at 1"));
    const TempDir directory;
    const Sound written{samples, 16000};
    REQUIRE(save_wav(directory.file("a.wav"), written).ok());
    const auto loaded = load_wav(directory.file("a.wav"));
    REQUIRE(loaded.ok());
    CHECK(loaded->sampling_rate == 16000);
    const Status lost = save_wav(directory.file("no/folder.wav"), written);
    REQUIRE_FALSE(lost.ok());
    CHECK(contains(lost.error().message, "folder.wav"));
  }

  TEST_CASE("wav: float samples, and the mean of channels") {
    const auto f32 = [](float value) {
      return little_endian_bytes(std::bit_cast<uint32_t>(value), 4);
    };
    const auto f64 = [](double value) {
      return little_endian_bytes(std::bit_cast<uint64_t>(value), 8);
    };
    CHECK(samples_of(wav_file({3, 1, 8000, 32}, f32(0.25f) + f32(-1.5f))) == Samples{0.25f, -1.5f});
    CHECK(samples_of(wav_file({3, 1, 8000, 64}, f64(1.0 / 3.0))) == Samples{1.0f / 3.0f});
    CHECK(samples_of(wav_file({3, 2, 8000, 32}, f32(1.0f) + f32(0.5f) + f32(-1.0f) + f32(1.0f))) ==
          Samples{0.75f, 0.0f});
    CHECK(samples_of(wav_file({1, 3, 8000, 8}, "\xC0\x80\x80")) == Samples{0.5f / 3.0f});
  }

  TEST_CASE("wav: extensible formats, other chunks and missing padding") {
    const std::string one("\0\x40", 2);
    const WavFormat extensible{0xFFFE, 1, 48000, 16};
    const std::string data = wav_chunk("data", one);
    CHECK(samples_of(riff(format_chunk(extensible, extension(16, 1)) + data)) == Samples{0.5f});
    const std::string odd = wav_chunk("LIST", "INFOabc") + wav_chunk("\x01\xFFzz", "");
    CHECK(samples_of(riff(odd + format_chunk({}) + odd + data + odd)) == Samples{0.5f});
    CHECK(samples_of(riff(data + format_chunk({}))) == Samples{0.5f});
    // The last chunk's padding is often forgotten, and the size in front often wrong.
    std::string bare = wav_file({1, 1, 8000, 8}, "\xC0");
    bare.pop_back();
    bare.replace(4, 4, 4, '\xFF');
    CHECK(samples_of(bare) == Samples{0.5f});
    const auto sound = decode_wav(bytes_of(wav_file({1, 1, 44100, 16}, one)), "x");
    REQUIRE(sound.ok());
    CHECK(sound->sampling_rate == 44100);
  }

  TEST_CASE("wav: streamed files, whose writer did not know the length, go to the end") {
    const std::string good =
        wav_file({1, 2, 16000, 16}, std::string("\0\x40\0\x40\0\x80\0\x80", 8));
    const Samples wanted = {0.5f, -1.0f};
    std::string largest = good;
    largest.replace(4, 4, 4, '\xFF');
    largest.replace(40, 4, 4, '\xFF');
    CHECK(samples_of(largest) == wanted);
    std::string zero = good;
    zero.replace(4, 4, 4, '\0');
    zero.replace(40, 4, 4, '\0');
    CHECK(samples_of(zero) == wanted);
    // Cut inside a frame, and before the first one.
    CHECK(samples_of(zero.substr(0, zero.size() - 3)) == Samples{0.5f});
    CHECK(samples_of(zero.substr(0, 45)).empty());
    CHECK(samples_of(zero.substr(0, 44)).empty());
    // A finished file that holds nothing.
    CHECK(samples_of(riff(format_chunk({}) + wav_chunk("data", "") + wav_chunk("LIST", "abcd")))
              .empty());
  }

  TEST_CASE("wav: damaged and unsupported files") {
    const std::string good = wav_file({}, std::string("\0\x40\0\x40", 4));
    check_error("", ErrorCode::kInvalidFile, "no RIFF/WAVE file");
    check_error("RIFF\x10\0\0\0AVI ", ErrorCode::kInvalidFile, "no RIFF/WAVE file");
    check_error("RIFX" + good.substr(4), ErrorCode::kInvalidFile, "no RIFF/WAVE file");
    check_error(good.substr(0, good.size() - 1), ErrorCode::kInvalidFile, "[data]");
    check_error(good.substr(0, good.size() - 1), ErrorCode::kInvalidFile, "cut short");
    check_error(good.substr(0, 30), ErrorCode::kInvalidFile, "[fmt ]");
    check_error(riff(format_chunk({})), ErrorCode::kInvalidFile, "no chunk [data]");
    check_error(riff(wav_chunk("data", "ab")), ErrorCode::kInvalidFile, "no chunk [fmt ]");
    check_error(riff(wav_chunk("fmt ", "short") + wav_chunk("data", "")), ErrorCode::kInvalidFile,
                "at least 16");
    check_error(wav_file({1, 0, 8000, 16}, ""), ErrorCode::kInvalidFile, "0 channels");
    check_error(wav_file({1, 1, 0, 16}, ""), ErrorCode::kInvalidFile, "sampling rate of 0");
    check_error(wav_file({1, 1, 0xFFFFFFFF, 16}, ""), ErrorCode::kInvalidFile, "4294967295");
    check_error(wav_file({1, 1, 8000, 0}, ""), ErrorCode::kUnsupported, "0 bits");
    check_error(wav_file({1, 1, 8000, 40}, ""), ErrorCode::kUnsupported, "40 bits");
    check_error(wav_file({3, 1, 8000, 16}, ""), ErrorCode::kUnsupported, "32 or 64");
    check_error(wav_file({7, 1, 8000, 8}, ""), ErrorCode::kUnsupported, "format 7");
    check_error(wav_file({1, 2, 8000, 16}, "abcdef"), ErrorCode::kInvalidFile, "multiple of the 4");
    const WavFormat extensible{0xFFFE, 1, 48000, 16};
    check_error(wav_file(extensible, ""), ErrorCode::kInvalidFile, "at least 40");
    std::string other = extension(16, 1);
    other.back() = 'x';
    check_error(riff(format_chunk(extensible, other) + wav_chunk("data", "")),
                ErrorCode::kUnsupported, "subformat");
    std::string block = good;
    block[32] = 5;
    check_error(block, ErrorCode::kInvalidFile, "block of 5");
    std::string huge = good;
    huge.replace(40, 4, "\xFE\xFF\xFF\xFF");
    check_error(huge, ErrorCode::kInvalidFile, "claims 4294967294 bytes");
  }

  TEST_CASE("wav: damage at random is an error or a sound, never a crash") {
    std::mt19937 random(11);
    const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
    std::string data;
    for (int i = 0; i < 96; ++i) data += static_cast<char>(random() % 256);
    const std::vector<std::string> originals = {
        wav_file({1, 2, 16000, 16}, data), wav_file({3, 1, 16000, 64}, data),
        wav_file({1, 1, 8000, 24}, data),
        riff(wav_chunk("LIST", "abc") + format_chunk({0xFFFE, 1, 48000, 32}, extension(24, 1)) +
             wav_chunk("data", data))};
    int sounds = 0;
    int errors = 0;
    for (int round = 0; round < 20000; ++round) {
      std::string file = originals[below(originals.size())];
      for (size_t change = 1 + below(3); change > 0 && !file.empty(); --change) {
        const size_t at = below(below(2) == 0 ? std::min<size_t>(file.size(), 60) : file.size());
        switch (below(4)) {
          case 0:
            file[at] = static_cast<char>(random() % 256);
            break;
          case 1:
            file[at] = static_cast<char>(file[at] ^ (1 << below(8)));
            break;
          case 2:
            file.erase(at, below(20));
            break;
          default:
            file.insert(at, file.substr(below(file.size()), below(20)));
            break;
        }
      }
      const auto sound = decode_wav(bytes_of(file), "x.wav");
      if (sound.ok()) {
        ++sounds;
        // Every sample has at least a byte.
        REQUIRE(sound->samples.size() <= file.size());
        REQUIRE(sound->sampling_rate > 0);
      } else {
        ++errors;
        REQUIRE(sound.error().code != ErrorCode::kInternal);
      }
    }
    CHECK(sounds > 2000);
    CHECK(errors > 2000);
  }

  TEST_CASE("wav: the public functions") {
    const std::string file = wav_file({1, 1, 8000, 16}, std::string(160, '\0'));
    const auto as_is = decode_wav_bytes(bytes_of(file), "x.wav");
    REQUIRE(as_is.ok());
    CHECK(as_is->sampling_rate == 8000);
    CHECK(as_is->samples.size() == 80);
    const TempDir folder;
    const auto loaded = load_wav(folder.write("a.wav", file), 16000);
    REQUIRE_MESSAGE(loaded.ok(), (loaded.ok() ? std::string() : loaded.error().message));
    CHECK(loaded->sampling_rate == 16000);
    CHECK(loaded->samples == std::vector<float>(160, 0.0f));
    const auto missing = load_wav(folder.file("b.wav"));
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().code == ErrorCode::kNotFound);
    const auto odd_rate = decode_wav_bytes(bytes_of(file), "x.wav", -5);
    REQUIRE_FALSE(odd_rate.ok());
    CHECK(contains(odd_rate.error().message, "[-5]"));
    // A rate that a file may name but nobody records at.
    const auto slow = decode_wav_bytes(bytes_of(wav_file({1, 1, 1, 16}, "ab")), "x.wav", 16000);
    REQUIRE_FALSE(slow.ok());
    CHECK(contains(slow.error().message, "[1] Hz"));
  }
}
