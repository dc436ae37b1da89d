// What a packed model holds, as text and JSON.
#pragma once

#include "output.h"
#include "vkformer/model_pack.h"

namespace vkformer::cli {

// Whether a path is a file that begins as a packed model does.
bool is_pack(const std::string& path);
Json pack_json(const PackInfo& info);
void print_pack(const PackInfo& info);

}  // namespace vkformer::cli
