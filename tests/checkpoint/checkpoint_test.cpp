#include "checkpoint/checkpoint.h"

#include "checkpoint/safetensors_samples.h"
#include "checkpoint/temp_dir.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

void write_tensors(const TempDir& dir, const std::string& file, const TensorMap& tensors) {
  const Status status = write_safetensors(dir.file(file), tensors);
  REQUIRE_MESSAGE(status.ok(), status.error().message);
}

void write_index(const TempDir& dir, const std::string& weight_map) {
  dir.write("model.safetensors.index.json",
            R"({"metadata":{"total_size":1},"weight_map":)" + weight_map + "}");
}

void check_refused(const std::string& path, std::initializer_list<std::string_view> parts) {
  const auto checkpoint = Checkpoint::open(path);
  REQUIRE_FALSE(checkpoint.ok());
  const std::string& message = checkpoint.error().message;
  CAPTURE(message);
  for (const std::string_view part : parts) {
    CAPTURE(part);
    CHECK(contains(message, part));
  }
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("checkpoint: a directory with model.safetensors") {
    const TempDir dir;
    write_tensors(dir, "model.safetensors",
                  {{"b", patterned(DType::kF32, {2})}, {"a", patterned(DType::kU8, {3})}});
    write_tensors(dir, "other.safetensors", {{"c", patterned(DType::kU8, {1})}});
    auto opened = Checkpoint::open(dir.path());
    REQUIRE(opened.ok());
    const TensorView* a = opened->find("a");
    const Checkpoint checkpoint = std::move(opened).value();
    CHECK(checkpoint.names() == std::vector<std::string>{"a", "b"});
    CHECK(checkpoint.directory() == dir.path());
    REQUIRE(checkpoint.find("a") == a);
    CHECK(a->shape == Shape{3});
    CHECK(a->bytes[1] == std::byte{14});
    CHECK(checkpoint.find("c") == nullptr);
    CHECK(checkpoint.file_of("a") == dir.file("model.safetensors"));
    CHECK(checkpoint.file_of("c").empty());
  }

  TEST_CASE("checkpoint: shards, with a tensor that the index leaves out") {
    const TempDir dir;
    write_tensors(dir, "one.safetensors",
                  {{"a", patterned(DType::kF32, {2})}, {"b", patterned(DType::kU8, {3})}});
    write_tensors(dir, "two.safetensors",
                  {{"c", patterned(DType::kU8, {5})}, {"spare", patterned(DType::kU8, {1})}});
    write_index(dir, R"({"c":"two.safetensors","a":"one.safetensors","b":"one.safetensors"})");
    const auto checkpoint = Checkpoint::open(dir.path());
    REQUIRE(checkpoint.ok());
    CHECK(checkpoint->names() == std::vector<std::string>{"a", "b", "c"});
    CHECK(checkpoint->file_of("b") == dir.file("one.safetensors"));
    CHECK(checkpoint->file_of("c") == dir.file("two.safetensors"));
    CHECK(checkpoint->find("c")->bytes.size() == 5);
    CHECK(checkpoint->find("a")->bytes.size() == 8);
    CHECK(checkpoint->find("spare") == nullptr);
  }

  TEST_CASE("checkpoint: many shards, whose views outlive the growth of the list") {
    const TempDir dir;
    std::string map = "{";
    for (int i = 0; i < 40; ++i) {
      const std::string name = "t" + std::to_string(i);
      write_tensors(dir, name + ".safetensors", {{name, patterned(DType::kI16, {i})}});
      map += (i == 0 ? "\"" : ",\"") + name + "\":\"" + name + ".safetensors\"";
    }
    write_index(dir, map + "}");
    const auto checkpoint = Checkpoint::open(dir.path());
    REQUIRE(checkpoint.ok());
    for (int i = 0; i < 40; ++i) {
      const TensorView* view = checkpoint->find("t" + std::to_string(i));
      REQUIRE(view != nullptr);
      CHECK(view->shape == Shape{i});
    }
  }

  TEST_CASE("checkpoint: one file by its own path, or as the only one of a directory") {
    const TempDir dir;
    write_tensors(dir, "adapter.safetensors", {{"a", patterned(DType::kU8, {3})}});
    const auto by_directory = Checkpoint::open(dir.path());
    REQUIRE(by_directory.ok());
    CHECK(by_directory->file_of("a") == dir.file("adapter.safetensors"));
    write_tensors(dir, "second.safetensors", {{"b", patterned(DType::kU8, {3})}});
    check_refused(dir.path(), {dir.path(), "2 *.safetensors files"});
    const auto by_path = Checkpoint::open(dir.file("second.safetensors"));
    REQUIRE(by_path.ok());
    CHECK(by_path->names() == std::vector<std::string>{"b"});
    CHECK(by_path->directory() == dir.path());
  }

  TEST_CASE("checkpoint: what is missing is named") {
    const TempDir dir;
    check_refused(dir.file("nowhere"), {"nowhere", "does not exist"});
    check_refused(dir.path(), {dir.path(), "model.safetensors.index.json"});
    write_index(dir, R"({"a":"gone.safetensors"})");
    check_refused(dir.path(), {"[gone.safetensors]", "No such file"});
    write_tensors(dir, "here.safetensors", {{"b", patterned(DType::kU8, {3})}});
    write_index(dir, R"({"a":"here.safetensors"})");
    check_refused(dir.path(), {"tensor [a]", "[here.safetensors]"});
  }

  TEST_CASE("checkpoint: a shard's name cannot leave the directory") {
    const TempDir dir;
    write_tensors(dir, "m.safetensors", {{"a", patterned(DType::kU8, {3})}});
    for (const std::string name : {"../m.safetensors", "sub/m.safetensors", "/etc/passwd", "..",
                                   "a\\\\m.safetensors", "", ".", "C:m", "a..b"}) {
      CAPTURE(name);
      write_index(dir, "{\"a\":\"" + name + "\"}");
      check_refused(dir.path(), {"index.json", "not a plain file name"});
    }
  }

  TEST_CASE("checkpoint: bad indices") {
    const TempDir dir;
    dir.write("model.safetensors.index.json", "{}");
    check_refused(dir.path(), {"no [weight_map]"});
    write_index(dir, "[1]");
    check_refused(dir.path(), {"[weight_map]", "a list"});
    write_index(dir, R"({"a":7})");
    check_refused(dir.path(), {"[weight_map.a]", "the number 7"});
    dir.write("model.safetensors.index.json", "{\"weight_map\":");
    check_refused(dir.path(), {"index.json", "not valid JSON"});
    dir.write("bad.safetensors", "short");
    write_index(dir, R"({"a":"bad.safetensors"})");
    check_refused(dir.path(), {"[bad.safetensors]", "5 bytes"});
  }
}
