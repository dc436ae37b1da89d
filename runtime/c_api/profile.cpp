// Profiles, tuning and the roofline of the C interface.
#include "c_api/support.h"
#include "vkformer/benchmark.h"
#include "vkformer/tuning.h"

struct vkf_profile {
  vkformer::Profile profile;
};

struct vkf_tune_report {
  vkformer::TuneReport report;
};

using namespace vkformer;

vkf_status vkf_device_tune(const vkf_device* device, const vkf_tune_options* options,
                           vkf_tune_report** report, vkf_error* error) {
  return make_handle(report, error, [&] {
    need(device, "device");
    const vkf_tune_options given = read_struct(options, "tune options");
    TuneOptions read;
    if (given.quick != 0) read.effort = TuneOptions::Effort::kQuick;
    read.ms_per_choice = given.ms_per_choice;
    if (given.least_gain != 0) read.least_gain = given.least_gain;
    return handle(vkf_tune_report{take(tune_device(device->device, read))});
  });
}

size_t vkf_tune_report_count(const vkf_tune_report* report) {
  return report != nullptr ? report->report.choices.size() : 0;
}

vkf_status vkf_tune_report_get(const vkf_tune_report* report, size_t index,
                               vkf_tuned_choice* choice, vkf_error* error) {
  return guard(error, [&] {
    need(report, "report");
    check_index(index, report->report.choices.size(), "choice");
    const TunedChoice& from = report->report.choices[index];
    vkf_tuned_choice c{};
    c.tried = from.tried;
    c.shape = from.shape.c_str();
    c.usual = from.usual.c_str();
    c.winner = from.winner.c_str();
    c.usual_ms = from.usual_ms;
    c.winner_ms = from.winner_ms;
    write_struct(choice, c, "choice");
  });
}

const char* vkf_tune_report_file(const vkf_tune_report* report) {
  return report != nullptr ? report->report.file.c_str() : "";
}

void vkf_tune_report_free(vkf_tune_report* report) {
  delete report;
}

vkf_status vkf_device_roofline(const vkf_device* device, vkf_roofline* roofline, vkf_error* error) {
  return guard(error, [&] {
    need_all({{device, "device"}, {roofline, "roofline"}});
    const Roofline found = take(measure_roofline(device->device));
    vkf_roofline c{};
    c.fma_gflops = found.fma_gflops;
    c.fma_f16_gflops = found.fma_f16_gflops;
    c.units_gflops = found.units_gflops;
    c.fma_int_gops = found.fma_int_gops;
    c.copy_gbytes = found.copy_gbytes;
    c.dispatch_us = found.dispatch_us;
    c.barrier_us = found.barrier_us;
    c.submit_us = found.submit_us;
    write_struct(roofline, c, "roofline");
  });
}

vkf_status vkf_device_start_profile(vkf_device* device, vkf_error* error) {
  return guard(error, [&] {
    need(device, "device");
    take(start_profile(device->device));
  });
}

vkf_status vkf_device_take_profile(vkf_device* device, vkf_profile** profile, vkf_error* error) {
  return make_handle(profile, error, [&] {
    need(device, "device");
    return handle(vkf_profile{take(take_profile(device->device))});
  });
}

vkf_status vkf_device_stop_profile(vkf_device* device, vkf_error* error) {
  return guard(error, [&] {
    need(device, "device");
    take(stop_profile(device->device));
  });
}

size_t vkf_profile_count(const vkf_profile* profile) {
  return profile != nullptr ? profile->profile.dispatches.size() : 0;
}

vkf_status vkf_profile_get(const vkf_profile* profile, size_t index, vkf_dispatch_time* time,
                           vkf_error* error) {
  return guard(error, [&] {
    need(profile, "profile");
    check_index(index, profile->profile.dispatches.size(), "dispatch");
    const ProfiledDispatch& from = profile->profile.dispatches[index];
    vkf_dispatch_time c{};
    c.submit = static_cast<uint32_t>(from.submit);
    c.op = from.op.c_str();
    c.label = from.label.c_str();
    c.kernel = from.kernel.c_str();
    c.shapes = from.shapes.c_str();
    c.start = from.start_us;
    c.microseconds = from.microseconds;
    c.flops = from.flops;
    c.bytes = from.bytes;
    return write_struct(time, c, "dispatch time");
  });
}

void vkf_profile_free(vkf_profile* profile) {
  delete profile;
}
