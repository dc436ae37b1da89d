// ChatTemplateSet: the chat templates of a model and its special tokens. Needs: Node, Result.
//
// Threading: immutable.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/template_tree.h"
#include "json/json_tree.h"
#include "vkformer/chat.h"
#include "vkformer/result.h"

namespace vkformer {

class ChatTemplateSet {
 public:
  // Reads "chat_template" (a string, or a list of named ones) and the special tokens of
  // tokenizer_config.json. `jinja`, the content of chat_template.jinja, comes before it if given.
  static Result<std::unique_ptr<ChatTemplateSet>> from_config(std::string_view config,
                                                              const std::string* jinja,
                                                              const std::string& label);
  // One template.
  static Result<std::unique_ptr<ChatTemplateSet>> from_source(std::string_view source);

  // Names and values of special tokens that the set does not have yet, from a JSON object.
  Status add_special_tokens(std::string_view json, const std::string& label);
  void set_token(const std::string& name, const std::string& value);
  std::vector<std::string> names() const;

  // `messages` is a list of objects.
  Result<std::string> render(const JsonTree& messages, const ChatOptions& options) const;

 private:
  Status add(const std::string& name, std::string_view source);
  Result<const chat::Node*> choose(const ChatOptions& options) const;

  std::vector<std::pair<std::string, chat::Node>> templates_;
  std::vector<std::pair<std::string, chat::Value>> tokens_;
};

}  // namespace vkformer
