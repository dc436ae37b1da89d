// Log-mel features as a Whisper model's files describe them.
#pragma once

#include "audio/log_mel.h"
#include "checkpoint/file_store.h"
#include "checkpoint/json_config.h"

namespace vkformer {

// What the files say of a feature extractor: preprocessor_config.json or, where there is none, the
// feature_extractor of processor_config.json.
Result<JsonConfig> load_feature_config(const FileStore& files);

// The extraction that load_feature_config describes; an error names the file.
Result<LogMel> load_log_mel(const FileStore& files);

}  // namespace vkformer
