// Log-mel features as a Whisper model's files describe them.
#pragma once

#include "audio/log_mel.h"
#include "checkpoint/file_store.h"

namespace vkformer {

// The extraction that preprocessor_config.json or, where there is none, the feature_extractor of
// processor_config.json describes; an error names the file.
Result<LogMel> load_log_mel(const FileStore& files);

}  // namespace vkformer
