#include "checkpoint/gguf.h"

#include <bit>
#include <cmath>
#include <limits>

#include "checkpoint/gguf_samples.h"
#include "checkpoint/temp_dir.h"
#include "conformance/twin/twin_run.h"
#include "support/golden.h"
#include "weights/quantize.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

void check_gguf_refused(const std::string& text, std::initializer_list<std::string_view> parts,
                        ErrorCode code = ErrorCode::kInvalidFile) {
  const auto file = open_gguf(text);
  REQUIRE_FALSE(file.ok());
  CHECK(file.error().code == code);
  const std::string& message = file.error().message;
  CAPTURE(message);
  CHECK(contains(message, "[sample.gguf]"));
  for (const std::string_view part : parts) {
    CAPTURE(part);
    CHECK(contains(message, part));
  }
}

GgufSample one_tensor(const std::vector<uint64_t>& shape, uint32_t type, size_t bytes) {
  GgufSample sample;
  sample.put_tensor("w", shape, type, std::string(bytes, '\1'));
  return sample;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("gguf: values of every kind, and tensors with their shapes turned") {
    for (const uint32_t version : {2u, 3u}) {
      GgufSample sample;
      sample.version = version;
      sample.put("u8", GgufKind::kU8, raw_bytes<uint8_t>(200));
      sample.put("i8", GgufKind::kI8, raw_bytes<int8_t>(-3));
      sample.put("u16", GgufKind::kU16, raw_bytes<uint16_t>(60000));
      sample.put("i16", GgufKind::kI16, raw_bytes<int16_t>(-300));
      sample.put("u32", GgufKind::kU32, raw_bytes<uint32_t>(4000000000u));
      sample.put("i32", GgufKind::kI32, raw_bytes<int32_t>(-7));
      sample.put("i64", GgufKind::kI64, raw_bytes<int64_t>(-(int64_t{1} << 40)));
      sample.put("u64", GgufKind::kU64, raw_bytes<uint64_t>(uint64_t{1} << 40));
      sample.put("huge", GgufKind::kU64, raw_bytes<uint64_t>(~uint64_t{0}));
      sample.put("f32", GgufKind::kF32, raw_bytes(0.25f));
      sample.put("f64", GgufKind::kF64, raw_bytes(0.1));
      sample.put("nan", GgufKind::kF32, raw_bytes(std::numeric_limits<float>::quiet_NaN()));
      sample.put("yes", GgufKind::kBool, raw_bytes<uint8_t>(1));
      sample.put_text("text", "abc").put_texts("texts", {"a", "", "bc"});
      sample.put_list<int16_t>("numbers", GgufKind::kI16, {1, -2, 3});
      sample.put_floats("m", {3, 2}).put_tensor("q", {64}, 8, std::string(68, '\2'));
      const auto file = open_gguf(sample.text());
      REQUIRE_MESSAGE(file.ok(), file.error().message);
      CHECK(file->version() == version);
      for (const auto& [key, value] :
           {std::pair{"u8", int64_t{200}}, std::pair{"i8", int64_t{-3}},
            std::pair{"u16", int64_t{60000}}, std::pair{"i16", int64_t{-300}},
            std::pair{"u32", int64_t{4000000000}}, std::pair{"i32", int64_t{-7}},
            std::pair{"i64", -(int64_t{1} << 40)}, std::pair{"u64", int64_t{1} << 40}}) {
        CHECK(file->get_int(key).value() == value);
        CHECK(file->get_double(key).value() == static_cast<double>(value));
      }
      CHECK(file->get_double("f32").value() == 0.25);
      CHECK(file->get_double("f64").value() == 0.1);
      CHECK(file->get_bool_or("yes", false).value());
      CHECK(file->get_bool_or("absent", true).value());
      CHECK(file->get_string("text").value() == "abc");
      CHECK(file->get_strings("texts").value() == std::vector<std::string_view>{"a", "", "bc"});
      CHECK(file->get_numbers("numbers").value() == std::vector<double>{1, -2, 3});
      for (const char* key : {"text", "f32", "yes", "huge", "numbers", "absent"}) {
        CAPTURE(key);
        const auto wrong = file->get_int(key);
        REQUIRE_FALSE(wrong.ok());
        CHECK(contains(wrong.error().message, std::string("[") + key + "]"));
      }
      CHECK_FALSE(file->get_double("nan").ok());
      CHECK_FALSE(file->get_string("u8").ok());
      CHECK_FALSE(file->get_bool_or("u8", false).ok());
      CHECK_FALSE(file->get_strings("numbers").ok());
      CHECK_FALSE(file->get_numbers("texts").ok());
      REQUIRE(file->tensors().size() == 2);
      CHECK(file->tensors().at("m").shape == Shape{2, 3});
      CHECK(file->tensors().at("m").bytes.size() == 24);
      CHECK(file->tensors().at("q").type == GgmlType::kQ8_0);
    }
  }

  TEST_CASE("gguf: every shortened file is refused, and no changed byte breaks the reader") {
    GgufSample sample = tiny_llama();
    const std::string text = put_tiny_tokenizer(sample).text();
    REQUIRE(open_gguf(text).ok());
    // What fills the end up to the alignment may be cut.
    const size_t needed = text.size() - 32 + 24;
    for (size_t length = 0; length < needed; ++length) {
      CHECK_FALSE(open_gguf(text.substr(0, length)).ok());
    }
    for (size_t at = 0; at < text.size(); ++at) {
      for (const char to : {'\0', '\xff', '\x7f', static_cast<char>(text[at] + 1)}) {
        std::string changed = text;
        changed[at] = to;
        const auto file = open_gguf(changed);
        if (!file.ok()) continue;
        for (const auto& [name, tensor] : file->tensors()) {
          CHECK(tensor.bytes.size() <= text.size());
        }
      }
    }
  }

  TEST_CASE("gguf: what is no such file, and files of other ages") {
    check_gguf_refused("", {"0 follow", "cut short"});
    check_gguf_refused("GGML....", {"does not begin with 'GGUF'"});
    GgufSample sample;
    sample.version = 1;
    check_gguf_refused(sample.text(), {"version 1", "2 and 3"}, ErrorCode::kUnsupported);
    sample.version = 4;
    check_gguf_refused(sample.text(), {"version 4"}, ErrorCode::kUnsupported);
    sample.version = 0x03000000;
    check_gguf_refused(sample.text(), {"big-endian"}, ErrorCode::kUnsupported);
  }

  TEST_CASE("gguf: absurd counts and lengths") {
    GgufSample sample;
    sample.tensor_count = ~uint64_t{0};
    check_gguf_refused(sample.text(), {"18446744073709551615 tensors", "262144"});
    sample.tensor_count = 0;
    sample.key_count = 65537;
    check_gguf_refused(sample.text(), {"65537 keys", "65536"});
    GgufSample list;
    list.put("l", GgufKind::kArray,
             raw_bytes(static_cast<uint32_t>(GgufKind::kF64)) + raw_bytes(~uint64_t{0}));
    check_gguf_refused(list.text(), {"[l]", "18446744073709551615 elements"});
    GgufSample texts;
    texts.put("l", GgufKind::kArray,
              raw_bytes(static_cast<uint32_t>(GgufKind::kString)) + raw_bytes(uint64_t{1} << 40));
    check_gguf_refused(texts.text(), {"[l]", "1099511627776 elements"});
    GgufSample nested;
    nested.put("l", GgufKind::kArray,
               raw_bytes(static_cast<uint32_t>(GgufKind::kArray)) + raw_bytes(uint64_t{1}));
    check_gguf_refused(nested.text(), {"[l]", "list of lists"}, ErrorCode::kUnsupported);
    GgufSample kind;
    kind.put("k", static_cast<GgufKind>(13), "");
    check_gguf_refused(kind.text(), {"[k]", "type 13"});
    GgufSample twice;
    twice.put_number("k", 1).put_number("k", 2);
    check_gguf_refused(twice.text(), {"the key [k] twice"});
  }

  TEST_CASE("gguf: tensors that cannot be") {
    check_gguf_refused(one_tensor({}, 0, 4).text(), {"tensor [w]", "0 dimensions"});
    check_gguf_refused(one_tensor({1, 1, 1, 1, 1}, 0, 4).text(), {"5 dimensions"});
    check_gguf_refused(one_tensor({0}, 0, 4).text(), {"the dimension 0"});
    check_gguf_refused(one_tensor({uint64_t{1} << 60}, 0, 4).text(), {"1152921504606846976"});
    const uint64_t large = uint64_t{1} << 40;
    check_gguf_refused(one_tensor({large, large}, 0, 4).text(), {"beyond 62 bits"});
    check_gguf_refused(one_tensor({9}, 0, 4).text(), {"spans 36 bytes", "only 32"});
    check_gguf_refused(one_tensor({33}, 8, 68).text(), {"rows of 33", "Q8_0", "blocks of 32"});
    check_gguf_refused(one_tensor({256}, 16, 66).text(), {"IQ2_XXS", "Q4_K"},
                       ErrorCode::kUnsupported);
    check_gguf_refused(one_tensor({256}, 77, 66).text(), {"type number 77"},
                       ErrorCode::kUnsupported);
    GgufSample twice;
    twice.put_floats("w", {2}).put_floats("w", {2});
    check_gguf_refused(twice.text(), {"the tensor [w] twice"});
    GgufSample overlap;
    overlap.put_tensor_at("a", {16}, 0, 0).put_tensor_at("b", {16}, 0, 32);
    overlap.put_data(std::string(96, '\0'));
    check_gguf_refused(overlap.text(), {"tensor [b]", "overlaps"});
    GgufSample askew;
    askew.put_tensor_at("a", {2}, 0, 4).put_data(std::string(64, '\0'));
    check_gguf_refused(askew.text(), {"starts at byte 4", "alignment 32"});
    GgufSample far;
    far.put_tensor_at("a", {2}, 0, ~uint64_t{0} - 31).put_data("");
    check_gguf_refused(far.text(), {"18446744073709551584"});
  }

  TEST_CASE("gguf: an alignment of its own") {
    GgufSample sample;
    sample.alignment = 8;
    sample.put_number("general.alignment", 8).put_floats("a", {1}).put_floats("b", {1});
    const auto file = open_gguf(sample.text());
    REQUIRE_MESSAGE(file.ok(), file.error().message);
    CHECK(file->tensors().at("b").bytes.data() - file->tensors().at("a").bytes.data() == 8);
    for (const uint32_t wrong : {0u, 3u, 1u << 21u}) {
      GgufSample bad;
      bad.put_number("general.alignment", wrong);
      check_gguf_refused(bad.text(), {"general.alignment", std::to_string(wrong)});
    }
  }

  TEST_CASE("gguf: blocks of every type decode to what the public library makes of them") {
    const std::string folder = vkformer::testing::golden_folder() + "/gguf-types";
    auto mapped = MappedFile::open(folder + "/types.gguf");
    REQUIRE_MESSAGE(mapped.ok(), mapped.error().message);
    const auto file = GgufFile::parse(std::move(mapped).value());
    REQUIRE_MESSAGE(file.ok(), file.error().message);
    const auto expected = read_tensor_file(folder + "/expected.safetensors");
    REQUIRE(expected.ok());
    CHECK(file->tensors().size() == 15);
    for (const auto& [bound_name, tensor] : file->tensors()) {
      const auto& name = bound_name;
      CAPTURE(name);
      CHECK(name == tensor.type_name);
      const std::vector<float> wanted = expected->at(name).to_floats().value();
      REQUIRE(wanted.size() == 256);
      std::vector<float> decoded(256);
      decode_ggml(tensor.type, tensor.bytes, 0, decoded);
      CHECK(decoded == wanted);
      // From the middle of one block to the middle of another.
      std::vector<float> part(100);
      decode_ggml(tensor.type, tensor.bytes, 77, part);
      CHECK(part == std::vector<float>(wanted.begin() + 77, wanted.begin() + 177));
    }
  }

  TEST_CASE("gguf: blocks of a type are stored so that every weight is the file's") {
    const std::string folder = vkformer::testing::golden_folder() + "/gguf-types";
    auto mapped = MappedFile::open(folder + "/types.gguf");
    REQUIRE_MESSAGE(mapped.ok(), mapped.error().message);
    const auto file = GgufFile::parse(std::move(mapped).value());
    REQUIRE_MESSAGE(file.ok(), file.error().message);
    const std::map<std::string, std::string> formats = {
        {"Q8_0", "q8_0"},  {"Q4_0", "q4_0"}, {"Q4_1", "q4_1"},     {"Q5_0", "q5_0"},
        {"Q5_1", "q5_1"},  {"Q2_K", "q2_k"}, {"Q3_K", "q3_k"},     {"Q4_K", "q4_k"},
        {"Q5_K", "q5_k"},  {"Q6_K", "q6_k"}, {"IQ4_NL", "iq4_nl"}, {"IQ4_XS", "iq4_xs"},
        {"MXFP4", "mxfp4"}};
    size_t found = 0;
    for (const auto& [bound_name, tensor] : file->tensors()) {
      CAPTURE(bound_name);
      const MatrixFormat format = ggml_format(tensor.type);
      const auto known = formats.find(tensor.type_name);
      CHECK(format_name(format) == (known == formats.end() ? "f32" : known->second));
      if (known == formats.end()) continue;
      ++found;
      std::vector<float> wanted(256);
      decode_ggml(tensor.type, tensor.bytes, 0, wanted);
      // In column 70 of 80, with others that are zeros.
      std::vector<uint32_t> words(matrix_words(format, 80, 256));
      for (size_t first = 0; first < 256; first += kBlockSteps) {
        const WeightBlock block = ggml_block(tensor.type, tensor.bytes, first);
        for (size_t i = 0; i < kBlockSteps; ++i) {
          CHECK(block_weight(block, i, format) == wanted[first + i]);
        }
        store_block(std::as_writable_bytes(std::span(words)), {70, first / kBlockSteps, 256}, block,
                    format);
      }
      // No wider than in the file, but for scales of 6 bits in whole bytes.
      if (bound_name != "Q3_K" && bound_name != "IQ4_XS") {
        const GgmlTypeFacts& facts = *ggml_type_facts(static_cast<uint32_t>(tensor.type));
        CHECK(words.size() * 4 == size_t{128} * 256 / facts.weights * facts.bytes);
      }
      const conformance::Memory memory{.shape = {}, .words = words};
      for (size_t k = 0; k < 256; ++k) {
        const conformance::Real weight = conformance::packed_weight(memory, format, k, 70, 256);
        CHECK(std::bit_cast<float>(weight.bits()) == wanted[k]);
      }
    }
    CHECK(found == formats.size());
  }
}
