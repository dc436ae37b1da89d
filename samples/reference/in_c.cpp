// The examples in C, which work with handles of their own.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "c/examples.h"
#include "examples.h"

namespace {

using Show = int (*)(const c_setting* setting);

using Subjects = std::vector<std::pair<const char*, Show>>;

const Subjects kSubjects = {
    {"c/attention", show_c_attention}, {"c/conformance", show_c_conformance},
    {"c/device", show_c_device},       {"c/generation", show_c_generation},
    {"c/media", show_c_media},         {"c/model", show_c_model},
    {"c/operators", show_c_operators}, {"c/session", show_c_session},
    {"c/slices", show_c_slices},       {"c/tasks", show_c_tasks},
    {"c/text", show_c_text},           {"c/values", show_c_values},
};

vkformer::Status run(const Subjects& subjects, const Setting& setting) {
  const std::unique_ptr<vkf_error, decltype(&vkf_error_free)> error(vkf_error_create(),
                                                                    vkf_error_free);
  vkf_device* made = nullptr;
  vkf_device_create(nullptr, &made, error.get());
  const std::unique_ptr<vkf_device, decltype(&vkf_device_free)> device(made, vkf_device_free);
  const c_setting in_c = {device.get(),          setting.models.c_str(),  setting.goldens.c_str(),
                          setting.tasks.c_str(), setting.scratch.c_str(), error.get()};
  for (const auto& [name, show] : subjects) {
    const auto example = [&, show = show]() -> vkformer::Status {
      if (show(&in_c) != 0) return {};
      const std::string message = vkf_error_message(error.get());
      if (message.empty()) return expect(false, "the result of the example");
      return vkformer::Error{vkformer::ErrorCode::kInternal, message};
    };
    const vkformer::Status shown = timed(name, example);
    if (!shown) return shown;
  }
  return {};
}

}  // namespace

vkformer::Status show_in_c(const Setting& setting) {
  return run(kSubjects, setting);
}

vkformer::Status show_measurements_in_c(const Setting& setting) {
  return run({{"c/measurements", show_c_measurements}}, setting);
}
