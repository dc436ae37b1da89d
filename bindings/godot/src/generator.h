// VkfGenerator: continues and translates texts. VkfChat: holds a conversation.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "node.h"
#include "text_job.h"

namespace vkf_godot {

class GeneratorNode : public ModelNode {
 public:
  static std::unique_ptr<gd::Class> register_class();

 private:
  friend class ModelNode;
  gd::Variant generate(const gd::Arguments& given);

  std::string prefix_;
  TextSettings settings_;
};

class ChatNode : public ModelNode {
 public:
  static std::unique_ptr<gd::Class> register_class();

 private:
  friend class ModelNode;
  friend class ChatJob;
  gd::Variant say(const gd::Arguments& given);
  gd::Variant clear(const gd::Arguments&);
  gd::Variant get_messages() const;
  void set_messages(const gd::Variant& messages);
  gd::Variant hear(const gd::Arguments& given);

  std::string system_prompt_;
  TextSettings settings_;
  std::vector<std::pair<std::string, std::string>> messages_;  // role, content
};

}  // namespace vkf_godot
