#include "c_api/support.h"
#include "vkformer/conformance.h"
#include "vkformer/vkformer_conformance.h"

using namespace vkformer;

namespace {

ConformanceOptions options_of(const vkf_conformance_options* given) {
  const vkf_conformance_options c = read_struct(given, "conformance options");
  ConformanceOptions options;
  options.extent = c.full != 0 ? ConformanceExtent::kFull : ConformanceExtent::kQuick;
  options.demote = c.demote != 0;
  options.repeats = c.repeats;
  options.filters = read_texts(c.filters, c.filter_count, "filters");
  options.failure_folder = text_or(c.failure_folder, "");
  if (c.progress != nullptr) {
    options.progress = [c](const std::string& name, int done, int all) {
      c.progress(c.progress_data, name.c_str(), done, all);
    };
  }
  return options;
}

}  // namespace

vkf_status vkf_conformance_run(const vkf_device* device, const vkf_conformance_options* options,
                               vkf_bytes** json, size_t* failed, vkf_error* error) {
  return make_handle(json, error, [&] {
    need(device, "device");
    const ConformanceReport report = take(run_conformance(device->device, options_of(options)));
    if (failed != nullptr) *failed = static_cast<size_t>(report.count(ConformanceOutcome::kFailed));
    return bytes_of(conformance_json(report));
  });
}

vkf_status vkf_conformance_page(const char* json, vkf_bytes** html, vkf_error* error) {
  return make_handle(html, error, [&] {
    need(json, "json");
    return bytes_of(conformance_html(take(parse_conformance_json(json))));
  });
}
