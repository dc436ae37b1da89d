#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "tasks/task_model.h"
#include "vkformer/transcribe.h"

namespace vkformer {
namespace {

constexpr const char* kSoundsTooLarge =
    "The [inputs] of a task do not fit into memory; give fewer, or smaller batches.";

}  // namespace

Result<Transcriber> Transcriber::load(const Device& device, const ModelSource& source,
                                      const TaskOptions& options) {
  return guarded([&]() -> Result<Transcriber> {
    VKF_ASSIGN(std::unique_ptr<TaskModel> model,
               load_task_model(device, source, TaskKind::kTranscribe, options));
    return HandleAccess::make<Transcriber>(std::move(model));
  });
}

Result<std::vector<std::string>> Transcriber::transcribe(std::span<const Sound> sounds,
                                                         const TranscribeOptions& options) {
  return guarded(kSoundsTooLarge, [&]() -> Result<std::vector<std::string>> {
    VKF_ASSIGN(std::vector<Transcript> made,
               transcribe_sounds(*impl_, sounds, options, WordTimes::kNo));
    std::vector<std::string> texts;
    for (Transcript& transcript : made) texts.push_back(std::move(transcript.text));
    return texts;
  });
}

Result<std::vector<Transcript>> Transcriber::transcribe_words(std::span<const Sound> sounds,
                                                              const TranscribeOptions& options) {
  return guarded(kSoundsTooLarge,
                 [&] { return transcribe_sounds(*impl_, sounds, options, WordTimes::kYes); });
}

}  // namespace vkformer
