#include "c_api/support.h"

#include <algorithm>
#include <new>

#include "base/guarded.h"
#include "base/message.h"
#include "c_api/enums.h"

namespace vkformer {
namespace {

vkf_status note(vkf_error* error, vkf_status status, const char* fixed, std::string&& message) {
  if (error != nullptr) {
    error->status = status;
    error->fixed = fixed;
    error->message = std::move(message);
  }
  return status;
}

// Larger structs are uninitialized memory, not a newer interface.
constexpr uint32_t kLargestStruct = 65536;

}  // namespace

void refuse(Error error) {
  throw Refusal{std::move(error)};
}

void take(const Status& status) {
  if (!status) refuse(status.error());
}

vkf_status report(vkf_error* error, const CallBody& body) noexcept {
  try {
    body();
    return note(error, VKF_OK, nullptr, {});
  } catch (Refusal& refusal) {
    return note(error, number_of(refusal.error.code), nullptr, std::move(refusal.error.message));
  } catch (const std::bad_alloc&) {
    return note(error, VKF_OUT_OF_MEMORY, kNoHostMemory, {});
  } catch (...) {
    Error caught = caught_error();
    return note(error, number_of(caught.code), nullptr, std::move(caught.message));
  }
}

void need(const void* pointer, const char* name) {
  if (pointer == nullptr) {
    refuse(invalid_argument(message({"[", name, "] is null; give one."})));
  }
}

void need_all(std::initializer_list<NeededArgument> arguments) {
  for (const NeededArgument& argument : arguments) need(argument.pointer, argument.name);
}

namespace {

// The struct_size of the caller's struct.
uint32_t size_of(const void* given, const StructShape& shape) {
  uint32_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  if (size >= shape.alignment && size % shape.alignment == 0 && size <= kLargestStruct) return size;
  refuse(
      invalid_argument(message({"[", shape.name, "] has a struct_size of ", size,
                                " bytes, which no version of it has; set it to sizeof the struct (",
                                shape.known_bytes, " here)."})));
}

}  // namespace

void read_shared(const void* given, void* known, const StructShape& shape) {
  if (given == nullptr) return;
  const uint32_t size = size_of(given, shape);
  const auto* bytes = static_cast<const char*>(given);
  for (size_t i = shape.known_bytes; i < size; ++i) {
    if (bytes[i] == 0) continue;
    refuse(
        unsupported(message({"[", shape.name, "] has a struct_size of ", size, " bytes and byte ",
                             i, " is set, but this library knows ", shape.known_bytes,
                             "; leave what is newer zero, or link a newer library."})));
  }
  std::memcpy(known, given, std::min<size_t>(size, shape.known_bytes));
}

void fill_struct(void* given, const void* value, const StructShape& shape) {
  need(given, shape.name);
  const uint32_t size = size_of(given, shape);
  const size_t bytes = std::min<size_t>(size, shape.known_bytes);
  std::memcpy(given, value, bytes);
  std::memset(static_cast<char*>(given) + bytes, 0, size - bytes);
  std::memcpy(given, &size, sizeof(size));
}

std::string text_or(const char* text, const char* otherwise) {
  return text != nullptr && *text != '\0' ? text : otherwise;
}

std::vector<std::string> read_texts(const char* const* texts, size_t count, const char* name) {
  if (count != 0) need(texts, name);
  std::vector<std::string> copies;
  copies.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (texts[i] == nullptr) {
      refuse(invalid_argument(message(
          {"[", name, "] number ", i, " of ", count, " is null; give a text, perhaps \"\"."})));
    }
    copies.emplace_back(texts[i]);
  }
  return copies;
}

std::vector<const char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<const char*> pointers;
  pointers.reserve(strings.size());
  for (const std::string& text : strings) pointers.push_back(text.c_str());
  return pointers;
}

void check_index(size_t index, size_t count, const char* what) {
  if (index < count) return;
  refuse(invalid_argument(message(
      {"[", what, "] ", index, " is asked for, but there are ", count, ", counted from 0."})));
}

void check_bits(uint32_t flags, uint32_t known, const char* name) {
  if ((flags & ~known) == 0) return;
  refuse(unsupported(
      message({"[", name, "] ", flags,
               " has bits that this library does not know; it knows those of ", known, "."})));
}

std::unique_ptr<vkf_bytes> bytes_of(Result<std::string> text) {
  return handle(vkf_bytes{take(std::move(text))});
}

std::unique_ptr<vkf_bytes> bytes_of(const Result<std::vector<std::byte>>& file) {
  if (!file) refuse(file.error());
  return handle(vkf_bytes{{reinterpret_cast<const char*>(file->data()), file->size()}});
}

std::unique_ptr<vkf_tensors> one_tensor(const char* name, Tensor tensor) {
  TensorMap map;
  map[name] = std::move(tensor);
  return tensors_of(std::move(map));
}

std::unique_ptr<vkf_tensors> tensors_of(TensorMap map) {
  return std::make_unique<vkf_tensors>(vkf_tensors{std::move(map)});
}

}  // namespace vkformer

using namespace vkformer;

uint32_t vkf_api_version(void) {
  return VKF_API_VERSION;
}

const char* vkf_version_text(void) {
  return VKFORMER_VERSION;
}

const char* vkf_status_name(vkf_status status) {
  static constexpr const char* kNames[] = {
      "VKF_OK",          "VKF_INVALID_ARGUMENT", "VKF_NOT_FOUND",   "VKF_INVALID_FILE",
      "VKF_UNSUPPORTED", "VKF_OUT_OF_MEMORY",    "VKF_DEVICE_LOST", "VKF_DRIVER",
      "VKF_CANCELLED",   "VKF_INTERNAL",         "VKF_QUEUE_FULL"};
  return status >= VKF_OK && status <= VKF_QUEUE_FULL ? kNames[status] : "unknown";
}

vkf_error* vkf_error_create(void) {
  return new (std::nothrow) vkf_error;
}

void vkf_error_free(vkf_error* error) {
  delete error;
}

vkf_status vkf_error_status(const vkf_error* error) {
  return error != nullptr ? error->status : VKF_OK;
}

const char* vkf_error_message(const vkf_error* error) {
  if (error == nullptr) return "";
  return error->fixed != nullptr ? error->fixed : error->message.c_str();
}

const void* vkf_bytes_data(const vkf_bytes* bytes) {
  return bytes != nullptr ? bytes->data.data() : nullptr;
}

size_t vkf_bytes_size(const vkf_bytes* bytes) {
  return bytes != nullptr ? bytes->data.size() : 0;
}

const char* vkf_bytes_text(const vkf_bytes* bytes) {
  return bytes != nullptr ? bytes->data.c_str() : "";
}

void vkf_bytes_free(vkf_bytes* bytes) {
  delete bytes;
}
