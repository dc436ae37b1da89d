#include "checkpoint/safetensors.h"

#include <algorithm>

#include "checkpoint/safetensors_samples.h"
#include "checkpoint/temp_dir.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

std::string entry(const std::string& name, const std::string& fields) {
  return "\"" + name + "\":{" + fields + "}";
}

// Opening `text` fails with a message that has every one of `parts` in it, and the file's name.
void check_file_refused(std::string_view text, std::initializer_list<std::string_view> parts) {
  const auto file = open_text(text);
  REQUIRE_FALSE(file.ok());
  const std::string& message = file.error().message;
  CAPTURE(message);
  CHECK(contains(message, "[sample.safetensors]"));
  for (const std::string_view part : parts) {
    CAPTURE(part);
    CHECK(contains(message, part));
  }
}

// The same for one tensor [t] of these fields before four bytes of data.
void check_tensor_refused(const std::string& fields, std::string_view part) {
  check_file_refused(file_text("{" + entry("t", fields) + "}", 4), {"tensor [t]", part});
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("safetensors: every dtype, scalars and empty tensors survive a round trip") {
    const TempDir dir;
    TensorMap tensors;
    for (const DType dtype : kEveryDType) {
      const std::string name = dtype_name(dtype);
      tensors[name + ".matrix"] = patterned(dtype, {3, 5});
      tensors[name + ".scalar"] = patterned(dtype, {});
      tensors[name + ".empty"] = patterned(dtype, {2, 0, 3});
    }
    tensors["quote \" and \xc3\xa4"] = patterned(DType::kU8, {1});
    REQUIRE(write_tensor_file(dir.file("all.safetensors"), tensors).ok());
    const auto back = read_tensor_file(dir.file("all.safetensors"));
    REQUIRE(back.ok());
    REQUIRE(back->size() == tensors.size());
    for (const auto& [bound_name, tensor] : tensors) {
      const auto& name = bound_name;
      CAPTURE(name);
      REQUIRE(back->contains(name));
      CHECK(back->at(name).dtype == tensor.dtype);
      CHECK(back->at(name).shape == tensor.shape);
      CHECK(back->at(name).bytes == tensor.bytes);
    }
  }

  TEST_CASE("safetensors: written data starts at a multiple of 8 and is aligned to its size") {
    const TempDir dir;
    const TensorMap tensors = {{"a", patterned(DType::kU8, {3})},
                               {"b", patterned(DType::kF64, {3})},
                               {"c", patterned(DType::kF16, {3})}};
    REQUIRE(write_safetensors(dir.file("x"), tensors).ok());
    const auto file = SafetensorsFile::open(dir.file("x"));
    REQUIRE(file.ok());
    for (const auto& [bound_name, view] : file->tensors()) {
      const auto& name = bound_name;
      const auto offset = static_cast<size_t>(view.bytes.data() - file->bytes().data());
      CAPTURE(name);
      CHECK(offset % dtype_size(view.dtype) == 0);
    }
    CHECK((file->find("b")->bytes.data() - file->bytes().data()) % 8 == 0);
    CHECK(file->find("missing") == nullptr);
  }

  TEST_CASE("safetensors: no tensors, with and without metadata") {
    const TempDir dir;
    REQUIRE(write_safetensors(dir.file("none"), {}).ok());
    const auto none = SafetensorsFile::open(dir.file("none"));
    REQUIRE(none.ok());
    CHECK(none->tensors().empty());
    CHECK(open_text(file_text("{}", 0)).ok());
    const auto noted = open_text(file_text(R"({"__metadata__":{"format":"pt","x":[{}]}}   )", 0));
    REQUIRE(noted.ok());
    CHECK(noted->tensors().empty());
  }

  TEST_CASE("safetensors: a file by another writer: any order, unknown fields, unaligned data") {
    const auto file = open_text(file_text(
        "{" + entry("b", R"("data_offsets":[1,9],"new":{"k":[1]},"shape":[2],"dtype":"F32")") +
            R"(,"__metadata__":{"a":"b"},)" +
            entry("a", R"("dtype":"I8","shape":[],"data_offsets":[0,1])") + "}",
        9));
    REQUIRE(file.ok());
    REQUIRE(file->tensors().size() == 2);
    CHECK(file->find("b")->shape == Shape{2});
    CHECK(file->find("b")->bytes.size() == 8);
    CHECK(file->find("b")->bytes.data() == file->find("a")->bytes.data() + 1);
    CHECK(file->find("b")->bytes[0] == std::byte{8});
  }

  TEST_CASE("safetensors: views stay valid when the file moves") {
    auto opened = open_text(
        file_text("{" + entry("t", R"("dtype":"U8","shape":[4],"data_offsets":[0,4])") + "}", 4));
    REQUIRE(opened.ok());
    const TensorView* view = opened->find("t");
    const SafetensorsFile moved = std::move(opened).value();
    CHECK(moved.find("t") == view);
    CHECK(view->bytes[3] == std::byte{22});
  }

  TEST_CASE("safetensors: bad lengths") {
    check_file_refused("", {"0 bytes"});
    check_file_refused(std::string(7, '\0'), {"7 bytes"});
    check_file_refused(std::string(8, '\0'), {"'{'"});
    std::string text = file_text("{}", 0);
    text[0] = 3;
    check_file_refused(text, {"claims 3 bytes", "cut short"});
    check_file_refused(std::string(8, '\xff') + "{}", {"18446744073709551615", "100000000"});
    text = std::string("\x01\xe1\xf5\x05\0\0\0\0", 8) + "{}";
    check_file_refused(text, {"100000001", "limit"});
  }

  TEST_CASE("safetensors: bad headers") {
    check_file_refused(file_text("[]", 0), {"'{'"});
    check_file_refused(file_text(" {}", 0), {"'{'"});
    check_file_refused(file_text("\xef\xbb\xbf{}", 0), {"'{'"});
    check_file_refused(file_text("{", 0), {"not valid JSON near byte"});
    check_file_refused(file_text("{}x", 0), {"not valid JSON"});
    check_file_refused(file_text("{} {}", 0), {"not valid JSON"});
    check_file_refused(file_text(std::string_view("{}\0", 3), 0), {"zero byte"});
    check_file_refused(file_text("{\"\xff\":1}", 0), {"not valid JSON"});
    check_file_refused(file_text(R"({"t":1})", 0), {"[t]", "a number"});
    check_file_refused(file_text(R"({"t":[1]})", 0), {"[t]", "a list"});
    check_file_refused(file_text(R"({"t":null})", 0), {"[t]", "null"});
    check_file_refused(file_text(R"({"t":1e999})", 0), {"not valid JSON"});
    check_file_refused(file_text(R"({"__metadata__":{},"__metadata__":{}})", 0), {"two entries"});
  }

  TEST_CASE("safetensors: nesting is limited even where content is ignored") {
    for (const std::string open : {"[", "{\"k\":"}) {
      std::string text = "{\"__metadata__\":";
      for (int i = 0; i < 100000; ++i) text += open;
      check_file_refused(file_text(text, 0), {"nested more than 64"});
    }
  }

  TEST_CASE("safetensors: bad tensors") {
    check_tensor_refused(R"("dtype":"F32","shape":[1])", "no data_offsets");
    check_tensor_refused(R"("shape":[1],"data_offsets":[0,4])", "no dtype");
    check_tensor_refused(R"("dtype":"F32","data_offsets":[0,4])", "no shape");
    check_tensor_refused(R"("dtype":"F6_E2M3","shape":[4],"data_offsets":[0,4])", "F6_E2M3");
    check_tensor_refused(R"("dtype":7,"shape":[4],"data_offsets":[0,4])", "a number as its dtype");
    check_tensor_refused(R"("dtype":"F32","shape":1,"data_offsets":[0,4])",
                         "a number in its shape");
    check_tensor_refused(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", "a negative number");
    check_tensor_refused(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])", "fractional");
    check_tensor_refused(R"("dtype":"F32","shape":[[1]],"data_offsets":[0,4])", "a list");
    check_tensor_refused(R"("dtype":"F32","shape":["1"],"data_offsets":[0,4])", "a string");
    check_tensor_refused(R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4])",
                         "beyond 63 bits");
    check_tensor_refused(R"("dtype":"F32","shape":[1],"data_offsets":[0])", "1 data_offsets");
    check_tensor_refused(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,4])", "more than two");
    check_tensor_refused(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])", "backwards");
    check_tensor_refused(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])", "cut short");
    check_tensor_refused(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", "needs 8 bytes");
    check_tensor_refused(R"("dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4])",
                         "two fields named [shape]");
    check_tensor_refused(R"("dtype":"U8","shape":[3],"data_offsets":[1,4])", "hole");
    std::string ones = "1";
    for (int i = 0; i < 32; ++i) ones += ",1";
    check_tensor_refused(R"("dtype":"F32","shape":[)" + ones + R"(],"data_offsets":[0,4])",
                         "more than 32 dimensions");
  }

  TEST_CASE("safetensors: sizes that overflow are refused, also beside a zero") {
    const std::string huge = "4611686018427387904";
    for (const std::string& shape : {huge + "," + huge, huge + ",0," + huge, "0," + huge + ",4"}) {
      check_tensor_refused(R"("dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[0,0])",
                           "beyond 63 bits");
    }
  }

  TEST_CASE("safetensors: the data is covered once, by one tensor a byte") {
    const std::string a = entry("a", R"("dtype":"U8","shape":[4],"data_offsets":[0,4])");
    const std::string b = entry("b", R"("dtype":"U8","shape":[4],"data_offsets":[2,6])");
    const std::string c = entry("c", R"("dtype":"U8","shape":[2],"data_offsets":[6,8])");
    check_file_refused(file_text("{" + a + "," + b + "}", 6), {"tensor [b]", "overlaps"});
    check_file_refused(file_text("{" + a + "," + c + "}", 8), {"tensor [c]", "hole"});
    check_file_refused(file_text("{" + a + "}", 5), {"cover 4 bytes", "5 follow"});
    check_file_refused(file_text("{" + a + "," + a + "}", 4), {"two entries for tensor [a]"});
  }

  TEST_CASE("safetensors: hostile names are cut and cleaned in messages") {
    const std::string name(100000, 'n');
    const auto file = open_text(file_text("{\"" + name + "\":1}", 0));
    REQUIRE_FALSE(file.ok());
    CHECK(file.error().message.size() < 500);
    const auto control = open_text(file_text(R"({"a\u001b[2Jb":1})", 0));
    REQUIRE_FALSE(control.ok());
    CHECK(contains(control.error().message, "[a?[2Jb]"));
  }

  TEST_CASE("safetensors: an unwritable map changes no file") {
    const TempDir dir;
    const std::string path = dir.write("old", "untouched");
    const auto check = [&](const std::string& name, const Tensor& tensor, std::string_view part) {
      const Status status = write_safetensors(path, {{name, tensor}});
      REQUIRE_FALSE(status.ok());
      CHECK(contains(status.error().message, part));
      CHECK(contains(status.error().message, path));
    };
    check("__metadata__", patterned(DType::kU8, {1}), "__metadata__");
    check("short", Tensor{DType::kF32, {2}, std::vector<std::byte>(4)}, "[short]");
    check("negative", Tensor{DType::kF32, {-1}, {}}, "[negative]");
    check("\xff", patterned(DType::kU8, {1}), "UTF-8");
    check("deep", patterned(DType::kU8, Shape(33, 1)), "33 dimensions");
    const auto left = MappedFile::open(path);
    REQUIRE(left.ok());
    CHECK(left->bytes().size() == 9);
  }

  TEST_CASE("safetensors: missing files are named") {
    const auto missing = read_tensor_file("no/such/file.safetensors");
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().code == ErrorCode::kNotFound);
    CHECK(contains(missing.error().message, "no/such/file.safetensors"));
  }
}
