#include "conformance/conv_cases.h"

#include "base/check.h"

namespace vkformer::conformance {

std::string window_text(const Window& c) {
  return size_text(c.x) + "-" + size_text(c.w);
}

reference::WindowOptions square_window(int64_t stride, int64_t padding) {
  return {.stride_height = stride, .stride_width = stride, .pad_top = padding, .pad_left = padding};
}

Result<ConvArrays> make_conv(const Window& c, Content content) {
  const int64_t count = element_count(c.w) / c.w[0] + 1;  // of a sum's terms
  ConvArrays a{random_array(c.x, 1, content),
               random_array(c.w, 2),
               random_array({c.w[0]}, 3),
               {},
               terms(count),
               magnitude_of_sum(count, content)};
  VKF_ASSIGN(a.y, reference::conv(a.x, a.w, {c.window, c.groups, &a.bias}));
  return a;
}

Result<CheckCase> conv_case(const Window& c, Content content) {
  VKF_ASSIGN(ConvArrays a, make_conv(c, content));
  const auto pair = [](int64_t height, int64_t width) {
    return "[" + std::to_string(height) + ", " + std::to_string(width) + "]";
  };
  const reference::WindowOptions& o = c.window;
  const std::string attributes = R"({"stride": )" + pair(o.stride_height, o.stride_width) +
                                 R"(, "padding": )" + pair(o.pad_top, o.pad_left) +
                                 R"(, "groups": )" + std::to_string(c.groups) + "}";
  return call_case(
      {"conv2d", attributes, {{"X", floats(a.x)}, {"W", floats(a.w)}, {"bias", floats(a.bias)}}},
      {{"Y", {std::move(a.y), a.tolerance, a.magnitude}}});
}

}  // namespace vkformer::conformance
