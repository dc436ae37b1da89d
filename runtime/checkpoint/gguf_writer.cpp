#include "checkpoint/gguf_writer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"
#include "checkpoint/replace_file.h"

namespace vkformer {
namespace {

constexpr uint64_t kDataAlignment = 32;  // the format's own, where no key says another
constexpr uint32_t kWrittenVersion = 3;

uint64_t aligned(uint64_t at) {
  return (at + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
}

// Little-endian, which is every machine that vkformer runs on.
template <class T>
void append_value(std::vector<std::byte>& to, T value) {
  std::array<std::byte, sizeof value> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void append_counted(std::vector<std::byte>& to, std::string_view text) {
  append_value<uint64_t>(to, text.size());
  const auto bytes = std::as_bytes(std::span(text));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

template <class T>
void GgufWriter::append(T value) {
  append_value(keys_, value);
}

void GgufWriter::append_text(std::string_view text) {
  append_counted(keys_, text);
}

void GgufWriter::begin(std::string_view key, GgufKind kind) {
  append_text(key);
  append(static_cast<uint32_t>(kind));
  ++key_count_;
}

void GgufWriter::begin_list(std::string_view key, GgufKind element, size_t count) {
  begin(key, GgufKind::kArray);
  append(static_cast<uint32_t>(element));
  append<uint64_t>(count);
}

void GgufWriter::put_text(std::string_view key, std::string_view value) {
  begin(key, GgufKind::kString);
  append_text(value);
}

void GgufWriter::put_number(std::string_view key, uint32_t value) {
  begin(key, GgufKind::kU32);
  append(value);
}

void GgufWriter::put_float(std::string_view key, float value) {
  begin(key, GgufKind::kF32);
  append(value);
}

void GgufWriter::put_bool(std::string_view key, bool value) {
  begin(key, GgufKind::kBool);
  append(static_cast<uint8_t>(value));
}

void GgufWriter::put_texts(std::string_view key, const std::vector<std::string>& values) {
  begin_list(key, GgufKind::kString, values.size());
  for (const std::string& value : values) append_text(value);
}

void GgufWriter::put_floats(std::string_view key, const std::vector<float>& values) {
  begin_list(key, GgufKind::kF32, values.size());
  for (const float value : values) append(value);
}

void GgufWriter::put_numbers(std::string_view key, const std::vector<int32_t>& values) {
  begin_list(key, GgufKind::kI32, values.size());
  for (const int32_t value : values) append(value);
}

void GgufWriter::put_bools(std::string_view key, const std::vector<uint8_t>& values) {
  begin_list(key, GgufKind::kBool, values.size());
  for (const uint8_t value : values) append<uint8_t>(value != 0 ? 1 : 0);
}

void GgufWriter::put_bytes(std::string_view key, std::span<const std::byte> values) {
  begin_list(key, GgufKind::kU8, values.size());
  keys_.insert(keys_.end(), values.begin(), values.end());
}

void GgufWriter::put_value(std::string_view key, const GgufValue& value) {
  if (value.kind == GgufKind::kArray) {
    begin_list(key, value.element, value.count);
  } else {
    begin(key, value.kind);
    if (value.kind == GgufKind::kString) append<uint64_t>(value.bytes.size());
  }
  keys_.insert(keys_.end(), value.bytes.begin(), value.bytes.end());
}

Status GgufWriter::put_tensor(const std::string& name, GgmlType type, const Shape& shape,
                              std::vector<std::byte> bytes) {
  if (name.size() >= kMostGgufTensorName || shape.size() > kMostGgufRank) {
    return unsupported(
        message({"A GGUF file has names of up to ", kMostGgufTensorName - 1, " bytes and ",
                 kMostGgufRank, " axes, but the tensor ", bracketed(name), " has ", name.size(),
                 " bytes and the shape ", shape_text(shape), "."}));
  }
  const bool known = std::any_of(tensors_.begin(), tensors_.end(),
                                 [&](const Entry& entry) { return entry.name == name; });
  if (known) {
    return unsupported(message({"Two tensors of the model are ", bracketed(name),
                                " in a GGUF file, which has one of each name."}));
  }
  const uint64_t offset = aligned(data_end_);
  data_end_ = offset + bytes.size();
  tensors_.push_back({name, type, shape, offset, std::move(bytes)});
  return {};
}

std::vector<std::byte> GgufWriter::head() const {
  std::vector<std::byte> head;
  for (const char letter : std::string_view("GGUF")) head.push_back(static_cast<std::byte>(letter));
  append_value(head, kWrittenVersion);
  append_value<uint64_t>(head, tensors_.size());
  append_value(head, key_count_);
  head.insert(head.end(), keys_.begin(), keys_.end());
  for (const Entry& entry : tensors_) {
    append_counted(head, entry.name);
    append_value(head, static_cast<uint32_t>(entry.shape.size()));
    for (auto extent = entry.shape.rbegin(); extent != entry.shape.rend(); ++extent) {
      append_value(head, static_cast<uint64_t>(*extent));
    }
    append_value(head, static_cast<uint32_t>(entry.type));
    append_value(head, entry.offset);
  }
  head.resize(static_cast<size_t>(aligned(head.size())));
  return head;
}

Status GgufWriter::write(const std::string& path) const {
  const std::vector<std::byte> first = head();
  const std::array<std::byte, kDataAlignment> zeros{};
  std::vector<std::span<const std::byte>> pieces = {first};
  for (const Entry& entry : tensors_) {
    pieces.emplace_back(entry.bytes);
    const uint64_t end = entry.offset + entry.bytes.size();
    pieces.push_back(std::span(zeros).first(static_cast<size_t>(aligned(end) - end)));
  }
  return replace_file(path, pieces);
}

}  // namespace vkformer
