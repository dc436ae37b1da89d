#include "generator.h"

namespace vkf_godot {

using gd::Variant;

Variant GeneratorNode::generate(const gd::Arguments& given) {
  submit(std::make_shared<TextJob>(prefix_ + given[0].as_string(), settings_, false));
  return {};
}

std::unique_ptr<gd::Class> GeneratorNode::register_class() {
  using T = GeneratorNode;
  auto c =
      std::make_unique<gd::Class>("VkfGenerator", "Node", [] { return std::make_unique<T>(); });
  register_node<T>(*c);
  c->property<T>(
      "prefix", GDEXTENSION_VARIANT_TYPE_STRING, {}, [](T& self) { return self.prefix_; },
      [](T& self, const Variant& value) { self.prefix_ = value.as_string(); });
  register_text_settings<T>(*c, [](T& self) -> TextSettings& { return self.settings_; });
  c->method("generate", GDEXTENSION_VARIANT_TYPE_NIL, {{"prompt"}}, &T::generate);
  c->signal("token", {{"text"}});
  c->signal("finished", {{"text"}, {"score", GDEXTENSION_VARIANT_TYPE_FLOAT}});
  return c;
}

// The conversation becomes a text by the model's template once the model is there.
class ChatJob : public TextJob {
 public:
  ChatJob(std::vector<std::pair<std::string, std::string>> messages, TextSettings settings)
      : TextJob("", std::move(settings), true), messages_(std::move(messages)) {}

 protected:
  std::string make_inputs() override {
    if (model().chat() == nullptr) {
      return "[" + model().name() +
             "] has no chat template; use VkfGenerator for models that are no chat models.";
    }
    Error error;
    std::vector<vkf_message> messages;
    for (const auto& [role, content] : messages_) {
      messages.push_back({role.c_str(), content.c_str()});
    }
    Bytes text;
    if (vkf_chat_template_render(model().chat(), messages.data(), messages.size(), made(text),
                                 error) != VKF_OK) {
      return error.message();
    }
    prompt_ = vkf_bytes_text(text.get());
    return TextJob::make_inputs();
  }

  void done(const std::string& text, double score) override {
    tell("_answered", {text});
    TextJob::done(text, score);
  }

 private:
  std::vector<std::pair<std::string, std::string>> messages_;
};

Variant ChatNode::say(const gd::Arguments& given) {
  messages_.emplace_back("user", given[0].as_string());
  std::vector<std::pair<std::string, std::string>> all = messages_;
  if (!system_prompt_.empty()) all.insert(all.begin(), {"system", system_prompt_});
  // What the model says becomes part of the conversation.
  const Variant self(owner());
  const Variant hears =
      Variant::make(GDEXTENSION_VARIANT_TYPE_CALLABLE, {self, Variant::string_name("_hear")});
  if (!self.call("is_connected", {Variant::string_name("_answered"), hears}).as_bool()) {
    self.call("connect", {Variant::string_name("_answered"), hears});
  }
  submit(std::make_shared<ChatJob>(std::move(all), settings_));
  return {};
}

Variant ChatNode::hear(const gd::Arguments& given) {
  messages_.emplace_back("assistant", given[0].as_string());
  return {};
}

Variant ChatNode::clear(const gd::Arguments&) {
  messages_.clear();
  return {};
}

Variant ChatNode::get_messages() const {
  const Variant all = Variant::make(GDEXTENSION_VARIANT_TYPE_ARRAY);
  for (const auto& [role, content] : messages_) {
    const Variant message = Variant::make(GDEXTENSION_VARIANT_TYPE_DICTIONARY);
    message.call("set", {"role", role});
    message.call("set", {"content", content});
    all.call("push_back", {message});
  }
  return all;
}

void ChatNode::set_messages(const Variant& messages) {
  messages_.clear();
  const int64_t count = messages.call("size").as_int();
  for (int64_t i = 0; i < count; ++i) {
    const Variant message = messages.call("get", {i});
    if (message.type() != GDEXTENSION_VARIANT_TYPE_DICTIONARY) {
      gd::print_error("[messages] message " + std::to_string(i) +
                      " is no Dictionary; give it the keys role and content.");
      continue;
    }
    messages_.emplace_back(message.call("get", {"role", "user"}).as_string(),
                           message.call("get", {"content", ""}).as_string());
  }
}

std::unique_ptr<gd::Class> ChatNode::register_class() {
  using T = ChatNode;
  auto c = std::make_unique<gd::Class>("VkfChat", "Node", [] { return std::make_unique<T>(); });
  register_node<T>(*c);
  c->property<T>(
      "system_prompt", GDEXTENSION_VARIANT_TYPE_STRING, gd::multiline(),
      [](T& self) { return self.system_prompt_; },
      [](T& self, const Variant& value) { self.system_prompt_ = value.as_string(); });
  c->property<T>(
      "messages", GDEXTENSION_VARIANT_TYPE_ARRAY, {}, [](T& self) { return self.get_messages(); },
      [](T& self, const Variant& value) { self.set_messages(value); });
  register_text_settings<T>(*c, [](T& self) -> TextSettings& { return self.settings_; });
  c->method("say", GDEXTENSION_VARIANT_TYPE_NIL, {{"text"}}, &T::say);
  c->method("clear", GDEXTENSION_VARIANT_TYPE_NIL, {}, &T::clear);
  c->method("_hear", GDEXTENSION_VARIANT_TYPE_NIL, {{"text"}}, &T::hear);
  c->signal("token", {{"text"}});
  c->signal("finished", {{"text"}, {"score", GDEXTENSION_VARIANT_TYPE_FLOAT}});
  c->signal("_answered", {{"text"}});
  return c;
}

}  // namespace vkf_godot
