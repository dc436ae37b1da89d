#include "checkpoint/sparse_file.h"

#include <doctest/doctest.h>

namespace vkformer::testing {
namespace {

void check_damaged(const std::string& ranges, size_t stored, const std::string& part) {
  const std::vector<std::byte> bytes(stored);
  const auto read = read_sparse(ranges, bytes, "m.safetensors");
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().code == ErrorCode::kInvalidFile);
  CHECK_MESSAGE(read.error().message.find(part) != std::string::npos, read.error().message);
  CHECK_MESSAGE(read.error().message.find("m.safetensors") != std::string::npos,
                read.error().message);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("sparse files: what is stored is there, the rest is zeros and said to be missing") {
    std::vector<std::byte> whole(100);
    for (size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<std::byte>(i + 1);
    const SparseFile sparse = make_sparse(whole, {{0, 8}, {20, 20}, {40, 60}});
    CHECK(sparse.stored.size() == 28);
    const auto read = read_sparse(sparse.ranges, sparse.stored, "f");
    REQUIRE_MESSAGE(read.ok(), read.error().message);
    const auto bytes = read->bytes();
    REQUIRE(bytes.size() == 100);
    for (size_t i = 0; i < 100; ++i) {
      const bool stored = i < 8 || (i >= 40 && i < 60);
      CHECK(bytes[i] == (stored ? whole[i] : std::byte{0}));
      CHECK(read->stores(bytes.subspan(i, 1)) == stored);
    }
    CHECK(read->stores(bytes.subspan(40, 20)));
    CHECK_FALSE(read->stores(bytes.subspan(40, 21)));
    CHECK(read->stores(bytes.subspan(30, 0)));
    CHECK(MappedFile::from_bytes(whole, "f").stores(bytes.subspan(10, 5)));
  }

  TEST_CASE("sparse files: hostile ranges are refused with what is wrong") {
    check_damaged("{\"size\": 10, \"stored\": [[0, 4], [3, 5]]}", 6, "range 1");
    check_damaged("{\"size\": 10, \"stored\": [[4, 2]]}", 0, "range 0");
    check_damaged("{\"size\": 10, \"stored\": [[0, 11]]}", 11, "range 0");
    check_damaged("{\"size\": 10, \"stored\": [[-1, 2]]}", 3, "range 0");
    check_damaged("{\"size\": 10, \"stored\": [[0, 1, 2]]}", 1, "range 0");
    check_damaged("{\"size\": -1, \"stored\": []}", 0, "-1 bytes");
    check_damaged("{\"size\": 9007199254740992, \"stored\": []}", 0, "9007199254740992");
    check_damaged("{\"size\": 10, \"stored\": [[0, 4]]}", 3, "3 bytes for ranges of 4");
    check_damaged("{\"stored\": []}", 0, "size");
    check_damaged("[", 0, "m.safetensors");
  }
}

}  // namespace vkformer::testing
