#include "reference/mask.h"

#include <string>

#include "base/check.h"
#include "base/message.h"

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
      return invalid_argument(
          message({"[", op, "] A global mask needs as many queries as keys; there are ", shape[2],
                   " queries and ", shape[3], " keys."}));
    }
  }
  if (options.documents) {
    VKF_CHECK(check_shape(*options.documents, keys, op, "documents"));
    if (shape[2] != shape[3]) {
      return invalid_argument(message({"[", op, "] Documents need as many queries as keys."}));
    }
  }
  if (options.prefix) VKF_CHECK(check_shape(*options.prefix, {shape[0]}, op, "prefix"));
  if (options.block_map) {
    const int64_t size = options.block_size;
    if (size < 1 || shape[2] % size != 0 || shape[3] % size != 0) {
      return invalid_argument(message({"[", op, "] Blocks of ", size, " tokens do not divide ",
                                       shape[2], " queries and ", shape[3], " keys."}));
    }
    const Shape blocks = {shape[0], shape[1], shape[2] / size, shape[3] / size};
    VKF_CHECK(broadcast_to(*options.block_map, blocks, op, "block_map"));
  }
  return {};
}

// Is a pair out of reach allowed nonetheless?
bool widened(int64_t batch, int64_t i, int64_t j, int64_t keys, const MaskOptions& options) {
  if (options.prefix && static_cast<double>(j) < (*options.prefix)[batch]) return true;
  return options.global &&
         ((*options.global)[batch * keys + i] != 0.0 || (*options.global)[batch * keys + j] != 0.0);
}

}  // namespace

double pair_count(const Shape& shape, const MaskOptions& options, int64_t at) {
  if (!options.block_map) return 1.0;
  const Array& map = *options.block_map;
  const int64_t j = at % shape[3] / options.block_size;
  const int64_t i = at / shape[3] % shape[2] / options.block_size;
  const int64_t h = at / (shape[3] * shape[2]) % shape[1];
  const int64_t b = at / (shape[3] * shape[2] * shape[1]);
  const int64_t slice = (map.dim(0) == 1 ? 0 : b) * map.dim(1) + (map.dim(1) == 1 ? 0 : h);
  return map[(slice * map.dim(2) + i) * map.dim(3) + j];
}

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
    const bool near = position_allowed(i, j, options) || widened(batch, i, j, keys, options);
    const bool own = !options.documents || (*options.documents)[batch * keys + i] ==
                                               (*options.documents)[batch * keys + j];
    const bool key_ok = !options.key_mask || (*options.key_mask)[batch * keys + j] != 0.0;
    const bool ok =
        allowed[at] != 0.0 && key_ok && near && own && pair_count(shape, options, at) > 0.0;
    allowed[at] = ok ? 1.0 : 0.0;
  }
  return allowed;
}

}  // namespace vkformer::reference
