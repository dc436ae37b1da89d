// Templates cut into text and tokens. White space is controlled as transformers sets Jinja up:
// trim_blocks and lstrip_blocks on, one line break at the end taken off. Needs: nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vkformer::chat {

struct Token {
  enum class Kind : uint8_t {
    kText,         // between tags
    kOutputBegin,  // {{
    kOutputEnd,
    kBlockBegin,  // {%
    kBlockEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,
    kEnd,  // of the template
  };
  Kind kind = Kind::kEnd;
  std::string text;  // of strings, what they stand for
  int line = 1;
};

// The last token is kEnd. Throws a Fault.
std::vector<Token> cut_template(std::string_view source);

}  // namespace vkformer::chat
