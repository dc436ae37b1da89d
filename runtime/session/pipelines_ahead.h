// Makes the pipelines of what a session will run while something else goes on: the upload of the
// weights, which takes as long.
#pragma once

#include <functional>
#include <optional>

#include "base/background_task.h"
#include "load/loaded_model.h"
#include "vulkan/pipelines.h"

namespace vkformer {

class PipelinesAhead {
 public:
  // Starts at once where something may run beside the caller; else finish() does it. Null sizes:
  // nothing is made. Of the model only what is there before the upload is used.
  PipelinesAhead(const LoadedModel& model, const std::optional<SessionSizes>& sizes);
  // Stops after the pipelines that are just being made.
  ~PipelinesAhead();
  PipelinesAhead(const PipelinesAhead&) = delete;
  PipelinesAhead& operator=(const PipelinesAhead&) = delete;

  // Waits until all are made, and says several times a second how many are (empty: says nothing);
  // kCancelled where `going_on` gives false. What fails is left for the session to say.
  Status finish(const std::function<bool(size_t made, size_t total)>& going_on);

 private:
  void make(PipelineStore::Caller caller);
  Status make_all(PipelineStore::Caller caller);

  const LoadedModel& model_;
  const std::optional<SessionSizes>& sizes_;
  PipelineCount count_;
  std::optional<BackgroundTask> task_;  // after what it uses
};

}  // namespace vkformer
