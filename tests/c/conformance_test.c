/* The conformance library from C: a few checks, the report, its page, and what is refused. */
#include <vkformer/vkformer_conformance.h>

#include "check.h"

static void count(void* data, const char* name, int32_t done, int32_t all) {
  int32_t* seen = data;
  if (name != NULL && name[0] != 0 && done <= all) ++*seen;
}

int main(void) {
  const char* filters[2] = {"softmax/causal", "layer_norm"};
  vkf_error* error = vkf_error_create();
  vkf_device_options made = {0};
  vkf_conformance_options options = {0};
  vkf_roofline roofline = {0};
  vkf_device* device = NULL;
  vkf_bytes* json = NULL;
  vkf_bytes* html = NULL;
  size_t failed = 1;
  int32_t seen = 0;
  made.struct_size = sizeof made;
  made.cache_directory = "none";
  OK(vkf_device_create(&made, &device, error));
  options.struct_size = sizeof options;
  options.filters = filters;
  options.filter_count = 2;
  options.repeats = 2;
  options.progress = count;
  options.progress_data = &seen;
  OK(vkf_conformance_run(device, &options, &json, &failed, error));
  CHECK(failed == 0 && seen > 10);
  CHECK(strstr(vkf_bytes_text(json), "softmax/causal") != NULL);
  OK(vkf_conformance_page(vkf_bytes_text(json), &html, error));
  CHECK(strstr(vkf_bytes_text(html), "<html") != NULL);
  vkf_bytes_free(html);
  vkf_bytes_free(json);
  FAILS(vkf_conformance_run(NULL, NULL, &json, NULL, error), VKF_INVALID_ARGUMENT, "device");
  FAILS(vkf_conformance_page("{}", &html, error), VKF_INVALID_FILE, "conformance");
  options.repeats = -1;
  FAILS(vkf_conformance_run(device, &options, &json, NULL, error), VKF_INVALID_ARGUMENT, "-1");
  roofline.struct_size = sizeof roofline;
  OK(vkf_device_roofline(device, &roofline, error));
  CHECK(roofline.fma_gflops > 0 && roofline.copy_gbytes > 0 && roofline.submit_us > 0);
  vkf_device_free(device);
  vkf_error_free(error);
  return summary("conformance_test");
}
