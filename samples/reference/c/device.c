/* Examples of devices: lists, groups and profiles. */
#include <stdio.h>

#include "examples.h"

static int show_list(vkf_error* error) {
  //! [vkf_devices_list vkf_devices_count vkf_devices_get vkf_devices_free]
  // Lists the Vulkan devices of this machine.
  vkf_devices* devices = NULL;
  int ok = vkf_devices_list(&devices, error) == VKF_OK;
  for (size_t i = 0; ok && i < vkf_devices_count(devices); ++i) {
    vkf_device_info info = {.struct_size = sizeof info};
    ok = vkf_devices_get(devices, i, &info, error) == VKF_OK;
    if (ok) printf("%d: %s, driver %s\n", info.index, info.name, info.driver);
  }
  vkf_devices_free(devices);
  //! [end]
  return ok;
}

static int show_own_device(vkf_error* error) {
  //! [vkf_device_create vkf_device_get_info vkf_device_tier vkf_device_free]
  // Opens the best device, without a cache of pipelines, and says which one it is.
  const vkf_device_options options = {.struct_size = sizeof options, .cache_directory = "none"};
  vkf_device* device = NULL;
  vkf_device_info info = {.struct_size = sizeof info};
  const int ok = vkf_device_create(&options, &device, error) == VKF_OK &&
                 vkf_device_get_info(device, &info, error) == VKF_OK;
  if (ok) printf("%s, tier %s\n", info.name, vkf_device_tier(device));
  vkf_device_free(device);
  //! [end]
  return ok;
}

static int show_memory(const vkf_device* device) {
  //! [vkf_device_memory_in_use vkf_device_memory_allocated]
  // How much device memory vkformer holds, in bytes.
  const unsigned long long used = vkf_device_memory_in_use(device);
  const unsigned long long allocated = vkf_device_memory_allocated(device);
  printf("%llu of %llu bytes allocated are in use\n", used, allocated);
  //! [end]
  return used <= allocated;
}

static int show_group(const vkf_device* device, const char* directory, vkf_error* error) {
  //! [vkf_device_group_create vkf_device_group_free vkf_model_group_plan]
  // Loads a model onto two devices, here the same one twice, and prints which layers each has.
  const vkf_device* const members[2] = {device, device};
  const double shares[2] = {2, 1};
  vkf_device_group* group = NULL;
  vkf_model* model = NULL;
  vkf_bytes* plan = NULL;
  vkf_model_options options = {.struct_size = sizeof options};
  int ok = vkf_device_group_create(members, 2, shares, 0, &group, error) == VKF_OK;
  options.group = group;
  ok = ok && vkf_model_load(device, directory, &options, &model, error) == VKF_OK &&
       vkf_model_group_plan(model, &plan, error) == VKF_OK;
  if (ok) printf("%s", vkf_bytes_text(plan));
  vkf_bytes_free(plan);
  vkf_model_free(model);
  vkf_device_group_free(group);
  //! [end]
  return ok;
}

static int show_divided_group(const vkf_device* device, const char* directory, vkf_error* error) {
  //! [vkf_device_group_create_divided]
  // Divides every layer between two devices of one kind.
  const vkf_device* const members[2] = {device, device};
  vkf_device_group* group = NULL;
  vkf_model* model = NULL;
  vkf_model_options options = {.struct_size = sizeof options};
  int ok = vkf_device_group_create_divided(members, 2, 0, &group, error) == VKF_OK;
  options.group = group;
  ok = ok && vkf_model_load(device, directory, &options, &model, error) == VKF_OK;
  vkf_model_free(model);
  vkf_device_group_free(group);
  //! [end]
  return ok;
}

static int show_fastest_group(const vkf_device* device, const char* directory, vkf_error* error) {
  //! [vkf_device_group_create_fastest]
  // Lets an estimate choose how two devices share the model.
  const vkf_device* const members[2] = {device, device};
  vkf_device_group* group = NULL;
  vkf_model* model = NULL;
  vkf_model_options options = {.struct_size = sizeof options};
  int ok = vkf_device_group_create_fastest(members, 2, 0, &group, error) == VKF_OK;
  options.group = group;
  ok = ok && vkf_model_load(device, directory, &options, &model, error) == VKF_OK;
  vkf_model_free(model);
  vkf_device_group_free(group);
  //! [end]
  return ok;
}

static int show_profile(vkf_device* device, vkf_task* task, vkf_error* error) {
  //! [vkf_device_start_profile vkf_device_take_profile vkf_device_stop_profile vkf_profile_count]
  //! [vkf_profile_get vkf_profile_free]
  // Prints what each dispatch of a generation takes.
  const char* const word = "attention";
  vkf_findings* findings = NULL;
  vkf_profile* profile = NULL;
  int ok = vkf_device_start_profile(device, error) == VKF_OK &&
           vkf_task_generate(task, &word, 1, NULL, &findings, error) == VKF_OK &&
           vkf_device_take_profile(device, &profile, error) == VKF_OK &&
           vkf_device_stop_profile(device, error) == VKF_OK;
  for (size_t i = 0; ok && i < vkf_profile_count(profile); ++i) {
    vkf_dispatch_time time = {.struct_size = sizeof time};
    ok = vkf_profile_get(profile, i, &time, error) == VKF_OK;
    if (ok) printf("%s %s: %.1f us\n", time.label, time.kernel, time.microseconds);
  }
  vkf_profile_free(profile);
  vkf_findings_free(findings);
  //! [end]
  return ok;
}

int show_c_device(const c_setting* setting) {
  char directory[PATH_BYTES];
  vkf_error* error = setting->error;
  vkf_device* own = NULL;
  vkf_task* task = NULL;
  path_in(directory, setting->models, "g2p-en");
  const int ok =
      show_list(error) && show_own_device(error) && show_memory(setting->device) &&
      vkf_device_create(NULL, &own, error) == VKF_OK &&
      vkf_task_load(own, directory, "generate", NULL, &task, error) == VKF_OK &&
      show_profile(own, task, error) &&
      show_group(setting->device, path_in(directory, setting->models, "shakespeare"), error) &&
      show_divided_group(setting->device, directory, error) &&
      show_fastest_group(setting->device, directory, error);
  vkf_task_free(task);
  vkf_device_free(own);
  return ok;
}
