#include "chat/chat_template.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "base/message.h"
#include "base/name_list.h"
#include "chat/fault.h"
#include "chat/renderer.h"

namespace vkformer {
namespace {

using chat::Value;

constexpr const char* kDefault = "default";
constexpr const char* kForTools = "tool_use";

// What `make` gives; faults of templates and a want of memory become errors.
template <class Make>
auto within_template(const Make& make) -> Result<decltype(make())> {
  try {
    return make();
  } catch (chat::Fault& fault) {
    return std::move(fault.error);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory, "[chat template] Memory ran out."};
  }
}

// A special token stands as a string or as an object that has it as "content".
const std::string* token_text(const JsonTree& value) {
  if (value.is_string()) return &value.text;
  const JsonTree* content = value.find("content");
  return content != nullptr && content->is_string() ? &content->text : nullptr;
}

Result<Value> json_value(std::string_view text, const std::string& name, bool is_list) {
  VKF_ASSIGN(const JsonTree tree, parse_json_tree(text, name));
  if (is_list ? !tree.is_array() : !tree.is_object()) {
    return invalid_argument(message({"[", name, "] is ", tree.type_name(), "; it must be ",
                                     (is_list ? "an array." : "an object.")}));
  }
  return within_template([&] { return Value::from_json(tree); });
}

}  // namespace

Status ChatTemplateSet::add(const std::string& name, std::string_view source) {
  auto parsed = within_template([&] { return chat::parse_template(source); });
  if (!parsed) return parsed.error();
  templates_.emplace_back(name, std::move(parsed).value());
  return {};
}

void ChatTemplateSet::set_token(const std::string& name, const std::string& value) {
  for (const auto& [known, old] : tokens_) {
    if (known == name) return;
  }
  tokens_.emplace_back(name, Value::string(value));
}

Status ChatTemplateSet::add_special_tokens(std::string_view json, const std::string& label) {
  VKF_ASSIGN(const JsonTree tree, parse_json_tree(json, label));
  for (const auto& [key, value] : tree.members) {
    const std::string* text = key.ends_with("_token") ? token_text(value) : nullptr;
    if (text != nullptr) set_token(key, *text);
  }
  return {};
}

Result<std::unique_ptr<ChatTemplateSet>> ChatTemplateSet::from_source(std::string_view source) {
  auto set = std::make_unique<ChatTemplateSet>();
  VKF_CHECK(set->add(kDefault, source));
  return set;
}

Result<std::unique_ptr<ChatTemplateSet>> ChatTemplateSet::from_config(std::string_view config,
                                                                      const std::string* jinja,
                                                                      const std::string& label) {
  auto set = std::make_unique<ChatTemplateSet>();
  VKF_ASSIGN(const JsonTree tree, parse_json_tree(config, label));
  const JsonTree* given = tree.find("chat_template");
  if (jinja != nullptr) {
    VKF_CHECK(set->add(kDefault, *jinja));
  } else if (given != nullptr && given->is_string()) {
    VKF_CHECK(set->add(kDefault, given->text));
  } else if (given != nullptr && given->is_array()) {
    for (const JsonTree& entry : given->items) {
      const JsonTree* name = entry.find("name");
      const JsonTree* source = entry.find("template");
      if (name == nullptr || source == nullptr || !name->is_string() || !source->is_string()) {
        return invalid_file(message({"[", label,
                                     "] chat_template is a list of objects, each with a name and a "
                                     "template; one of them has not both."}));
      }
      auto added = set->add(name->text, source->text);
      if (!added) return added.error().with_context("Template " + name->text);
    }
  }
  if (set->templates_.empty()) {
    return not_found(
        message({"[", label,
                 "] has no chat_template, and the model has no chat_template.jinja: it was not "
                 "trained to chat, or its template must be given by hand."}));
  }
  VKF_CHECK(set->add_special_tokens(config, label));
  return set;
}

std::vector<std::string> ChatTemplateSet::names() const {
  std::vector<std::string> out;
  for (const auto& [name, parsed] : templates_) out.push_back(name);
  return out;
}

Result<const chat::Node*> ChatTemplateSet::choose(const ChatOptions& options) const {
  const auto find = [&](const std::string& wanted) -> const chat::Node* {
    for (const auto& [name, parsed] : templates_) {
      if (name == wanted) return &parsed;
    }
    return nullptr;
  };
  const chat::Node* found = nullptr;
  if (!options.template_name.empty()) {
    found = find(options.template_name);
  } else {
    if (!options.tools.empty()) found = find(kForTools);
    if (found == nullptr) found = find(kDefault);
    if (found == nullptr && templates_.size() == 1) found = &templates_.front().second;
  }
  if (found != nullptr) return found;
  return not_found(
      message({"[template_name] '", options.template_name, "' is none of the templates (",
               name_list(names()), "); name one of them."}));
}

Result<std::string> ChatTemplateSet::render(const JsonTree& messages,
                                            const ChatOptions& options) const {
  VKF_ASSIGN(const chat::Node* chosen, choose(options));
  chat::RenderInput input;
  input.now = options.now;
  auto& variables = input.variables;
  if (!options.variables.empty()) {
    VKF_ASSIGN(const Value more, json_value(options.variables, "variables", false));
    for (const auto& [key, value] : more.as_dict()) {
      variables.emplace_back(key.as_string(), value);
    }
  }
  Value tools = Value::none();
  Value documents = Value::none();
  if (!options.tools.empty()) {
    VKF_ASSIGN(tools, json_value(options.tools, "tools", true));
  }
  if (!options.documents.empty()) {
    VKF_ASSIGN(documents, json_value(options.documents, "documents", true));
  }
  VKF_ASSIGN(Value conversation, within_template([&] { return Value::from_json(messages); }));
  variables.emplace_back("messages", std::move(conversation));
  variables.emplace_back("tools", std::move(tools));
  variables.emplace_back("documents", std::move(documents));
  variables.emplace_back("add_generation_prompt", Value::boolean(options.add_generation_prompt));
  variables.insert(variables.end(), tokens_.begin(), tokens_.end());
  return within_template([&] { return chat::render_template(*chosen, input); });
}

}  // namespace vkformer
