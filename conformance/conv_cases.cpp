#include "conformance/conv_cases.h"

#include "base/check.h"
#include "reference/conv.h"

namespace vkformer::conformance {

Result<CheckCase> conv_case(const Window& c, Content content) {
  const Array x = random_array(c.x, 1, content), w = random_array(c.w, 2);
  const Array bias = random_array({c.w[0]}, 3);
  reference::ConvOptions options;
  options.window.stride_height = options.window.stride_width = c.stride;
  options.window.pad_top = options.window.pad_left = c.padding;
  options.groups = c.groups;
  options.bias = &bias;
  VKF_ASSIGN(Array y, reference::conv(x, w, options));
  const std::string attributes = R"({"stride": )" + std::to_string(c.stride) + R"(, "padding": )" +
                                 std::to_string(c.padding) + R"(, "groups": )" +
                                 std::to_string(c.groups) + "}";
  const int64_t count = element_count(c.w) / c.w[0] + 1;  // of a sum's terms
  return call_case(
      {"conv2d", attributes, {{"X", floats(x)}, {"W", floats(w)}, {"bias", floats(bias)}}},
      {{"Y", {std::move(y), terms(count), magnitude_of_sum(count, content)}}});
}

}  // namespace vkformer::conformance
