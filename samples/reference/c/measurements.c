/* Examples of measurements, which take seconds and want the device for themselves. */
#include <stdio.h>

#include "examples.h"

static int show_roofline(const vkf_device* device, vkf_error* error) {
  //! [vkf_device_roofline]
  // Measures what the device does at best. Nothing else should use it meanwhile.
  vkf_roofline roofline = {.struct_size = sizeof roofline};
  const int ok = vkf_device_roofline(device, &roofline, error) == VKF_OK;
  if (ok) printf("%.0f GFLOPS, %.0f GB/s\n", roofline.fma_gflops, roofline.copy_gbytes);
  //! [end]
  return ok && roofline.copy_gbytes > 0;
}

static int show_tuner(const vkf_device* device, vkf_error* error) {
  //! [vkf_device_tune vkf_tune_report_count vkf_tune_report_get vkf_tune_report_file]
  //! [vkf_tune_report_free]
  // Takes a first look at which kernels are fastest here; without `quick` it takes minutes.
  const vkf_tune_options options = {
      .struct_size = sizeof options, .quick = 1, .ms_per_choice = 0.01};
  vkf_tune_report* report = NULL;
  int ok = vkf_device_tune(device, &options, &report, error) == VKF_OK;
  for (size_t i = 0; ok && i < vkf_tune_report_count(report); ++i) {
    vkf_tuned_choice choice = {.struct_size = sizeof choice};
    ok = vkf_tune_report_get(report, i, &choice, error) == VKF_OK;
    if (ok) printf("%s: %s in place of %s\n", choice.shape, choice.winner, choice.usual);
  }
  if (ok) printf("stored in [%s]\n", vkf_tune_report_file(report));
  vkf_tune_report_free(report);
  //! [end]
  return ok;
}

int show_c_measurements(const c_setting* setting) {
  /* Without a file of the user's that the tuner would replace, and at the tier of fewest kernels.
   */
  const vkf_device_options few = {
      .struct_size = sizeof few, .tier = "baseline", .cache_directory = "none"};
  vkf_device* device = NULL;
  const int ok = vkf_device_create(&few, &device, setting->error) == VKF_OK &&
                 show_roofline(device, setting->error) && show_tuner(device, setting->error);
  vkf_device_free(device);
  return ok;
}
