// The GGUF format, versions 2 and 3: metadata by key, descriptions of tensors, then their bytes
// (https://github.com/ggml-org/ggml, docs/gguf.md). Little-endian.
//
// Threading: immutable once open; any thread may read.
// Lifetime: values and views point into the file's bytes and live as long as the GgufFile.
//
// A file is checked whole when it is opened. Every length is inside the file, keys and names are
// there once, and tensors share no byte.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/ggml_types.h"
#include "checkpoint/mapped_file.h"
#include "vkformer/result.h"

namespace vkformer {

// Limits of a file; no published one comes near them.
inline constexpr uint64_t kMostGgufKeys = uint64_t{1} << 16;
inline constexpr uint64_t kMostGgufTensors = uint64_t{1} << 18;
inline constexpr uint64_t kMostGgufName = 65535;  // bytes of a key
inline constexpr uint64_t kMostGgufTensorName = 256;
inline constexpr uint32_t kMostGgufRank = 4;
inline constexpr uint64_t kMostGgufAlignment = uint64_t{1} << 20;

enum class GgufKind : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
const char* gguf_kind_name(GgufKind kind);

// A value of the metadata, as it lies in the file.
struct GgufValue {
  GgufKind kind = GgufKind::kU8;
  GgufKind element = GgufKind::kU8;  // of an array
  uint64_t count = 1;                // of an array
  // A scalar's bytes, a string's text, or an array's elements: strings with a length of 8 bytes
  // before each.
  std::span<const std::byte> bytes;
};

struct GgufTensor {
  GgmlType type = GgmlType::kF32;
  const char* type_name = "";  // "Q4_K"
  Shape shape;                 // slowest axis first, the other way round than in the file
  std::span<const std::byte> bytes;
  bool stored = true;  // false: the file has zeros in its place (sparse_file.h)
};

using GgufTensorMap = std::map<std::string, GgufTensor, std::less<>>;

class GgufFile {
 public:
  // Checks a file. An error names it, and the key or tensor where there is one.
  static Result<GgufFile> parse(MappedFile file);
  // Whether the bytes begin as such a file does.
  static bool begins(std::span<const std::byte> bytes);

  const std::string& path() const { return file_.path(); }
  uint32_t version() const { return version_; }
  const GgufTensorMap& tensors() const { return tensors_; }
  const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }

  // Whether the metadata has the key.
  bool has(std::string_view key) const { return values_.find(key) != values_.end(); }
  // Values by key; a missing one is the fallback or, without one, an error. One of another kind is
  // an error that names both.
  Result<int64_t> get_int(std::string_view key) const;
  Result<int64_t> get_int_or(std::string_view key, int64_t fallback) const;
  Result<double> get_double(std::string_view key) const;
  Result<double> get_double_or(std::string_view key, double fallback) const;
  Result<bool> get_bool_or(std::string_view key, bool fallback) const;
  Result<std::string> get_string(std::string_view key) const;
  Result<std::string> get_string_or(std::string_view key, std::string_view fallback) const;
  // Lists; a missing one is empty. Texts are views of the file.
  Result<std::vector<std::string_view>> get_strings(std::string_view key) const;
  Result<std::vector<double>> get_numbers(std::string_view key) const;
  // An error about a key of this file: "File [...] has [key] <what>".
  Error key_error(std::string_view key, const std::string& what) const;

 private:
  explicit GgufFile(MappedFile file) : file_(std::move(file)) {}
  Status read();
  Result<const GgufValue*> value(std::string_view key) const;

  MappedFile file_;
  uint32_t version_ = 0;
  GgufTensorMap tensors_;
  std::map<std::string, GgufValue, std::less<>> values_;
};

}  // namespace vkformer
