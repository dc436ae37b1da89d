// Picture files, damaged at random but in the same way every time: decoding must neither crash nor
// give pixels that it did not read. The sanitizers turn silent damage into failures here.
#include <random>
#include <string>
#include <vector>

#include "checkpoint/temp_dir.h"
#include "image/picture_processor.h"
#include "image/picture_samples.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

constexpr int kRounds = 12000;

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  uint32_t below(size_t limit) { return limit == 0 ? 0 : random_() % static_cast<uint32_t>(limit); }

  void mutate(std::vector<std::byte>& file) {
    const uint32_t rounds = 1 + below(4);
    for (uint32_t i = 0; i < rounds && !file.empty(); ++i) mutate_once(file);
  }

 private:
  void mutate_once(std::vector<std::byte>& file) {
    const size_t at = below(file.size());
    switch (below(6)) {
      case 0:
      case 1:
        file[at] ^= static_cast<std::byte>(1u << below(8));
        break;
      case 2:
        file[at] = static_cast<std::byte>(below(2) * 255);
        break;
      case 3:
        // Headers come first, and decide most.
        file[below(std::min<size_t>(file.size(), 48))] = static_cast<std::byte>(below(256));
        break;
      case 4: {
        const size_t count = below(std::min<size_t>(file.size() - at, 40));
        const std::vector<std::byte> part(file.begin() + static_cast<std::ptrdiff_t>(at),
                                          file.begin() + static_cast<std::ptrdiff_t>(at + count));
        file.insert(file.begin() + below(file.size()), part.begin(), part.end());
        break;
      }
      default:
        if (below(4) == 0) file.resize(at);
        break;
    }
  }

  std::mt19937 random_;
};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("picture: damaged files never crash, and keep to the sizes they claim") {
    std::vector<std::vector<std::byte>> originals;
    for (const auto& [name, tensor] : golden_pictures()) {
      if (name.starts_with("file.")) originals.push_back(tensor.bytes);
    }
    Mutator mutator(77);
    int accepted = 0, decoded = 0;
    for (int i = 0; i < kRounds; ++i) {
      std::vector<std::byte> file = originals[mutator.below(originals.size())];
      mutator.mutate(file);
      const auto picture = decode_picture(file, "damaged");
      ++decoded;
      if (!picture.ok()) {
        REQUIRE(contains(picture.error().message, "[damaged]"));
        continue;
      }
      ++accepted;
      REQUIRE(check_picture_size(picture->width, picture->height, "damaged").ok());
      REQUIRE(picture->pixels.size() ==
              static_cast<size_t>(picture->width) * static_cast<size_t>(picture->height) * 3);
    }
    // Both outcomes happen, or the mutations are too weak or too strong to test anything.
    CHECK(decoded == kRounds);
    CHECK(accepted > kRounds / 100);
    CHECK(accepted < kRounds * 3 / 4);
  }
}
