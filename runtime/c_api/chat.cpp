#include "vkformer/chat.h"
#include "c_api/support.h"

struct vkf_chat_template {
  vkformer::ChatTemplate chat;
};

using namespace vkformer;

vkf_status vkf_chat_template_load(const char* directory, vkf_chat_template** chat_template,
                                  vkf_error* error) {
  return make_handle(chat_template, error, [&] {
    need(directory, "directory");
    return handle(vkf_chat_template{take(ChatTemplate::load(ModelSource::directory(directory)))});
  });
}

vkf_status vkf_chat_template_load_from(const vkf_source* source, vkf_chat_template** chat_template,
                                       vkf_error* error) {
  return make_handle(chat_template, error, [&] {
    need(source, "source");
    return handle(vkf_chat_template{take(ChatTemplate::load(source->source))});
  });
}

vkf_status vkf_chat_template_parse(const char* text, const char* special_tokens,
                                   vkf_chat_template** chat_template, vkf_error* error) {
  return make_handle(chat_template, error, [&] {
    need(text, "text");
    return handle(
        vkf_chat_template{take(ChatTemplate::parse(text, text_or(special_tokens, "{}")))});
  });
}

void vkf_chat_template_free(vkf_chat_template* chat_template) {
  delete chat_template;
}

vkf_status vkf_chat_template_render(const vkf_chat_template* chat_template,
                                    const vkf_message* messages, size_t count, vkf_bytes** text,
                                    vkf_error* error) {
  return make_handle(text, error, [&] {
    need(chat_template, "chat_template");
    if (count != 0) need(messages, "messages");
    std::vector<ChatMessage> copies;
    for (size_t i = 0; i < count; ++i)
      copies.push_back({text_or(messages[i].role, ""), text_or(messages[i].content, "")});
    return bytes_of(chat_template->chat.render(copies));
  });
}
