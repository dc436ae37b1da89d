// Examples of sessions that work within the budget of a frame.
#include <vkformer/frame_scheduler.h>
#include <vkformer/session.h>

#include <cstdio>

#include "examples.h"

using vkformer::Tensor;

namespace {

vkformer::Status show_preparing(vkformer::Session& session) {
  vkformer::SessionSizes sizes;
  sizes.tokens = 8;
  //! [Session::warm_up Session::warmed_up Session::finish_warm_up]
  // Prepares passes over 8 tokens while frames go on, then waits for the rest.
  const auto begun = session.warm_up(sizes);
  if (!begun) return begun.error();
  const auto part = session.warmed_up();  // once a frame
  if (!part) return part.error();
  std::printf("%.0f %% prepared\n", 100 * *part);
  const auto ready = session.finish_warm_up();
  if (!ready) return ready.error();
  //! [end]

  //! [Session::estimate]
  // How many frames a pass takes if each gives it half a millisecond of GPU time.
  const auto estimate = session.estimate(sizes, 500);
  if (!estimate) return estimate.error();
  std::printf("%lld frames\n", static_cast<long long>(estimate->frames));
  //! [end]
  return expect(estimate->frames > 0, "at least one frame");
}

vkformer::Status show_advancing(vkformer::Session& session) {
  const vkformer::TensorMap inputs = {{"input_ids", Tensor::from_ints({1, 4}, {1, 5, 7, 2})}};
  //! [Session::start Session::advance Session::finish Advance::more_to_submit]
  // Runs a pass in slices of half a millisecond, one in each frame.
  const auto started = session.start(inputs);
  if (!started) return started.error();
  vkformer::Advance advance;
  while (advance.more_to_submit()) {
    const auto slice = session.advance(500);  // once a frame
    if (!slice) return slice.error();
    advance = *slice;
  }
  const auto outputs = session.finish();
  if (!outputs) return outputs.error();
  //! [end]

  //! [Session::start_generation Session::finish_generation]
  // Generates 4 tokens in slices.
  vkformer::GenerateOptions options = session.generation_defaults();
  options.max_new_tokens = 4;
  const auto begun = session.start_generation(inputs, options);
  if (!begun) return begun.error();
  vkformer::Advance steps;
  while (steps.more_to_submit()) {
    const auto slice = session.advance(500);  // once a frame
    if (!slice) return slice.error();
    steps = *slice;
  }
  const auto generation = session.finish_generation();
  if (!generation) return generation.error();
  //! [end]

  //! [Session::cancel]
  // Gives up what was started, as when a scene ends.
  const auto unwanted = session.start(inputs);
  if (!unwanted) return unwanted.error();
  const auto canceled = session.cancel();
  if (!canceled) return canceled.error();
  //! [end]
  return expect(!generation->front().front().ids.empty(), "tokens");
}

vkformer::Status show_scheduler(vkformer::Session& first, vkformer::Session& second) {
  const vkformer::TensorMap inputs = {{"input_ids", Tensor::from_ints({1, 4}, {1, 5, 7, 2})}};
  //! [FrameScheduler::add FrameScheduler::advance FrameScheduler::jobs FrameScheduler::remove]
  // Two sessions share a millisecond of each frame; the second one is given up.
  const auto first_started = first.start(inputs);
  if (!first_started) return first_started.error();
  const auto second_started = second.start(inputs);
  if (!second_started) return second_started.error();
  vkformer::FrameScheduler scheduler;
  const auto job = scheduler.add(first);
  if (!job) return job.error();
  const auto unwanted = scheduler.add(second);
  if (!unwanted) return unwanted.error();
  scheduler.remove(*unwanted);
  while (scheduler.jobs() > 0) {
    const auto frame = scheduler.advance(1000);
    if (!frame) return frame.error();
  }
  const auto outputs = first.finish();
  if (!outputs) return outputs.error();
  //! [end]
  return second.cancel();
}

}  // namespace

vkformer::Status show_slices(const Setting& setting) {
  const auto model = vkformer::Model::load(setting.device, setting.models + "/shakespeare");
  if (!model) return model.error();
  auto session = vkformer::Session::create(*model);
  if (!session) return session.error();
  auto second = vkformer::Session::create(*model);
  if (!second) return second.error();
  const auto prepared = show_preparing(*session);
  if (!prepared) return prepared;
  const auto advanced = show_advancing(*session);
  if (!advanced) return advanced;
  return show_scheduler(*session, *second);
}
