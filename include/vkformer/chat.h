// ChatTemplate: a conversation as the text that a model was trained on, by the chat template of its
// tokenizer_config.json, chat_template.jinja or chat_template.json. The templates are Jinja as
// transformers uses it; docs/grammars.md lists what of it is known.
//
// Threading: immutable; any number of threads may render at the same time. Lifetime: owns all it
// needs. Move-only. A template is a small program that a file brings along. It reads nothing but
// what is given to it. One that runs for too long ends with an error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vkformer/export.h"
#include "vkformer/model_source.h"
#include "vkformer/result.h"

namespace vkformer {

class ChatTemplateSet;

struct ChatMessage {
  std::string role;  // "system", "user", "assistant" or what else the template knows
  std::string content;
};

struct ChatOptions {
  // Whether the text ends where the model is to answer.
  bool add_generation_prompt = true;
  // Which of several templates; empty for "tool_use" if there are tools, else "default".
  std::string template_name;
  // Functions that the model may call, as a JSON array in the notation of the template; empty for
  // none.
  std::string tools;
  // Texts to answer from, as a JSON array; empty for none.
  std::string documents;
  // More variables of the template, as a JSON object, such as {"enable_thinking": false}.
  std::string variables;
  // The time that a template may show, in seconds since 1970; the current one if not given.
  std::optional<int64_t> now;
};

class VKFORMER_API ChatTemplate {
 public:
  // Reads a model's chat_template.jinja, else the chat_template.json of its processor, else the
  // templates of its tokenizer_config.json.
  static Result<ChatTemplate> load(const ModelSource& source);
  // One template by its text. `special_tokens` is a JSON object such as {"bos_token": "<s>"}.
  static Result<ChatTemplate> parse(std::string_view text, std::string_view special_tokens = "{}");

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // The text of a conversation. Special tokens are part of it: encode it without adding them again.
  Result<std::string> render(std::span<const ChatMessage> messages,
                             const ChatOptions& options = {}) const;
  // The same for messages as a JSON array of objects, which may have more than role and content:
  // parts of several kinds, calls of tools.
  Result<std::string> render_json(std::string_view messages, const ChatOptions& options = {}) const;

  std::vector<std::string> names() const;

 private:
  friend struct HandleAccess;
  explicit ChatTemplate(std::shared_ptr<const ChatTemplateSet> impl);
  std::shared_ptr<const ChatTemplateSet> impl_;
};

}  // namespace vkformer
