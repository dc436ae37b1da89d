#include "server.h"

#include <algorithm>

#include "host.h"

namespace vkf_godot {

using gd::Variant;

Variant Server::step(const gd::Arguments&) {
  Host::get().step();
  return {};
}

std::unique_ptr<gd::Class> Server::register_class() {
  using T = Server;
  auto c = std::make_unique<gd::Class>("VkfServer", "Object", [] { return std::make_unique<T>(); });
  const auto reads = [&](const char* name, gd::Type type, std::function<Variant(T&)> get) {
    c->property<T>(name, type, {}, std::move(get), [](T&, const Variant&) {});
  };
  c->property<T>(
      "frame_budget_ms", GDEXTENSION_VARIANT_TYPE_FLOAT, gd::range("0.1,16,0.1,or_greater"),
      [](T&) { return Host::get().budget_milliseconds; },
      [](T&, const Variant& value) {
        Host::get().budget_milliseconds = std::clamp(value.as_double(), 0.01, 1000.0);
      });
  reads("device_name", GDEXTENSION_VARIANT_TYPE_STRING,
        [](T&) { return Host::get().device_name(); });
  reads("on_engine_device", GDEXTENSION_VARIANT_TYPE_BOOL,
        [](T&) { return Host::get().on_engine_device(); });
  reads("memory_in_use", GDEXTENSION_VARIANT_TYPE_INT,
        [](T&) { return Host::get().memory_in_use(); });
  reads("job_count", GDEXTENSION_VARIANT_TYPE_INT,
        [](T&) { return static_cast<int64_t>(Host::get().jobs()); });
  reads("last_step_ms", GDEXTENSION_VARIANT_TYPE_FLOAT,
        [](T&) { return Host::get().step_milliseconds(); });
  c->method("_step", GDEXTENSION_VARIANT_TYPE_NIL, {}, &T::step);
  return c;
}

}  // namespace vkf_godot
