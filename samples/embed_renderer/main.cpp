// A renderer with a crowd of talking heads that hands its own Vulkan device to vkformer. A
// Transformer spells words out in phonemes. It does so in slices of the renderer's frames, and the
// lips follow.
//
//   embed_renderer models/g2p-en --gif crowd.gif
//
// README.md beside this file has more.
#include <vkformer/vulkan_interop.h>

#include <cstdio>
#include <cstdlib>

#include "show.h"

namespace sample {
namespace {

int fail(const vkformer::Error& error) {
  std::fprintf(stderr, "embed_renderer: %s\n", error.message.c_str());
  return 1;
}

vkformer::Result<vkformer::Device> hand_over(const VulkanHost& host) {
  vkformer::AdoptedDevice adopted;
  adopted.get_instance_proc_addr = host.get_instance_proc_addr();
  adopted.instance = host.instance();
  adopted.physical_device = host.physical_device();
  adopted.device = host.device();
  adopted.queue_family = host.queue_family();
  adopted.queue = host.queue();
  adopted.api_version = host.api_version();
  adopted.enabled_features = host.enabled_features();
  adopted.enabled_extensions = host.enabled_extensions();
  // One thread does all submits here; where there are more, queue_lock and queue_unlock come in.
  return vkformer::adopt_device(adopted);
}

// Everything of vkformer lives and ends in here, before the renderer's device does.
int run_show(const VulkanHost& host, const Options& options, Window* window) {
  const auto device = hand_over(host);
  if (!device) return fail(device.error());
  auto show = Show::create(host, *device, options, window);
  if (!show) return fail(show.error());
  std::printf("on %s, adopted, tier %s\n", device->info().name.c_str(),
              vkformer::choice_name(device->tier()));
  const vkformer::Status status = show->run();
  host.wait_idle();
  if (!status) return fail(status.error());
  show->print_summary();
  return 0;
}

int run(int argc, char** argv) {
  int exit_code = 0;
  auto options = read_options(argc, argv, exit_code);
  if (!options) return exit_code;
  std::unique_ptr<Window> window;
  HostOptions host_options;
  host_options.device = options->device;
  if (options->window) {
    auto opened = Window::open(options->width, options->height);
    if (!opened) return fail(opened.error());
    window = std::move(*opened);
    host_options.instance_extensions = window->instance_extensions();
    host_options.device_extensions = window->device_extensions();
  }
  const auto host = VulkanHost::create(host_options);
  if (!host) return fail(host.error());
  if (window != nullptr) {
    if (auto status = window->attach(*host); !status) {
      window->release();
      return fail(status.error());
    }
  }
  const int code = run_show(*host, *options, window.get());
  if (window != nullptr) window->release();
  return code;
}

}  // namespace
}  // namespace sample

int main(int argc, char** argv) {
  return sample::run(argc, argv);
}
