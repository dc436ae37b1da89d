#include "weights/fold_batch_norm.h"

#include <cmath>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

Error error(const ConvWeight& conv, const std::string& text) {
  return invalid_argument(message({"[", conv.name, "] ", text}));
}

Status check_size(const ConvWeight& conv, const char* what, std::span<const float> values) {
  if (values.size() == static_cast<size_t>(conv.out)) return {};
  return error(conv, "The " + std::string(what) + " has " + std::to_string(values.size()) +
                         " elements, but there are " + std::to_string(conv.out) +
                         " output channels; give one element each.");
}

Status check_conv_weight(const ConvWeight& conv) {
  if (conv.out < 1 || conv.weight.size() % static_cast<size_t>(conv.out) != 0) {
    return error(conv, "The weight has " + std::to_string(conv.weight.size()) +
                           " elements, which are not " + std::to_string(conv.out) +
                           " rows of one length; check the number of output channels.");
  }
  if (!conv.bias.empty()) VKF_CHECK(check_size(conv, "bias", conv.bias));
  return {};
}

// What a channel's sum is multiplied by, and what is added then.
struct Affine {
  double scale = 1.0;
  double shift = 0.0;
};

void append_row(const ConvWeight& conv, size_t o, const Affine& affine, std::vector<float>& table) {
  const size_t taps = conv.weight.size() / static_cast<size_t>(conv.out);
  for (const float w : conv.weight.subspan(o * taps, taps)) {
    table.push_back(static_cast<float>(affine.scale * static_cast<double>(w)));
  }
  const double bias = conv.bias.empty() ? 0.0 : static_cast<double>(conv.bias[o]);
  table.push_back(static_cast<float>(affine.scale * bias + affine.shift));
}

}  // namespace

Result<std::vector<float>> pack_conv(const ConvWeight& conv) {
  VKF_CHECK(check_conv_weight(conv));
  std::vector<float> table;
  table.reserve(conv.weight.size() + static_cast<size_t>(conv.out));
  for (size_t o = 0; o < static_cast<size_t>(conv.out); ++o) append_row(conv, o, {}, table);
  return table;
}

Result<std::vector<float>> fold_batch_norm(const ConvWeight& conv, const BatchNorm& norm) {
  VKF_CHECK(check_conv_weight(conv));
  VKF_CHECK(check_size(conv, "batch norm's gain", norm.gain));
  VKF_CHECK(check_size(conv, "batch norm's shift", norm.shift));
  VKF_CHECK(check_size(conv, "batch norm's running mean", norm.mean));
  VKF_CHECK(check_size(conv, "batch norm's running variance", norm.variance));
  std::vector<float> table;
  table.reserve(conv.weight.size() + static_cast<size_t>(conv.out));
  for (size_t o = 0; o < static_cast<size_t>(conv.out); ++o) {
    const double spread = static_cast<double>(norm.variance[o]) + norm.epsilon;
    if (!(spread > 0)) {
      return error(conv, "The batch norm's variance plus epsilon is " + number_text(spread) +
                             " in channel " + std::to_string(o) + ", but must be positive.");
    }
    const double scale = static_cast<double>(norm.gain[o]) / std::sqrt(spread);
    append_row(
        conv, o,
        {scale, static_cast<double>(norm.shift[o]) - scale * static_cast<double>(norm.mean[o])},
        table);
  }
  return table;
}

}  // namespace vkformer
