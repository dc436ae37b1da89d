// Fuzz target: chat templates, and rendering with them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "chat/chat_template.h"
#include "json/json_tree.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto set = vkformer::ChatTemplateSet::from_source(source);
  if (!set.ok()) return 0;
  static const auto messages = vkformer::parse_json_tree(
      R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": ["a", 1, null]}])",
      "messages");
  vkformer::ChatOptions options;
  options.now = 0;
  options.variables = R"({"x": 5, "l": [1, 2, 3], "d": {"a": 1}, "s": "text"})";
  const auto text = (*set)->render(*messages, options);
  if (text.ok() && text->size() > (64u << 20)) __builtin_trap();
  return 0;
}
