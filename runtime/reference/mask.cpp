#include "reference/mask.h"

#include <string>

#include "base/check.h"

namespace vkformer::reference {
namespace {

// What causal and the window say about query i and key j.
bool position_allowed(int64_t i, int64_t j, const MaskOptions& options) {
  // In double, so that no offset or window can overflow.
  const double distance = static_cast<double>(j - i) - static_cast<double>(options.causal_offset);
  if (options.causal && distance > 0) return false;
  if (options.window_left && distance < -static_cast<double>(*options.window_left)) return false;
  return !options.window_right || distance <= static_cast<double>(*options.window_right);
}

Status check_masks(const Shape& shape, const MaskOptions& options, std::string_view op) {
  const Shape keys = {shape[0], shape[3]};
  if (options.key_mask) VKF_CHECK(check_shape(*options.key_mask, keys, op, "key_mask"));
  if (options.global) {
    VKF_CHECK(check_shape(*options.global, keys, op, "global"));
    if (shape[2] != shape[3]) {
      return invalid_argument("[" + std::string(op) + "] A global mask needs as many queries as " +
                              "keys; there are " + std::to_string(shape[2]) + " queries and " +
                              std::to_string(shape[3]) + " keys.");
    }
  }
  return {};
}

}  // namespace

Result<Array> allowed_pairs(const Shape& shape, const MaskOptions& options, std::string_view op) {
  VKF_CHECK(check_masks(shape, options, op));
  Array allowed = filled(shape, 1.0);
  if (options.mask) {
    VKF_ASSIGN(allowed, broadcast_to(*options.mask, shape, op, "mask"));
  }
  const int64_t heads = shape[1];
  const int64_t queries = shape[2];
  const int64_t keys = shape[3];
  for (int64_t at = 0; at < allowed.size(); ++at) {
    const int64_t j = at % keys;
    const int64_t i = at / keys % queries;
    const int64_t batch = at / (keys * queries * heads);
    const bool global = options.global && ((*options.global)[batch * keys + i] != 0.0 ||
                                           (*options.global)[batch * keys + j] != 0.0);
    const bool key_ok = !options.key_mask || (*options.key_mask)[batch * keys + j] != 0.0;
    const bool ok = allowed[at] != 0.0 && key_ok && (global || position_allowed(i, j, options));
    allowed[at] = ok ? 1.0 : 0.0;
  }
  return allowed;
}

}  // namespace vkformer::reference
