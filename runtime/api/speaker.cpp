#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "tasks/task_model.h"
#include "vkformer/speak.h"

namespace vkformer {

Result<Speaker> Speaker::load(const Device& device, const ModelSource& source,
                              const TaskOptions& options) {
  return guarded([&]() -> Result<Speaker> {
    VKF_ASSIGN(std::unique_ptr<TaskModel> model,
               load_task_model(device, source, TaskKind::kSpeak, options));
    return HandleAccess::make<Speaker>(std::move(model));
  });
}

Result<std::vector<Sound>> Speaker::speak(std::span<const std::string> texts,
                                          const SpeakOptions& options) {
  return guarded("The speech does not fit into memory; give shorter [texts].",
                 [&] { return speak_texts(*impl_, texts, options); });
}

}  // namespace vkformer
