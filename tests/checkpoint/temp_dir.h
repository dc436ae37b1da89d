// A separate directory for a test, removed with everything in it when it leaves scope.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <system_error>

namespace vkformer::test {

class TempDir {
 public:
  TempDir() {
    std::random_device random;
    std::error_code code;
    for (int attempt = 0; attempt < 100; ++attempt) {
      const uint64_t number = (uint64_t{random()} << 32) | random();
      path_ = std::filesystem::temp_directory_path() / ("vkformer_test_" + std::to_string(number));
      if (std::filesystem::create_directory(path_, code)) return;
    }
    FAIL("no temporary directory could be made: " << code.message());
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  // With slashes on every system, as our own paths have them.
  std::string path() const { return path_.generic_string(); }
  std::string file(const std::string& name) const { return (path_ / name).generic_string(); }
  // Writes a file of that name and gives its path.
  std::string write(const std::string& name, std::string_view content) const {
    std::ofstream stream(path_ / name, std::ios::binary | std::ios::trunc);
    stream.write(content.data(), static_cast<std::streamsize>(content.size()));
    stream.close();
    REQUIRE(stream.good());
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

// Whether `text` has `part` in it; messages are tested by what they name, not letter by letter.
inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace vkformer::test
