// Renders parsed templates. Needs: Node, Value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chat/template_tree.h"
#include "chat/value.h"

namespace vkformer::chat {

struct RenderInput {
  std::vector<std::pair<std::string, Value>> variables;
  // What strftime_now() shows, in seconds since 1970; the current time without it.
  std::optional<int64_t> now;
};

// Throws a Fault.
std::string render_template(const Node& root, const RenderInput& input);

}  // namespace vkformer::chat
