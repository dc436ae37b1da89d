// Where a NaN comes from, and where two devices begin to differ: what every dispatch wrote.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "conformance/watching.h"
#include "vkformer/conformance.h"
#include "vkformer/session.h"

namespace vkformer {

using conformance::Watching;

namespace {

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / 4);
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * 4);
  return values;
}

struct Written {
  std::string label, op, name;
  std::vector<float> values;
};

// Finished tensors of operators in the order in which they were written.
Status record_pass(const Device& device, const Model& model, const TensorMap& inputs,
                   std::vector<Written>& written) {
  VKF_ASSIGN(Session session, Session::create(model));
  const Watching watching(device);
  VKF_CHECK(watch_dispatches(HandleAccess::impl(device), [&](const WatchedTensor& t) -> Status {
    if (t.shape.empty() || t.dtype != DType::kF32 || !t.finished) return {};
    written.push_back({t.label, t.op, t.name, floats_of(t.bytes)});
    return {};
  }));
  VKF_CHECK(session.run(inputs));
  return {};
}

// A difference above `relative` of the larger one's largest value.
bool differ(const Written& a, const Written& b, double relative, LayerDifference& found) {
  double largest = 0;
  for (const float value : a.values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  const size_t count = std::min(a.values.size(), b.values.size());
  for (size_t i = 0; i < count; ++i) {
    const double x = a.values[i], y = b.values[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const bool finite = std::isfinite(x) && std::isfinite(y);
    const double difference = finite ? std::abs(x - y) : INFINITY;
    if (difference <= found.difference) continue;
    found.difference = difference;
    found.element = static_cast<int64_t>(i);
  }
  found.relative = largest > 0 ? found.difference / largest : found.difference;
  return found.relative > relative;
}

}  // namespace

Result<LayerDifference> compare_devices(const Device& first, const Device& second,
                                        const std::string& directory, const TensorMap& inputs,
                                        const CompareOptions& options) {
  return guarded([&]() -> Result<LayerDifference> {
    if (!HandleAccess::impl(first) || !HandleAccess::impl(second)) {
      return invalid_argument("[compare] A device is empty; make both first.");
    }
    VKF_ASSIGN(const Model one, Model::load(first, directory, options.first));
    VKF_ASSIGN(const Model other, Model::load(second, directory, options.second));
    std::vector<Written> a, b;
    VKF_CHECK(record_pass(first, one, inputs, a));
    VKF_CHECK(record_pass(second, other, inputs, b));
    LayerDifference found;
    // The same graph on both sides gives the same tensors in the same order.
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i].label != b[i].label || a[i].name != b[i].name ||
          a[i].values.size() != b[i].values.size()) {
        return invalid_argument("[compare] After " + std::to_string(i) +
                                " tensors the first model writes [" + a[i].name +
                                "] and the second one [" + b[i].name +
                                "]; compare two loads of the same model.");
      }
      LayerDifference here{a[i].label, a[i].op, a[i].name, 0, 0, 0, static_cast<int>(i) + 1};
      if (differ(a[i], b[i], options.relative, here)) return here;
      found.difference = std::max(found.difference, here.difference);
      found.relative = std::max(found.relative, here.relative);
      found.tensors = here.tensors;
    }
    return found;
  });
}

Result<NanOrigin> find_nan(const Device& device, const std::function<Status()>& work) {
  return guarded([&]() -> Result<NanOrigin> {
    if (!HandleAccess::impl(device))
      return invalid_argument("[nan-check] The device is empty; make one first.");
    NanOrigin origin;
    const Watching watching(device);
    VKF_CHECK(watch_dispatches(HandleAccess::impl(device), [&](const WatchedTensor& t) -> Status {
      if (!origin.op.empty() || t.shape.empty() || t.dtype != DType::kF32 || !t.finished) return {};
      const std::vector<float> values = floats_of(t.bytes);
      const auto nan =
          std::find_if(values.begin(), values.end(), [](float value) { return std::isnan(value); });
      if (nan == values.end()) return {};
      origin = {t.op, t.label, std::string(t.kernel), t.name, nan - values.begin()};
      return {};
    }));
    const Status done = work();  // may itself have refused what the NaN did to its result
    if (origin.op.empty() && !done) return done.error();
    return origin;
  });
}

}  // namespace vkformer
