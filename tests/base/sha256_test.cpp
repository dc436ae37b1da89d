#include "base/sha256.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace vkformer::testing {
namespace {

std::string digest_of(std::span<const std::byte> bytes, Sha256::Way way, size_t piece) {
  Sha256 hash(way);
  for (size_t at = 0; at < bytes.size(); at += piece) {
    hash.add(bytes.subspan(at, std::min(piece, bytes.size() - at)));
  }
  return hexadecimal(hash.digest());
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("SHA-256: the examples of FIPS 180-4, by both ways and in pieces of any size") {
    const std::string million(1'000'000, 'a');
    struct Example {
      std::string_view text, digest;
    };
    for (const Example& example :
         {Example{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
          Example{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
          Example{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
          Example{million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}}) {
      const auto bytes = std::as_bytes(std::span(example.text));
      for (const Sha256::Way way : {Sha256::Way::kFastest, Sha256::Way::kPortable}) {
        for (const size_t piece :
             {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{100'000}}) {
          CHECK(digest_of(bytes, way, piece) == example.digest);
        }
      }
    }
  }

  TEST_CASE("SHA-256: both ways agree on every length up to three blocks") {
    std::vector<std::byte> bytes(192);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 89 + 7);
    for (size_t size = 0; size <= bytes.size(); ++size) {
      const auto part = std::span(bytes).first(size);
      CHECK(digest_of(part, Sha256::Way::kFastest, 192) ==
            digest_of(part, Sha256::Way::kPortable, 192));
    }
  }
}

}  // namespace vkformer::testing
