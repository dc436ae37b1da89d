// A GGUF file of version 3 to write: metadata in the order that it is put in, then tensors.
//
// Threading: one thread at a time.
// Lifetime: the writer has what it is given.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/gguf.h"
#include "vkformer/tensor.h"

namespace vkformer {

class GgufWriter {
 public:
  void put_text(std::string_view key, std::string_view value);
  void put_number(std::string_view key, uint32_t value);
  void put_float(std::string_view key, float value);
  void put_bool(std::string_view key, bool value);
  void put_texts(std::string_view key, const std::vector<std::string>& values);
  void put_floats(std::string_view key, const std::vector<float>& values);
  void put_numbers(std::string_view key, const std::vector<int32_t>& values);  // signed
  void put_bools(std::string_view key, const std::vector<uint8_t>& values);
  void put_bytes(std::string_view key, std::span<const std::byte> values);
  // A value of another file, as it lies there.
  void put_value(std::string_view key, const GgufValue& value);

  // `shape`: slowest axis first. An error names a tensor that is there already, or that the format
  // has no room for.
  Status put_tensor(const std::string& name, GgmlType type, const Shape& shape,
                    std::vector<std::byte> bytes);

  // The file as far as its tensors' bytes.
  std::vector<std::byte> head() const;
  size_t tensors() const { return tensors_.size(); }
  uint64_t tensor_bytes() const { return data_end_; }
  // Replaces the file whole or not at all.
  Status write(const std::string& path) const;

 private:
  struct Entry {
    std::string name;
    GgmlType type;
    Shape shape;
    uint64_t offset;
    std::vector<std::byte> bytes;
  };
  void begin(std::string_view key, GgufKind kind);
  void begin_list(std::string_view key, GgufKind element, size_t count);
  template <class T>
  void append(T value);
  void append_text(std::string_view text);

  std::vector<std::byte> keys_;
  uint64_t key_count_ = 0;
  std::vector<Entry> tensors_;
  uint64_t data_end_ = 0;
};

}  // namespace vkformer
