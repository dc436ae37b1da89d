// Makes the pipelines of what a session will run while something else goes on: the upload of the
// weights, which takes as long.
#pragma once

#include <atomic>
#include <optional>
#include <thread>

#include "load/loaded_model.h"

namespace vkformer {

class PipelinesAhead {
 public:
  // Starts at once where the device may have threads; else finish() does it. Null sizes: nothing is
  // made. Of the model only what is there before the upload is used.
  PipelinesAhead(const LoadedModel& model, const std::optional<SessionSizes>& sizes);
  // Stops behind the pipelines that are just being made.
  ~PipelinesAhead();
  PipelinesAhead(const PipelinesAhead&) = delete;
  PipelinesAhead& operator=(const PipelinesAhead&) = delete;

  // Waits until all are made. What fails is left for the session to say.
  void finish();

 private:
  void make();
  Status make_all();

  const LoadedModel& model_;
  const std::optional<SessionSizes>& sizes_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace vkformer
