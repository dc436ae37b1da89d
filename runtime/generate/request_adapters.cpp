#include "generate/request_adapters.h"

#include <algorithm>
#include <cmath>

#include "base/message.h"

namespace vkformer {
namespace {

// The names of all, for a message.
std::string known_adapters(const std::vector<std::string>& names) {
  if (names.empty()) {
    return "it was loaded with none for requests (ModelOptions::request_adapters, "
           "--request-adapter)";
  }
  std::string text = "it was loaded with ";
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "'" : ", '") + names[i] + "'";
  return text;
}

}  // namespace

Result<std::vector<float>> adapter_scales(const LoadedModel& model,
                                          const std::vector<AdapterScale>& chosen) {
  const std::vector<std::string>& names = model.request_adapters();
  std::vector<float> scales(names.size(), 0.0f);
  std::vector<bool> named(names.size());
  for (const AdapterScale& choice : chosen) {
    const auto found = std::find(names.begin(), names.end(), choice.adapter);
    if (found == names.end()) {
      return invalid_argument(message({"[adapters] The model has no adapter '", choice.adapter,
                                       "' for requests: ", known_adapters(names), "."}));
    }
    const auto at = static_cast<size_t>(found - names.begin());
    if (named[at]) {
      return invalid_argument(message(
          {"[adapters] '", choice.adapter, "' is given twice; give each adapter one scale."}));
    }
    if (!std::isfinite(choice.scale)) {
      return invalid_argument(message({"[adapters] The scale of '", choice.adapter, "' is ",
                                       choice.scale, ", but must be a finite number."}));
    }
    named[at] = true;
    scales[at] = choice.scale;
  }
  return scales;
}

}  // namespace vkformer
