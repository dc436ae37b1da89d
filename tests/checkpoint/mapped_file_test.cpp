#include "checkpoint/mapped_file.h"

#include <cstring>
#include <utility>

#include "checkpoint/replace_file.h"
#include "checkpoint/temp_dir.h"

#if !defined(_WIN32)
#include <sys/stat.h>
#endif

using namespace vkformer;
using vkformer::test::contains;
using vkformer::test::TempDir;

namespace {

std::string text_of(const MappedFile& file) {
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

size_t files_in(const TempDir& dir) {
  size_t count = 0;
  for (const auto& item : std::filesystem::directory_iterator(dir.path())) {
    count += item.exists() ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("mapped_file: shows the bytes of a file, also after moves") {
    const TempDir dir;
    auto opened = MappedFile::open(dir.write("a", "hello"));
    REQUIRE(opened.ok());
    MappedFile first = std::move(opened).value();
    CHECK(text_of(first) == "hello");
    const std::byte* address = first.bytes().data();
    MappedFile second = std::move(first);
    CHECK(second.bytes().data() == address);
    auto other = MappedFile::open(dir.write("b", "other content"));
    REQUIRE(other.ok());
    *other = std::move(second);
    CHECK(text_of(*other) == "hello");
    CHECK(other->path() == dir.file("a"));
  }

  TEST_CASE("mapped_file: bytes in memory stay where they are when moved") {
    MappedFile first = MappedFile::from_bytes({std::byte{1}, std::byte{2}}, "memory");
    const std::byte* address = first.bytes().data();
    const MappedFile second = std::move(first);
    CHECK(second.bytes().data() == address);
    CHECK(second.bytes().size() == 2);
  }

  TEST_CASE("mapped_file: an empty file has no bytes") {
    const TempDir dir;
    const auto file = MappedFile::open(dir.write("empty", ""));
    REQUIRE(file.ok());
    CHECK(file->bytes().empty());
  }

  TEST_CASE("mapped_file: errors name the path and the reason") {
    const TempDir dir;
    const auto missing = MappedFile::open(dir.file("missing"));
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().code == ErrorCode::kNotFound);
    CHECK(contains(missing.error().message, dir.file("missing")));
    CHECK(contains(missing.error().message, "No such file"));
    const auto directory = MappedFile::open(dir.path());
    REQUIRE_FALSE(directory.ok());
    CHECK(contains(directory.error().message, dir.path()));
    CHECK_FALSE(MappedFile::open("").ok());
    CHECK_FALSE(MappedFile::open(std::string("a\0b", 3)).ok());
  }

#if !defined(_WIN32)
  TEST_CASE("mapped_file: a named pipe is refused without waiting for a writer") {
    const TempDir dir;
    REQUIRE(::mkfifo(dir.file("pipe").c_str(), 0600) == 0);
    const auto pipe = MappedFile::open(dir.file("pipe"));
    REQUIRE_FALSE(pipe.ok());
    CHECK(contains(pipe.error().message, "not a regular file"));
  }
#endif

  TEST_CASE("replace_file: writes pieces in order and leaves nothing beside them") {
    const TempDir dir;
    const std::string path = dir.write("target", "old content, longer than the new");
    const std::string a = "one ";
    const std::string b = "two";
    const Status written =
        replace_file(path, {std::as_bytes(std::span(a)), {}, std::as_bytes(std::span(b))});
    REQUIRE(written.ok());
    const auto file = MappedFile::open(path);
    REQUIRE(file.ok());
    CHECK(text_of(*file) == "one two");
    CHECK(files_in(dir) == 1);
  }

  TEST_CASE("replace_file: a map of the old file keeps showing the old content") {
    const TempDir dir;
    const auto old = MappedFile::open(dir.write("target", "old"));
    REQUIRE(old.ok());
    const std::string content = "new";
    const Status replaced = replace_file(dir.file("target"), {std::as_bytes(std::span(content))});
#if defined(_WIN32)
    CHECK_FALSE(replaced.ok());  // Windows keeps files that are mapped
    CHECK(contains(replaced.error().message, dir.file("target")));
    CHECK(files_in(dir) == 1);
#else
    CHECK(replaced.ok());
#endif
    CHECK(text_of(*old) == "old");
  }

  TEST_CASE("replace_file: failures name the path and leave nothing behind") {
    const TempDir dir;
    const Status nowhere = replace_file(dir.file("no/such/dir"), {});
    REQUIRE_FALSE(nowhere.ok());
    CHECK(contains(nowhere.error().message, dir.file("no/such/dir")));
    const Status directory = replace_file(dir.path(), {});
    REQUIRE_FALSE(directory.ok());
    CHECK(files_in(dir) == 0);
  }
}
