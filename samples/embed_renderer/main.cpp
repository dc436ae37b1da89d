// Hands a renderer's own Vulkan device to vkformer and runs a model on it.
//
//   embed_renderer models/g2p-en attention is all you need
//
// The renderer submits to the same queue, so vkformer takes the renderer's lock around its submits.
// VKFORMER_SAMPLE_DEVICE, a part of a device's name, chooses among several devices.
#include <vkformer/session.h>
#include <vkformer/tokenizer.h>
#include <vkformer/vulkan_interop.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "vulkan_host.h"

namespace {

// What the renderer keeps beside its device.
struct Renderer {
  VulkanHost vulkan;
  std::mutex queue_mutex;
  int model_submits = 0;  // under queue_mutex
};

vkformer::Result<vkformer::Device> hand_over(Renderer& renderer) {
  vkformer::AdoptedDevice adopted;
  adopted.get_instance_proc_addr = renderer.vulkan.get_instance_proc_addr();
  adopted.instance = renderer.vulkan.instance();
  adopted.physical_device = renderer.vulkan.physical_device();
  adopted.device = renderer.vulkan.device();
  adopted.queue_family = renderer.vulkan.queue_family();
  adopted.queue = renderer.vulkan.queue();
  adopted.api_version = renderer.vulkan.api_version();
  adopted.queue_lock = [&renderer] {
    renderer.queue_mutex.lock();
    ++renderer.model_submits;
  };
  adopted.queue_unlock = [&renderer] { renderer.queue_mutex.unlock(); };
  return vkformer::adopt_device(adopted);
}

int fail(const vkformer::Error& error) {
  std::fprintf(stderr, "embed_renderer: %s\n", error.message.c_str());
  return 1;
}

// Everything of vkformer lives and ends in here, before the renderer's device does.
int run_model(Renderer& renderer, const char* directory, std::vector<std::string> words) {
  const auto device = hand_over(renderer);
  if (!device) return fail(device.error());
  const auto tokenizer = vkformer::Tokenizer::load(directory);
  if (!tokenizer) return fail(tokenizer.error());
  const auto model = vkformer::Model::load(*device, directory);
  if (!model) return fail(model.error());
  auto session = vkformer::Session::create(*model);
  if (!session) return fail(session.error());
  std::printf("on %s, adopted, tier %s\n", device->info().name.c_str(), device->tier().c_str());
  for (const std::string& word : words) {
    const auto encoding = tokenizer->encode(word);
    if (!encoding) return fail(encoding.error());
    const auto generation = session->generate({{encoding->ids.begin(), encoding->ids.end()}},
                                              session->generation_defaults());
    if (!generation) return fail(generation.error());
    const std::vector<int64_t>& ids = generation->front().front().ids;
    const auto text = tokenizer->decode(std::vector<int32_t>(ids.begin(), ids.end()));
    if (!text) return fail(text.error());
    std::printf("%s\t%s\n", word.c_str(), text->c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: embed_renderer MODEL WORD...\n");
    return 2;
  }
  const char* wanted = std::getenv("VKFORMER_SAMPLE_DEVICE");
  std::string problem;
  auto host = VulkanHost::create(wanted != nullptr ? wanted : "", problem);
  if (!host) {
    std::fprintf(stderr, "embed_renderer: %s.\n", problem.c_str());
    return 1;
  }
  Renderer renderer{std::move(*host), {}, 0};
  const int code = run_model(renderer, argv[1], {argv + 2, argv + argc});
  renderer.vulkan.wait_idle();
  if (code == 0) std::printf("%d submits through the renderer's lock\n", renderer.model_submits);
  return code;
}
