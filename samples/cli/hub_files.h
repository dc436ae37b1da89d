// Which files of a model on a hub are downloaded.
#pragma once

#include <string>
#include <vector>

#include "hub_cache.h"

namespace vkformer::cli {

// Which of a model's files vkformer can use: its configuration, tokenizer, processors, templates
// and weights, or one file of them. An error names `name`.
Result<std::vector<std::string>> choose_hub_files(const HubName& name,
                                                  const std::vector<std::string>& files);

}  // namespace vkformer::cli
