// Examples of models and how they are loaded.
#include <vkformer/model.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "examples.h"

namespace {

vkformer::Status show_descriptions(const Setting& setting) {
  const std::string directory = setting.models + "/g2p-en";
  //! [inspect_model]
  // Reads what a model is, without a device.
  const auto described = vkformer::inspect_model(directory);
  if (!described) return described.error();
  std::printf("%s: %lld parameters\n", described->family.c_str(),
              static_cast<long long>(described->parameters));
  //! [end]

  //! [model_families model_family_facts]
  // Lists the families that can be loaded, and which of them write texts.
  for (const std::string& family : vkformer::model_families()) std::puts(family.c_str());
  for (const vkformer::ModelFamilyFacts& facts : vkformer::model_family_facts()) {
    if (facts.generates) std::printf("%s reads %s\n", facts.family.c_str(), facts.inputs.c_str());
  }
  //! [end]

  const vkformer::Device& device = setting.device;
  //! [memory_needs]
  // What a model and a session for 2 texts of 32 tokens will hold, before anything is loaded.
  vkformer::SessionSizes sizes;
  sizes.batch = 2;
  sizes.tokens = 32;
  const auto source = vkformer::ModelSource::directory(directory);
  const auto needs = vkformer::memory_needs(device, source, {}, sizes);
  if (!needs) return needs.error();
  std::printf("%llu bytes, %llu of them weights\n", static_cast<unsigned long long>(needs->total),
              static_cast<unsigned long long>(needs->weights));
  //! [end]
  return expect(needs->total > needs->weights, "memory beside the weights");
}

vkformer::Status show_loading(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  const std::string directory = setting.models + "/g2p-en";
  //! [Model::load Model::info Model::weight_bytes Model::host_weight_bytes]
  // Loads a model directory with weights in half precision.
  vkformer::ModelOptions options;
  options.weights = vkformer::WeightFormat::kF16;
  const auto model = vkformer::Model::load(device, directory, options);
  if (!model) return model.error();
  std::printf("%s: %llu bytes of weights, %llu in host memory\n", model->info().family.c_str(),
              static_cast<unsigned long long>(model->weight_bytes()),
              static_cast<unsigned long long>(model->host_weight_bytes()));
  //! [end]

  //! [Model::plan_text]
  // Prints the dispatches of a pass over 16 tokens.
  vkformer::PlanOptions plan;
  plan.source = 16;
  const auto text = model->plan_text(plan);
  if (!text) return text.error();
  std::printf("%.200s\n", text->c_str());
  //! [end]

  //! [BackgroundLoad::start BackgroundLoad::done BackgroundLoad::progress BackgroundLoad::wait]
  // Loads in a background thread while the application does other things.
  auto load = vkformer::BackgroundLoad::start(device, vkformer::ModelSource::directory(directory));
  while (!load.done()) {
    const vkformer::LoadProgress progress = load.progress();
    std::printf("%llu of %llu bytes\r", static_cast<unsigned long long>(progress.loaded_bytes),
                static_cast<unsigned long long>(progress.total_bytes));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // draw a frame
  }
  const auto loaded = load.wait();
  if (!loaded) return loaded.error();
  //! [end]

  //! [BackgroundLoad::advance]
  // Lets a background load copy weights for half a millisecond of each frame.
  vkformer::ModelOptions paced_options;
  paced_options.paced = true;
  auto paced = vkformer::BackgroundLoad::start(device, vkformer::ModelSource::directory(directory),
                                               paced_options);
  while (!paced.done()) paced.advance(500);  // once a frame
  const auto paced_model = paced.wait();
  if (!paced_model) return paced_model.error();
  //! [end]

  //! [BackgroundLoad::cancel]
  // Gives a load up. A load that had ended already still gives its model.
  auto unwanted =
      vkformer::BackgroundLoad::start(device, vkformer::ModelSource::directory(directory));
  unwanted.cancel();
  const auto rest = unwanted.wait();
  if (!rest && rest.error().code != vkformer::ErrorCode::kCancelled) return rest.error();
  //! [end]
  return expect(loaded->info().family == model->info().family, "the same model twice");
}

}  // namespace

vkformer::Status show_model(const Setting& setting) {
  const auto described = show_descriptions(setting);
  if (!described) return described;
  return show_loading(setting);
}
