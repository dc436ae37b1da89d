// The safetensors format: an 8-byte length, a JSON header, then the tensors' bytes.
//
// Threading: immutable once open; any thread may read.
// Lifetime: views point into the file's bytes and live as long as the SafetensorsFile.
//
// A file is checked whole when it is opened, as strictly as the format's reference implementation
// does it. What a view shows is inside the file. Every byte of the data belongs to just one tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/mapped_file.h"
#include "vkformer/result.h"
#include "vkformer/tensor.h"

namespace vkformer {

// The longest header accepted, in bytes; the reference implementation's limit.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;
// The most dimensions of a tensor. The format has no limit; no model comes near this one.
inline constexpr size_t kMaxTensorRank = 32;

// Floats of 8 bits, whose views have the dtype U8.
enum class Float8 : uint8_t { kNone, kE4m3, kE5m2, kE8m0 };

// A tensor inside a file. `bytes` is row-major, as long as dtype and shape ask for, and may start
// at any address: copy elements out, do not cast.
struct TensorView {
  DType dtype = DType::kF32;
  Shape shape;
  std::span<const std::byte> bytes;
  // Of a quantized matrix (quantized_tensors.h) its scales; else null. The shape is that of the
  // matrix then, whatever its bytes' is.
  const struct QuantizedBlocks* blocks = nullptr;
  Float8 float8 = Float8::kNone;  // what U8 stands for in the file
};

class SafetensorsFile {
 public:
  // Maps and checks a file. An error names the file, and the tensor where there is one.
  static Result<SafetensorsFile> open(const std::string& path);
  // The same over a file that is open already.
  static Result<SafetensorsFile> parse(MappedFile file);
  // The same over bytes in memory; `name` stands for the path in messages.
  static Result<SafetensorsFile> from_bytes(std::vector<std::byte> bytes, std::string name);

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  // The tensor of that name, or nullptr.
  const TensorView* find(const std::string& name) const;
  const std::string& path() const { return file_.path(); }
  // Whether the file has the elements of one of its tensors (MappedFile::stores).
  bool stores(const TensorView& tensor) const { return file_.stores(tensor.bytes); }
  // All the bytes of the file, header included.
  std::span<const std::byte> bytes() const { return file_.bytes(); }

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  std::map<std::string, TensorView> tensors_;
};

// Writes `tensors` as a file, wide element types first so that all are aligned to their size. An
// existing file is replaced whole or not at all.
Status write_safetensors(const std::string& path, const TensorMap& tensors);

}  // namespace vkformer
