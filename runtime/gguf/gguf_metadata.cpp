#include "gguf/gguf_metadata.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"

namespace vkformer {
namespace {

// Whether there are values, all of them the same.
bool are_alike(const std::vector<double>& all) {
  return !all.empty() &&
         std::adjacent_find(all.begin(), all.end(), std::not_equal_to<>()) == all.end();
}

}  // namespace

Result<int64_t> GgufMetadata::size(const char* name) const {
  const std::string full = key(name);
  const auto found = file().values().find(full);
  int64_t value = 0;
  if (found != file().values().end() && found->second.kind == GgufKind::kArray) {
    VKF_ASSIGN(const std::vector<double> all, file().get_numbers(full));
    if (!are_alike(all)) {
      return refused(name, "with different values by layer, but layers must be alike.");
    }
    // What no 63 bits hold is refused below.
    value = all[0] >= 1 && all[0] < 9e18 ? static_cast<int64_t>(all[0]) : 0;
  } else {
    VKF_ASSIGN(value, file().get_int(full));
  }
  if (value >= 1) return value;
  return file().key_error(full, message({"as ", value, ", but it must be at least 1."}));
}

Result<int64_t> GgufMetadata::size_of_some(const char* name) const {
  VKF_ASSIGN(std::vector<double> all, file().get_numbers(key(name)));
  std::erase(all, 0.0);
  if (are_alike(all) && all[0] >= 1 && all[0] < 9e18) return static_cast<int64_t>(all[0]);
  return refused(name, "without one number of at least 1 for all layers that have any.");
}

Result<int64_t> GgufMetadata::rows(const char* name) const {
  const GgufTensor* found = tensor(name);
  if (found != nullptr && found->shape.size() == 2) return found->shape[0];
  return invalid_file(message({"File [", file().path(), "] has no matrix [", name,
                               "], which the architecture ", architecture_, " needs."}));
}

Result<std::vector<double>> GgufMetadata::values(const char* name) const {
  constexpr int64_t kMost = 1 << 16;
  const GgufTensor& found = *tensor(name);
  if (element_count(found.shape) > kMost) {
    return invalid_file(
        message({"File [", file().path(), "] has [", name, "] of shape ", shape_text(found.shape),
                 ", but it may have up to ", kMost, " elements."}));
  }
  std::vector<float> decoded(static_cast<size_t>(element_count(found.shape)));
  decode_ggml(found.type, found.bytes, 0, decoded);
  return std::vector<double>(decoded.begin(), decoded.end());
}

}  // namespace vkformer
