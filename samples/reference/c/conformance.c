/* Examples of conformance reports. */
#include <stdio.h>
#include <vkformer/vkformer_conformance.h>

#include "examples.h"

int show_c_conformance(const c_setting* setting) {
  const vkf_device* device = setting->device;
  vkf_error* error = setting->error;
  //! [vkf_conformance_run vkf_conformance_page]
  // Checks one operator against its reference, and makes a page of the report. Without filters,
  // all operators are checked.
  const char* const filter = "softmax/plain";
  const vkf_conformance_options options = {
      .struct_size = sizeof options, .filters = &filter, .filter_count = 1};
  size_t failed = 0;
  vkf_bytes* json = NULL;
  vkf_bytes* page = NULL;
  const int ok = vkf_conformance_run(device, &options, &json, &failed, error) == VKF_OK &&
                 vkf_conformance_page(vkf_bytes_text(json), &page, error) == VKF_OK;
  printf("%zu failed; a page of %zu bytes\n", failed, vkf_bytes_size(page));
  vkf_bytes_free(page);
  vkf_bytes_free(json);
  //! [end]
  return ok && failed == 0;
}
