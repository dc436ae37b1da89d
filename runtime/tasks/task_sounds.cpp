#include "audio/log_mel_settings.h"
#include "base/guarded.h"
#include "tasks/task_model.h"

namespace vkformer {

Result<LogMel> load_task_sounds(const FileStore& files) {
  return guarded([&] { return load_log_mel(files); });
}

Result<UtteranceMel> load_task_utterances(const FileStore& files) {
  return guarded([&] { return load_utterance_mel(files); });
}

Result<WaveformSettings> load_task_waveform(const FileStore& files) {
  return guarded([&] { return load_waveform_settings(files); });
}

}  // namespace vkformer
