#include "checkpoint/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"

namespace vkformer {

static_assert(std::endian::native == std::endian::little,
              "GGUF files are little-endian and are read in place");

namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr const char* kAlignmentKey = "general.alignment";
constexpr uint64_t kDefaultAlignment = 32;

// Bytes of a scalar; 0 of strings, arrays and kinds that are not known.
size_t scalar_bytes(GgufKind kind) {
  switch (kind) {
    case GgufKind::kU8:
    case GgufKind::kI8:
    case GgufKind::kBool:
      return 1;
    case GgufKind::kU16:
    case GgufKind::kI16:
      return 2;
    case GgufKind::kU32:
    case GgufKind::kI32:
    case GgufKind::kF32:
      return 4;
    case GgufKind::kU64:
    case GgufKind::kI64:
    case GgufKind::kF64:
      return 8;
    default:
      return 0;
  }
}

template <class T>
T read_as(const std::byte* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return value;
}

// A whole number at `at`, where its kind is one and it fits 63 bits.
std::optional<int64_t> whole_number(GgufKind kind, const std::byte* at) {
  switch (kind) {
    case GgufKind::kU8:
      return read_as<uint8_t>(at);
    case GgufKind::kI8:
      return read_as<int8_t>(at);
    case GgufKind::kU16:
      return read_as<uint16_t>(at);
    case GgufKind::kI16:
      return read_as<int16_t>(at);
    case GgufKind::kU32:
      return read_as<uint32_t>(at);
    case GgufKind::kI32:
      return read_as<int32_t>(at);
    case GgufKind::kI64:
      return read_as<int64_t>(at);
    case GgufKind::kU64: {
      const auto value = read_as<uint64_t>(at);
      if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return static_cast<int64_t>(value);
      }
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> any_number(GgufKind kind, const std::byte* at) {
  if (kind == GgufKind::kF32) return double{read_as<float>(at)};
  if (kind == GgufKind::kF64) return read_as<double>(at);
  if (kind == GgufKind::kBool) return read_as<uint8_t>(at) != 0 ? 1.0 : 0.0;
  const std::optional<int64_t> whole = whole_number(kind, at);
  if (!whole) return std::nullopt;
  return static_cast<double>(*whole);
}

// Takes one field after the other from the bytes; what would reach beyond the end is an error.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }

  Result<std::span<const std::byte>> take(uint64_t count, const std::string& what) {
    if (count > left()) {
      return invalid_file(message({what, " needs ", count, " bytes at byte ", position_,
                                   ", but only ", left(), " follow; the file may be cut short."}));
    }
    const auto taken = bytes_.subspan(position_, static_cast<size_t>(count));
    position_ += static_cast<size_t>(count);
    return taken;
  }
  template <class T>
  Result<T> number(const std::string& what) {
    VKF_ASSIGN(const auto bytes, take(sizeof(T), what));
    return read_as<T>(bytes.data());
  }
  Result<std::string_view> text(const std::string& what, uint64_t most) {
    VKF_ASSIGN(const uint64_t length, number<uint64_t>(what + "'s length"));
    if (length > most) {
      return invalid_file(
          message({what, " claims ", length, " bytes, above the limit ", most, "."}));
    }
    VKF_ASSIGN(const auto bytes, take(length, what));
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

Result<GgufKind> read_kind(Cursor& cursor, const std::string& what) {
  VKF_ASSIGN(const uint32_t number, cursor.number<uint32_t>(what + "'s type"));
  if (number <= static_cast<uint32_t>(GgufKind::kF64)) return static_cast<GgufKind>(number);
  return invalid_file(message({what, " has the type ", number, ", but types are 0 to 12."}));
}

// Texts one after the other, each with its length.
Status skip_texts(Cursor& cursor, uint64_t count, const std::string& what) {
  for (uint64_t i = 0; i < count; ++i) {
    VKF_CHECK(cursor.text(what, std::numeric_limits<uint64_t>::max()));
  }
  return {};
}

Status read_array(Cursor& cursor, const std::string& what, GgufValue& value,
                  std::span<const std::byte> all) {
  VKF_ASSIGN(value.element, read_kind(cursor, what + "'s elements"));
  VKF_ASSIGN(value.count, cursor.number<uint64_t>(what + "'s count"));
  if (value.element == GgufKind::kArray) {
    return unsupported(what + " is a list of lists, which vkformer does not read.");
  }
  const size_t first = cursor.position();
  const size_t each = scalar_bytes(value.element);
  // A text has at least its length.
  if (value.count > cursor.left() / std::max<size_t>(each, each == 0 ? 8 : 1)) {
    return invalid_file(message({what, " claims ", value.count, " elements, but only ",
                                 cursor.left(), " bytes follow; the file may be cut short."}));
  }
  if (each == 0) {
    VKF_CHECK(skip_texts(cursor, value.count, what));
  } else {
    VKF_CHECK(cursor.take(value.count * each, what));
  }
  value.bytes = all.subspan(first, cursor.position() - first);
  return {};
}

Result<GgufValue> read_value(Cursor& cursor, const std::string& what,
                             std::span<const std::byte> all) {
  GgufValue value;
  VKF_ASSIGN(value.kind, read_kind(cursor, what));
  if (value.kind == GgufKind::kArray) {
    VKF_CHECK(read_array(cursor, what, value, all));
    return value;
  }
  if (value.kind == GgufKind::kString) {
    VKF_ASSIGN(const std::string_view text,
               cursor.text(what, std::numeric_limits<uint64_t>::max()));
    value.bytes = std::as_bytes(std::span(text));
    return value;
  }
  VKF_ASSIGN(value.bytes, cursor.take(scalar_bytes(value.kind), what));
  return value;
}

// A tensor as the header has it, whose bytes are not known yet.
struct Described {
  std::string name;
  GgufTensor tensor;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

Result<Shape> read_shape(Cursor& cursor, const std::string& what) {
  VKF_ASSIGN(const uint32_t rank, cursor.number<uint32_t>(what + "'s rank"));
  if (rank == 0 || rank > kMostGgufRank) {
    return invalid_file(
        message({what, " has ", rank, " dimensions, but must have 1 to ", kMostGgufRank, "."}));
  }
  Shape shape;
  for (uint32_t i = 0; i < rank; ++i) {
    VKF_ASSIGN(const uint64_t extent, cursor.number<uint64_t>(what + "'s dimensions"));
    constexpr uint64_t kMost = uint64_t{1} << 48;
    if (extent == 0 || extent > kMost) {
      return invalid_file(message({what, " has the dimension ", extent,
                                   ", but dimensions must lie between 1 and ", kMost, "."}));
    }
    shape.insert(shape.begin(), static_cast<int64_t>(extent));
  }
  return shape;
}

// Bytes of all blocks; nothing where they are beyond 62 bits.
std::optional<uint64_t> bytes_of(const Shape& shape, const GgmlTypeFacts& type) {
  constexpr uint64_t kMost = uint64_t{1} << 62;
  uint64_t bytes = static_cast<uint64_t>(shape.back()) / type.weights;
  const auto times = [&](uint64_t factor) {
    if (factor != 0 && bytes > kMost / factor) return false;
    bytes *= factor;
    return true;
  };
  if (!times(type.bytes)) return std::nullopt;
  for (size_t i = 0; i + 1 < shape.size(); ++i) {
    if (!times(static_cast<uint64_t>(shape[i]))) return std::nullopt;
  }
  return bytes;
}

Result<const GgmlTypeFacts*> read_type(Cursor& cursor, const std::string& what) {
  VKF_ASSIGN(const uint32_t number, cursor.number<uint32_t>(what + "'s type"));
  const GgmlTypeFacts* type = ggml_type_facts(number);
  if (type == nullptr) {
    return unsupported(
        message({what, " has the type number ", number, ", which vkformer does not know; it reads ",
                 ggml_type_names(), "."}));
  }
  if (type->readable) return type;
  return unsupported(message({what, " has the type ", type->name,
                              ", which vkformer does not read; take a file whose tensors are in ",
                              ggml_type_names(), "."}));
}

Result<Described> read_tensor(Cursor& cursor, uint64_t index) {
  Described one;
  VKF_ASSIGN(const std::string_view name,
             cursor.text(message({"the name of tensor ", index}), kMostGgufTensorName));
  one.name = name;
  const std::string what = "tensor " + bracketed(name);
  VKF_ASSIGN(one.tensor.shape, read_shape(cursor, what));
  VKF_ASSIGN(const GgmlTypeFacts* type, read_type(cursor, what));
  one.tensor.type = static_cast<GgmlType>(type->number);
  one.tensor.type_name = type->name;
  VKF_ASSIGN(one.offset, cursor.number<uint64_t>(what + "'s offset"));
  if (one.tensor.shape.back() % type->weights != 0) {
    return invalid_file(message({what, " has rows of ", one.tensor.shape.back(), " weights, but ",
                                 type->name, " has blocks of ", type->weights, "."}));
  }
  const std::optional<uint64_t> bytes = bytes_of(one.tensor.shape, *type);
  if (!bytes) {
    return invalid_file(
        message({what, " of shape ", shape_text(one.tensor.shape), " has a size beyond 62 bits."}));
  }
  one.bytes = *bytes;
  return one;
}

// Every tensor is inside the data, at a multiple of the alignment, and shares no byte.
Status check_tensors(std::vector<Described>& found, uint64_t data_bytes, uint64_t alignment) {
  std::sort(found.begin(), found.end(),
            [](const Described& a, const Described& b) { return a.offset < b.offset; });
  uint64_t covered = 0;
  for (const Described& one : found) {
    const std::string what = "tensor " + bracketed(one.name);
    if (one.offset % alignment != 0) {
      return invalid_file(
          message({what, " starts at byte ", one.offset,
                   " of the data, which is not a multiple of the alignment ", alignment, "."}));
    }
    if (one.offset > data_bytes || one.bytes > data_bytes - one.offset) {
      return invalid_file(message({what, " spans ", one.bytes, " bytes from byte ", one.offset,
                                   " of the data on, but the file has only ", data_bytes,
                                   " bytes of it; it may be cut short."}));
    }
    if (one.offset < covered) {
      return invalid_file(message({what, " starts at byte ", one.offset,
                                   " of the data and overlaps the tensor before it, which "
                                   "ends at byte ",
                                   covered, "."}));
    }
    covered = one.offset + one.bytes;
  }
  return {};
}

Result<uint32_t> read_version(Cursor& cursor) {
  VKF_ASSIGN(const auto magic, cursor.take(kMagic.size(), "the file's first word"));
  if (!GgufFile::begins(magic)) return invalid_file("it does not begin with 'GGUF'.");
  VKF_ASSIGN(const uint32_t version, cursor.number<uint32_t>("the version"));
  if (version == 2 || version == 3) return version;
  if (version != 0 && (version & 0xffffu) == 0) {
    return unsupported("it is big-endian; convert it to a little-endian file.");
  }
  return unsupported(message({"it has the version ", version,
                              ", but vkformer reads versions 2 and 3; convert the model anew."}));
}

Result<uint64_t> read_count(Cursor& cursor, const char* what, uint64_t most) {
  VKF_ASSIGN(const uint64_t count, cursor.number<uint64_t>(message({"the number of ", what})));
  if (count <= most) return count;
  return invalid_file(message({"it claims ", count, " ", what, ", above the limit ", most, "."}));
}

}  // namespace

const char* gguf_kind_name(GgufKind kind) {
  constexpr std::array<const char*, 13> kNames = {
      "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "text", "a list", "u64", "i64", "f64"};
  return kNames[static_cast<size_t>(kind)];
}

bool GgufFile::begins(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<GgufFile> GgufFile::parse(MappedFile file) {
  const std::string context = "File [" + file.path() + "] is not a GGUF file that can be read";
  try {
    GgufFile result(std::move(file));
    const Status status = result.read();
    if (!status) return status.error().with_context(context);
    return result;
  } catch (const std::exception&) {
    return Error{ErrorCode::kOutOfMemory, context + ": its header does not fit into memory."};
  }
}

Status GgufFile::read() {
  const std::span<const std::byte> all = file_.bytes();
  Cursor cursor(all);
  VKF_ASSIGN(version_, read_version(cursor));
  VKF_ASSIGN(const uint64_t tensors, read_count(cursor, "tensors", kMostGgufTensors));
  VKF_ASSIGN(const uint64_t keys, read_count(cursor, "keys", kMostGgufKeys));
  for (uint64_t i = 0; i < keys; ++i) {
    VKF_ASSIGN(const std::string_view key,
               cursor.text(message({"the name of key ", i}), kMostGgufName));
    const std::string what = "the value of " + bracketed(key);
    VKF_ASSIGN(const GgufValue one, read_value(cursor, what, all));
    if (values_.emplace(key, one).second) continue;
    return invalid_file("it has the key " + bracketed(key) + " twice.");
  }
  std::vector<Described> found;
  for (uint64_t i = 0; i < tensors; ++i) {
    VKF_ASSIGN(Described one, read_tensor(cursor, i));
    found.push_back(std::move(one));
  }
  VKF_ASSIGN(const int64_t alignment, get_int_or(kAlignmentKey, kDefaultAlignment));
  if (alignment < 1 || static_cast<uint64_t>(alignment) > kMostGgufAlignment ||
      !std::has_single_bit(static_cast<uint64_t>(alignment))) {
    return invalid_file(message({"its [", kAlignmentKey, "] is ", alignment,
                                 ", but must be a power of 2 up to ", kMostGgufAlignment, "."}));
  }
  const auto step = static_cast<uint64_t>(alignment);
  const uint64_t data = (cursor.position() + step - 1) / step * step;
  const uint64_t data_bytes = all.size() > data ? all.size() - data : 0;
  VKF_CHECK(check_tensors(found, data_bytes, step));
  for (Described& one : found) {
    one.tensor.bytes =
        all.subspan(static_cast<size_t>(data + one.offset), static_cast<size_t>(one.bytes));
    one.tensor.stored = file_.stores(one.tensor.bytes);
    if (tensors_.emplace(one.name, std::move(one.tensor)).second) continue;
    return invalid_file("it has the tensor " + bracketed(one.name) + " twice.");
  }
  return {};
}

Error GgufFile::key_error(std::string_view key, const std::string& what) const {
  return invalid_file(message({"File [", path(), "] has [", key, "] ", what}));
}

Result<const GgufValue*> GgufFile::value(std::string_view key) const {
  const auto found = values_.find(key);
  if (found != values_.end()) return &found->second;
  return invalid_file(message({"File [", path(), "] has no [", key,
                               "] in its metadata, which the model needs; convert it anew."}));
}

Result<int64_t> GgufFile::get_int(std::string_view key) const {
  VKF_ASSIGN(const GgufValue* found, value(key));
  const bool scalar = scalar_bytes(found->kind) > 0;
  const auto number = scalar ? whole_number(found->kind, found->bytes.data()) : std::nullopt;
  if (number) return *number;
  return key_error(key, message({"as ", gguf_kind_name(found->kind),
                                 ", where a whole number below 2^63 must be."}));
}

Result<int64_t> GgufFile::get_int_or(std::string_view key, int64_t fallback) const {
  return has(key) ? get_int(key) : fallback;
}

Result<double> GgufFile::get_double(std::string_view key) const {
  VKF_ASSIGN(const GgufValue* found, value(key));
  const bool scalar = scalar_bytes(found->kind) > 0 && found->kind != GgufKind::kBool;
  const auto number = scalar ? any_number(found->kind, found->bytes.data()) : std::nullopt;
  if (number && std::isfinite(*number)) return *number;
  return key_error(
      key, message({"as ", gguf_kind_name(found->kind), ", where a finite number must be."}));
}

Result<double> GgufFile::get_double_or(std::string_view key, double fallback) const {
  return has(key) ? get_double(key) : fallback;
}

Result<bool> GgufFile::get_bool_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  VKF_ASSIGN(const GgufValue* found, value(key));
  if (found->kind == GgufKind::kBool) return read_as<uint8_t>(found->bytes.data()) != 0;
  return key_error(key,
                   message({"as ", gguf_kind_name(found->kind), ", where true or false must be."}));
}

Result<std::string> GgufFile::get_string(std::string_view key) const {
  VKF_ASSIGN(const GgufValue* found, value(key));
  if (found->kind == GgufKind::kString) {
    return std::string(reinterpret_cast<const char*>(found->bytes.data()), found->bytes.size());
  }
  return key_error(key, message({"as ", gguf_kind_name(found->kind), ", where a text must be."}));
}

Result<std::string> GgufFile::get_string_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? get_string(key) : std::string(fallback);
}

Result<std::vector<std::string_view>> GgufFile::get_strings(std::string_view key) const {
  std::vector<std::string_view> texts;
  if (!has(key)) return texts;
  VKF_ASSIGN(const GgufValue* found, value(key));
  if (found->kind != GgufKind::kArray || found->element != GgufKind::kString) {
    return key_error(
        key, message({"as ", gguf_kind_name(found->kind), ", where a list of texts must be."}));
  }
  Cursor cursor(found->bytes);
  for (uint64_t i = 0; i < found->count; ++i) {
    VKF_ASSIGN(const std::string_view text,
               cursor.text(std::string(key), std::numeric_limits<uint64_t>::max()));
    texts.push_back(text);
  }
  return texts;
}

Result<std::vector<double>> GgufFile::get_numbers(std::string_view key) const {
  std::vector<double> numbers;
  if (!has(key)) return numbers;
  VKF_ASSIGN(const GgufValue* found, value(key));
  const size_t each = found->kind == GgufKind::kArray ? scalar_bytes(found->element) : 0;
  if (each == 0) {
    return key_error(
        key, message({"as ", gguf_kind_name(found->kind), ", where a list of numbers must be."}));
  }
  for (uint64_t i = 0; i < found->count; ++i) {
    const auto number = any_number(found->element, found->bytes.data() + i * each);
    if (!number) return key_error(key, "with a number beyond 63 bits.");
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace vkformer
