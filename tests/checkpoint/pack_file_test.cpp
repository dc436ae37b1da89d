// Packed models: what is written is read back, and damage is refused with a sentence.
#include "checkpoint/pack_file.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <cstring>
#include <map>

#include "base/sha256.h"

namespace vkformer::testing {
namespace {

std::span<const std::byte> bytes_in_text(const std::string& text) {
  return std::as_bytes(std::span(text));
}

using TextFiles = std::vector<std::pair<std::string, std::string>>;

std::vector<std::byte> packed(const TextFiles& texts) {
  std::vector<PackedFile> files;
  std::vector<std::span<const std::byte>> bytes;
  for (const auto& [name, text] : texts) {
    files.push_back({.name = name});
    bytes.push_back(bytes_in_text(text));
  }
  std::vector<std::byte> pack = pack_header(files, bytes, {{"adapters/0", 0.5}});
  for (size_t i = 0; i < files.size(); ++i) {
    pack.resize(static_cast<size_t>(files[i].offset));
    pack.insert(pack.end(), bytes[i].begin(), bytes[i].end());
  }
  return pack;
}

// A pack with that header, whose hash is right, and 4,096 bytes of files after it.
std::vector<std::byte> with_header(const std::string& header) {
  std::vector<std::byte> pack(kPackHead);
  std::memcpy(pack.data(), "VKFPACK1", 8);
  for (size_t i = 0; i < 8; ++i) {
    pack[8 + i] = static_cast<std::byte>(uint64_t{header.size()} >> (8 * i));
  }
  const auto digest = sha256(bytes_in_text(header));
  std::copy(digest.begin(), digest.end(), pack.begin() + 16);
  pack.insert(pack.end(), bytes_in_text(header).begin(), bytes_in_text(header).end());
  pack.resize(pack.size() + 4096);
  return pack;
}

std::string entry(const std::string& offset, const std::string& size,
                  const std::string& hash = std::string(64, '0')) {
  return R"({"offset":)" + offset + R"(,"size":)" + size + R"(,"sha256":")" + hash + R"("})";
}

std::string header(const std::string& files, const std::string& size = "4000",
                   const std::string& alignment = "1") {
  return R"({"alignment":)" + alignment + R"(,"size":)" + size + R"(,"files":{)" + files + "}}";
}

void check_refused(const std::vector<std::byte>& pack, ErrorCode code, const std::string& said) {
  const auto content = read_pack(pack, "m.vkfpack");
  REQUIRE_FALSE(content.ok());
  CHECK(content.error().code == code);
  CHECK_MESSAGE(content.error().message.find(said) != std::string::npos, content.error().message);
  CHECK(content.error().message.find("m.vkfpack") != std::string::npos);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("SHA-256 has the digests of FIPS 180-4 and of hashlib") {
    const std::pair<size_t, const char*> lengths[] = {
        {0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
        {1'000'000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
    for (const auto& [length, digest] : lengths) {
      const std::string text(length, 'a');
      CHECK(hexadecimal(sha256(bytes_in_text(text))) == digest);
      // The same in pieces.
      for (const size_t piece : {1, 7, 64, 100}) {
        if (length / piece > 20'000) continue;
        Sha256 hash;
        for (size_t at = 0; at < length; at += piece) {
          hash.add(bytes_in_text(text).subspan(at, std::min(piece, length - at)));
        }
        CHECK(hexadecimal(hash.digest()) == digest);
      }
    }
    CHECK(hexadecimal(sha256(bytes_in_text("abc"))) ==
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  }

  TEST_CASE("a pack gives the files that were packed, from any place in a file") {
    const TextFiles texts = {{"config.json", "{}"},
                             {"empty.json", ""},
                             {"1_Pooling/config.json", std::string(5000, 'x')},
                             {"adapters/0/adapter_config.json", "adapter"}};
    const std::vector<std::byte> pack = packed(texts);
    for (const size_t offset : {size_t{0}, size_t{1}, size_t{4096}}) {
      std::vector<std::byte> archive(offset);
      archive.insert(archive.end(), pack.begin(), pack.end());
      archive.resize(archive.size() + 10);
      std::vector<MappedFile> kept;
      {
        const auto store = make_pack_store(MappedFile::from_bytes(archive, "game"), offset, true);
        for (const auto& [name, text] : texts) {
          REQUIRE(store->has(name));
          auto file = store->open(name);
          REQUIRE_MESSAGE(file.ok(), file.error().message);
          kept.push_back(std::move(file).value());
        }
        CHECK_FALSE(store->has("absent"));
        CHECK(store->open("absent").error().code == ErrorCode::kNotFound);
        const auto adapters = store->adapters();
        REQUIRE(adapters.size() == 1);
        CHECK(adapters.front().scale == 0.5f);
        CHECK(adapters.front().files->has("adapter_config.json"));
        CHECK_FALSE(adapters.front().files->has("config.json"));
      }
      // Files outlive the store.
      for (size_t i = 0; i < texts.size(); ++i) {
        CHECK(std::ranges::equal(kept[i].bytes(), bytes_in_text(texts[i].second)));
      }
    }
    const auto content = read_pack(pack, "m.vkfpack");
    REQUIRE(content.ok());
    CHECK(content->size == pack.size());
    for (const PackedFile& file : content->files) CHECK(file.offset % kPackAlignment == 0);
  }

  TEST_CASE("a changed byte is found where it is, and a cut file nowhere") {
    const std::vector<std::byte> pack = packed({{"config.json", "{}"}, {"b", "content"}});
    const auto content = read_pack(pack, "m.vkfpack");
    REQUIRE(content.ok());
    std::vector<std::byte> changed = pack;
    changed[static_cast<size_t>(content->files[1].offset)] ^= std::byte{1};
    const auto store = make_pack_store(MappedFile::from_bytes(changed, "m.vkfpack"), 0, true);
    CHECK(store->open("config.json").ok());
    const auto damaged = store->open("b");
    REQUIRE_FALSE(damaged.ok());
    CHECK(damaged.error().code == ErrorCode::kInvalidFile);
    CHECK(damaged.error().message.find("has the SHA-256") != std::string::npos);
    CHECK(make_pack_store(MappedFile::from_bytes(changed, "m"), 0, false)->open("b").ok());
    for (size_t i = 0; i < 100; ++i) {
      changed = pack;
      changed[i] ^= std::byte{0x10};
      if (i >= 48 && i < 64) continue;  // filled up
      CHECK_FALSE(read_pack(changed, "m").ok());
    }
    for (const size_t size :
         {size_t{0}, size_t{7}, size_t{8}, size_t{63}, size_t{64}, size_t{200}, pack.size() - 1}) {
      CHECK_FALSE(read_pack(std::span(pack).first(size), "m").ok());
    }
    const auto beyond = make_pack_store(MappedFile::from_bytes(pack, "m"), pack.size() + 1, true);
    CHECK(beyond->open("config.json").error().code == ErrorCode::kInvalidArgument);
  }

  TEST_CASE("absurd headers are refused") {
    const ErrorCode bad = ErrorCode::kInvalidFile;
    check_refused({}, bad, "does not begin with VKFPACK1");
    std::vector<std::byte> newer = packed({{"a", "b"}});
    newer[7] = std::byte{'2'};
    check_refused(newer, ErrorCode::kUnsupported, "of the version [2]");
    std::vector<std::byte> longer = packed({{"a", "b"}});
    longer[14] = std::byte{0xff};
    check_refused(longer, bad, "the limit is");
    check_refused(with_header("{"), bad, "");
    check_refused(with_header("[]"), bad, "");
    check_refused(with_header("{}"), bad, "size");
    check_refused(with_header(header("")), bad, "it has 0 files");
    const std::string good = R"("a":)" + entry("0", "8");
    check_refused(with_header(header(good, "9000000")), bad, "says that it has 9000000 bytes");
    check_refused(with_header(header(good, "-1")), bad, "says that it has -1 bytes");
    check_refused(with_header(header(good, "5")), bad, "says that it has 5 bytes");
    for (const char* alignment : {"0", "-4", "3", "2097152"}) {
      check_refused(with_header(header(good, "4000", alignment)), bad, "its alignment is");
    }
    check_refused(with_header(header(R"("a":)" + entry("-1", "8"))), bad, "the offset -1");
    check_refused(with_header(header(R"("a":)" + entry("0", "-8"))), bad, "the size -8");
    check_refused(with_header(header(R"("a":)" + entry("8", "8"), "4000", "64")), bad,
                  "a multiple of 64");
    check_refused(with_header(header(R"("a":)" + entry("0", "4000"))), bad,
                  "ends at byte 0 + 4000");
    check_refused(with_header(header(R"("a":)" + entry("9223372036854775807", "1"))), bad,
                  "ends at byte 9223372036854775807 + 1");
    check_refused(with_header(header(R"("a":)" + entry("1", "9223372036854775807"))), bad,
                  "ends at byte 1 + 9223372036854775807");
    check_refused(with_header(header(R"("a":)" + entry("0", "1", "12"))), bad, "no SHA-256");
    check_refused(with_header(header(good + R"(,"b":)" + entry("7", "9"))), bad,
                  "the files [a] and [b] overlap");
    for (const char* name : {"../a", "/a", "a/../../b", "c:a", "a\\\\b", ""}) {
      check_refused(with_header(header("\"" + std::string(name) + "\":" + entry("0", "8"))), bad,
                    "not inside the model");
    }
    CHECK(read_pack(with_header(header(good + R"(,"b":)" + entry("8", "9"))), "m").ok());
  }
}

}  // namespace vkformer::testing
