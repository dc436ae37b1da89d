#include "vkformer/chat.h"

#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "base/message.h"
#include "chat/chat_template.h"
#include "checkpoint/file_store.h"
#include "json/json_tree.h"

namespace vkformer {
namespace {

constexpr const char* kTemplateTooLarge =
    "[chat template] Memory ran out; use a smaller template or fewer messages.";
constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kTemplate = "chat_template.jinja";
constexpr const char* kProcessorTemplate = "chat_template.json";
constexpr const char* kTokens = "special_tokens_map.json";

Result<std::string> read_text(const FileStore& files, const std::string& name) {
  VKF_ASSIGN(const MappedFile file, files.open(name));
  const auto bytes = file.bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// The template that stands apart from tokenizer_config.json, as text or, of processors, in a JSON
// object; none where there is neither.
Result<std::optional<std::string>> read_own_template(const FileStore& files) {
  if (files.has(kTemplate)) {
    VKF_ASSIGN(std::string text, read_text(files, kTemplate));
    return std::optional<std::string>(std::move(text));
  }
  if (!files.has(kProcessorTemplate)) return std::optional<std::string>();
  const std::string label = files.label_of(kProcessorTemplate);
  VKF_ASSIGN(const std::string json, read_text(files, kProcessorTemplate));
  VKF_ASSIGN(const JsonTree tree, parse_json_tree(json, label));
  const JsonTree* found = tree.find("chat_template");
  if (found != nullptr && found->is_string()) return std::optional<std::string>(found->text);
  return invalid_file(message({"[", label,
                               "] has no chat_template that is a text; add one, or "
                               "remove the file."}));
}

}  // namespace

ChatTemplate::ChatTemplate(std::shared_ptr<const ChatTemplateSet> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::load(const ModelSource& source) {
  return guarded(kTemplateTooLarge, [&]() -> Result<ChatTemplate> {
    const FileStore& files = *HandleAccess::impl(source);
    std::string config = "{}";
    VKF_ASSIGN(const std::optional<std::string> own, read_own_template(files));
    if (files.has(kConfig) || !own) {
      VKF_ASSIGN(config, read_text(files, kConfig));
    }
    VKF_ASSIGN(auto set, ChatTemplateSet::from_config(config, own ? &*own : nullptr,
                                                      files.label_of(kConfig)));
    if (files.has(kTokens)) {
      VKF_ASSIGN(const std::string tokens, read_text(files, kTokens));
      VKF_CHECK(set->add_special_tokens(tokens, files.label_of(kTokens)));
    }
    return HandleAccess::make<ChatTemplate>(std::move(set));
  });
}

Result<ChatTemplate> ChatTemplate::parse(std::string_view text, std::string_view special_tokens) {
  return guarded(kTemplateTooLarge, [&]() -> Result<ChatTemplate> {
    VKF_ASSIGN(auto set, ChatTemplateSet::from_source(text));
    VKF_CHECK(set->add_special_tokens(special_tokens, "special_tokens"));
    return HandleAccess::make<ChatTemplate>(std::move(set));
  });
}

Result<std::string> ChatTemplate::render(std::span<const ChatMessage> messages,
                                         const ChatOptions& options) const {
  return guarded(kTemplateTooLarge, [&]() -> Result<std::string> {
    JsonTree list = JsonTree::of_array();
    for (const ChatMessage& message : messages) {
      JsonTree object = JsonTree::of_object();
      object.members.emplace_back("role", JsonTree::of_string(message.role));
      object.members.emplace_back("content", JsonTree::of_string(message.content));
      list.items.push_back(std::move(object));
    }
    return impl_->render(list, options);
  });
}

Result<std::string> ChatTemplate::render_json(std::string_view messages,
                                              const ChatOptions& options) const {
  return guarded(kTemplateTooLarge, [&]() -> Result<std::string> {
    VKF_ASSIGN(const JsonTree list, parse_json_tree(messages, "messages"));
    if (!list.is_array()) {
      return invalid_argument(
          message({"[messages] is ", list.type_name(), "; it must be an array of messages."}));
    }
    return impl_->render(list, options);
  });
}

std::vector<std::string> ChatTemplate::names() const {
  return if_present([&] { return impl_->names(); });
}

}  // namespace vkformer
