#include "checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"
#include "checkpoint/replace_file.h"

namespace vkformer {

static_assert(std::endian::native == std::endian::little,
              "safetensors files are little-endian and are read in place");

namespace {

constexpr size_t kLengthBytes = 8;
constexpr int kMaxIgnoredDepth = 64;
// The most tensors of a file: more than a hundred times those of the largest model. The limit
// bounds the memory that a header takes to a multiple of its bytes.
constexpr size_t kMostTensors = size_t{1} << 18;
constexpr const char* kMetadataKey = "__metadata__";
constexpr DType kAllDTypes[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
                                DType::kI32, DType::kI16, DType::kI8,  DType::kU64,  DType::kU32,
                                DType::kU16, DType::kU8,  DType::kBool};

Float8 float8_from_name(std::string_view name) {
  if (name == "F8_E4M3") return Float8::kE4m3;
  if (name == "F8_E5M2") return Float8::kE5m2;
  return name == "F8_E8M0" ? Float8::kE8m0 : Float8::kNone;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  if (float8_from_name(name) != Float8::kNone) return DType::kU8;
  for (const DType dtype : kAllDTypes) {
    if (name == dtype_name(dtype)) return dtype;
  }
  return std::nullopt;
}

// The bytes that dtype and shape ask for, or nothing if a dimension is negative or the size is
// beyond 63 bits. Zeros are omitted from the overflow check, so that no order of multiplication
// that a later stage chooses can overflow either.
std::optional<uint64_t> checked_bytes(DType dtype, const Shape& shape) {
  uint64_t bytes = dtype_size(dtype);
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
      continue;
    }
    const uint64_t factor = static_cast<uint64_t>(extent);
    const uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (bytes > limit / factor) return std::nullopt;
    bytes *= factor;
  }
  return empty ? 0 : bytes;
}

struct HeaderEntry {
  DType dtype = DType::kF32;
  Float8 float8 = Float8::kNone;
  Shape shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

using HeaderEntries = std::map<std::string, HeaderEntry>;

// Receives the header's JSON events. Reading events rather than a tree shows repeated keys, bounds
// the memory, and needs no recursion. Every function returns false to stop, with error() set.
class HeaderReader {
 public:
  bool null() { return scalar("null"); }
  bool boolean(bool) { return scalar("a boolean"); }
  bool number_integer(int64_t) { return scalar("a negative number"); }
  bool number_float(double, const std::string&) { return scalar("a fractional number"); }
  bool binary(std::vector<uint8_t>&) { return scalar("binary"); }
  bool number_unsigned(uint64_t value);
  bool string(std::string& text);
  bool start_object(size_t);
  bool key(std::string& name);
  bool end_object();
  bool start_array(size_t);
  bool end_array();
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    return fail("is not valid JSON near byte " + std::to_string(position));
  }

  HeaderEntries& entries() { return entries_; }
  const Error& error() const { return error_; }

 private:
  enum class Level { kOutside, kTop, kTensor, kList };
  enum class Field { kDType, kShape, kOffsets };

  // True while the value is one that is ignored: the metadata, or a field we do not know.
  bool skipping() const { return skip_next_; }
  bool enter_skipped();
  void leave_skipped() {
    if (skip_depth_ > 0) --skip_depth_;
    if (skip_depth_ == 0) skip_next_ = false;
  }
  bool scalar(const char* found);
  bool tensor_key(const std::string& name);
  bool finish_tensor();
  bool unexpected(const std::string& found);
  bool fail(const std::string& what, ErrorCode code = ErrorCode::kInvalidFile);

  HeaderEntries entries_;
  Error error_;
  Level level_ = Level::kOutside;
  Field field_ = Field::kDType;
  bool metadata_seen_ = false;
  bool skip_next_ = false;
  int skip_depth_ = 0;
  std::string name_;  // of the tensor being read
  HeaderEntry entry_;
  bool seen_[3] = {};  // by Field
  size_t offsets_read_ = 0;
};

bool HeaderReader::fail(const std::string& what, ErrorCode code) {
  const bool in_tensor = level_ == Level::kTensor || level_ == Level::kList;
  error_ = {code, (in_tensor ? "tensor " + bracketed(name_) : std::string("the header")) + " " +
                      what + "."};
  return false;
}

bool HeaderReader::unexpected(const std::string& found) {
  switch (level_) {
    case Level::kOutside:
      return fail("must be a JSON object, not " + found);
    case Level::kTop:
      return fail("has " + found + " as the entry of tensor " + bracketed(name_) +
                  ", where an object must be");
    default:
      break;
  }
  switch (field_) {
    case Field::kDType:
      return fail("has " + found + " as its dtype, where a name must be");
    case Field::kShape:
      return fail("has " + found + " in its shape, where a list of non-negative integers must be");
    case Field::kOffsets:
      break;
  }
  return fail("has " + found +
              " in its data_offsets, where a list of two non-negative integers must be");
}

bool HeaderReader::enter_skipped() {
  if (++skip_depth_ <= kMaxIgnoredDepth) return true;
  return fail("is nested more than " + std::to_string(kMaxIgnoredDepth) + " levels deep");
}

bool HeaderReader::scalar(const char* found) {
  if (!skipping()) return unexpected(found);
  if (skip_depth_ == 0) skip_next_ = false;
  return true;
}

bool HeaderReader::number_unsigned(uint64_t value) {
  if (skipping() || level_ != Level::kList) return scalar("a number");
  if (field_ == Field::kOffsets) {
    if (offsets_read_ == 2) return fail("has more than two data_offsets");
    (offsets_read_ == 0 ? entry_.begin : entry_.end) = value;
    ++offsets_read_;
    return true;
  }
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return fail("has the dimension " + std::to_string(value) + ", beyond 63 bits");
  }
  if (entry_.shape.size() == kMaxTensorRank) {
    return fail("has more than " + std::to_string(kMaxTensorRank) + " dimensions");
  }
  entry_.shape.push_back(static_cast<int64_t>(value));
  return true;
}

bool HeaderReader::string(std::string& text) {
  if (skipping() || level_ != Level::kTensor || field_ != Field::kDType) return scalar("a string");
  const std::optional<DType> dtype = dtype_from_name(text);
  if (!dtype) {
    return fail("has the dtype " + bracketed(text) +
                    ", which vkformer does not know; convert it to F32, F16 or BF16",
                ErrorCode::kUnsupported);
  }
  entry_.dtype = *dtype;
  entry_.float8 = float8_from_name(text);
  return true;
}

bool HeaderReader::start_object(size_t) {
  if (skipping()) return enter_skipped();
  if (level_ == Level::kOutside) {
    level_ = Level::kTop;
    return true;
  }
  if (level_ != Level::kTop) return unexpected("an object");
  level_ = Level::kTensor;
  entry_ = {};
  std::fill(std::begin(seen_), std::end(seen_), false);
  offsets_read_ = 0;
  return true;
}

bool HeaderReader::key(std::string& name) {
  if (skipping()) return true;
  if (level_ == Level::kTensor) return tensor_key(name);
  if (name == kMetadataKey) {
    if (metadata_seen_) return fail("has two entries named [__metadata__]");
    metadata_seen_ = skip_next_ = true;
    return true;
  }
  if (entries_.contains(name)) return fail("has two entries for tensor " + bracketed(name));
  if (entries_.size() == kMostTensors) {
    return fail("has more than " + std::to_string(kMostTensors) + " tensors");
  }
  name_ = name;
  return true;
}

bool HeaderReader::tensor_key(const std::string& name) {
  if (name == "dtype") {
    field_ = Field::kDType;
  } else if (name == "shape") {
    field_ = Field::kShape;
  } else if (name == "data_offsets") {
    field_ = Field::kOffsets;
  } else {
    skip_next_ = true;
    return true;
  }
  bool& seen = seen_[static_cast<size_t>(field_)];
  if (seen) return fail("has two fields named " + bracketed(name));
  seen = true;
  return true;
}

bool HeaderReader::end_object() {
  if (skipping()) {
    leave_skipped();
    return true;
  }
  if (level_ == Level::kTensor) return finish_tensor();
  level_ = Level::kOutside;
  return true;
}

bool HeaderReader::finish_tensor() {
  constexpr const char* kFieldNames[] = {"dtype", "shape", "data_offsets"};
  for (size_t i = 0; i < std::size(seen_); ++i) {
    if (!seen_[i]) return fail("has no " + std::string(kFieldNames[i]));
  }
  entries_.emplace(std::move(name_), std::move(entry_));
  name_.clear();
  level_ = Level::kTop;
  return true;
}

bool HeaderReader::start_array(size_t) {
  if (skipping()) return enter_skipped();
  if (level_ != Level::kTensor || field_ == Field::kDType) return unexpected("a list");
  level_ = Level::kList;
  return true;
}

bool HeaderReader::end_array() {
  if (skipping()) {
    leave_skipped();
    return true;
  }
  level_ = Level::kTensor;
  if (field_ == Field::kOffsets && offsets_read_ != 2) {
    return fail("has " + std::to_string(offsets_read_) + " data_offsets; it needs two");
  }
  return true;
}

// Everything about one entry that needs no other entry. The messages follow "tensor [name] ".
Status check_entry(const HeaderEntry& entry, uint64_t data_size) {
  const std::string range =
      "bytes " + std::to_string(entry.begin) + " to " + std::to_string(entry.end);
  if (entry.begin > entry.end)
    return invalid_file(message({"spans ", range, ", which runs backwards."}));
  if (entry.end > data_size) {
    return invalid_file(message({"spans ", range, " of the data, but the file has only ", data_size,
                                 " bytes of it; it may be cut short."}));
  }
  const std::string described =
      "of dtype " + std::string(dtype_name(entry.dtype)) + " and shape " + shape_text(entry.shape);
  const std::optional<uint64_t> wanted = checked_bytes(entry.dtype, entry.shape);
  if (!wanted) return invalid_file(described + " has a size beyond 63 bits.");
  if (*wanted != entry.end - entry.begin) {
    return invalid_file(message(
        {described, " needs ", *wanted, " bytes but spans ", entry.end - entry.begin, "."}));
  }
  return {};
}

// The tensors, laid side by side in the order of their offsets, must cover the data exactly.
Status check_layout(const HeaderEntries& entries, uint64_t data_size) {
  std::vector<const HeaderEntries::value_type*> sorted;
  sorted.reserve(entries.size());
  for (const auto& item : entries) {
    const Status status = check_entry(item.second, data_size);
    if (!status) {
      return Error{status.error().code,
                   "tensor " + bracketed(item.first) + " " + status.error().message};
    }
    sorted.push_back(&item);
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  uint64_t covered = 0;
  for (const auto* item : sorted) {
    if (item->second.begin != covered) {
      return invalid_file(
          message({"tensor ", bracketed(item->first), " starts at byte ", item->second.begin,
                   " of the data, which ",
                   (item->second.begin < covered ? "overlaps" : "leaves a hole after"),
                   " the tensor before it, ending at byte ", covered, "."}));
    }
    covered = item->second.end;
  }
  if (covered == data_size) return {};
  return invalid_file(message({"the tensors cover ", covered, " bytes of data, but ", data_size,
                               " follow the header; there must be no others."}));
}

// The JSON text of the header, after the checks on its length.
Result<std::string_view> header_text(std::span<const std::byte> bytes) {
  if (bytes.size() < kLengthBytes) {
    return invalid_file(
        message({"it has ", bytes.size(), " bytes, fewer than the 8 of the header's length."}));
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMaxSafetensorsHeader) {
    return invalid_file(message({"its header claims ", length, " bytes, above the limit ",
                                 kMaxSafetensorsHeader, "; it may be no safetensors file."}));
  }
  if (length > bytes.size() - kLengthBytes) {
    return invalid_file(
        message({"its header claims ", length, " bytes, but only ", bytes.size() - kLengthBytes,
                 " follow; the file may be cut short."}));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                              static_cast<size_t>(length));
  // The parser would skip a byte order mark and take a zero byte for the end.
  if (text.empty() || text.front() != '{')
    return invalid_file("its header does not open with '{'.");
  if (text.find('\0') != std::string_view::npos) {
    return invalid_file("its header holds a zero byte.");
  }
  return text;
}

Result<HeaderEntries> parse_header(std::string_view text) {
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader)) return reader.error();
  return std::move(reader.entries());
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::parse(MappedFile file) {
  const std::string context = "File [" + file.path() + "] is not a valid safetensors file";
  try {
    SafetensorsFile result(std::move(file));
    const std::span<const std::byte> bytes = result.bytes();
    const auto text = header_text(bytes);
    if (!text) return text.error().with_context(context);
    auto entries = parse_header(*text);
    if (!entries) return entries.error().with_context(context);
    const auto data = bytes.subspan(kLengthBytes + text->size());
    const Status layout = check_layout(*entries, data.size());
    if (!layout) return layout.error().with_context(context);
    for (auto& [name, entry] : *entries) {
      const auto view = data.subspan(static_cast<size_t>(entry.begin),
                                     static_cast<size_t>(entry.end - entry.begin));
      result.tensors_.emplace(
          name, TensorView{entry.dtype, std::move(entry.shape), view, nullptr, entry.float8});
    }
    return result;
  } catch (const std::exception&) {
    return Error{ErrorCode::kOutOfMemory, context + ": its header does not fit into memory."};
  }
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  VKF_ASSIGN(MappedFile file, MappedFile::open(path));
  return parse(std::move(file));
}

Result<SafetensorsFile> SafetensorsFile::from_bytes(std::vector<std::byte> bytes,
                                                    std::string name) {
  return parse(MappedFile::from_bytes(std::move(bytes), std::move(name)));
}

const TensorView* SafetensorsFile::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

namespace {

using NamedTensor = TensorMap::value_type;

Status check_writable(const NamedTensor& item) {
  const auto& [name, tensor] = item;
  if (name == kMetadataKey) {
    return invalid_argument("tensor [__metadata__] has a name that the format keeps for itself.");
  }
  if (tensor.shape.size() > kMaxTensorRank) {
    return invalid_argument(message({"tensor ", bracketed(name), " has ", tensor.shape.size(),
                                     " dimensions; the limit is ", kMaxTensorRank, "."}));
  }
  const std::optional<uint64_t> wanted = checked_bytes(tensor.dtype, tensor.shape);
  if (dtype_size(tensor.dtype) != 0 && wanted && *wanted == tensor.bytes.size()) return {};
  return invalid_argument(
      message({"tensor ", bracketed(name), " of dtype ", dtype_name(tensor.dtype), " and shape ",
               shape_text(tensor.shape), " holds ", tensor.bytes.size(),
               " bytes; give one value for each element."}));
}

// The length and the JSON, padded with spaces so that the data starts at a multiple of 8 bytes.
std::string header_of(const std::vector<const NamedTensor*>& order) {
  std::string text = "{";
  uint64_t offset = 0;
  for (const auto* item : order) {
    const Tensor& tensor = item->second;
    if (text.size() > 1) text += ',';
    text += nlohmann::json(item->first).dump() + ":{\"dtype\":\"" + dtype_name(tensor.dtype) +
            "\",\"shape\":" + nlohmann::json(tensor.shape).dump() + ",\"data_offsets\":[" +
            std::to_string(offset) + ',' + std::to_string(offset + tensor.bytes.size()) + "]}";
    offset += tensor.bytes.size();
  }
  text += '}';
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  const uint64_t length = text.size();
  std::string prefix(kLengthBytes, '\0');
  std::memcpy(prefix.data(), &length, kLengthBytes);
  return prefix + text;
}

}  // namespace

Status write_safetensors(const std::string& path, const TensorMap& tensors) {
  const std::string context = "File [" + path + "] was not written";
  try {
    std::vector<const NamedTensor*> order;
    for (const auto& item : tensors) {
      const Status status = check_writable(item);
      if (!status) return status.error().with_context(context);
      order.push_back(&item);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return dtype_size(a->second.dtype) > dtype_size(b->second.dtype);
    });
    const std::string header = header_of(order);
    if (header.size() - kLengthBytes > kMaxSafetensorsHeader) {
      return invalid_argument(
          message({context, ": its header would have ", header.size(), " bytes, above the limit ",
                   kMaxSafetensorsHeader, "; write fewer tensors to a file."}));
    }
    std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(header))};
    for (const auto* item : order) pieces.push_back(item->second.bytes);
    return replace_file(path, pieces);
  } catch (const nlohmann::json::exception&) {
    return invalid_argument(context + ": the name of a tensor is not valid UTF-8; rename it.");
  } catch (const std::exception&) {
    return Error{ErrorCode::kOutOfMemory, context + ": its header does not fit into memory."};
  }
}

}  // namespace vkformer
