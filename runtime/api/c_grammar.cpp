#include "api/c_support.h"
#include "vkformer/chat.h"

struct vkf_chat_template {
  vkformer::ChatTemplate chat;
};

using namespace vkformer;

vkf_status vkf_grammar_from_gbnf(const char* text, const char* root, vkf_grammar** grammar,
                                 vkf_error* error) {
  return make_handle(grammar, error, [&] {
    need(text, "text");
    return handle(vkf_grammar{take(Grammar::from_gbnf(text, text_or(root, "root")))});
  });
}

vkf_status vkf_grammar_from_json_schema(const char* schema, vkf_grammar** grammar,
                                        vkf_error* error) {
  return make_handle(grammar, error, [&] {
    need(schema, "schema");
    return handle(vkf_grammar{take(Grammar::from_json_schema(schema))});
  });
}

void vkf_grammar_free(vkf_grammar* grammar) {
  delete grammar;
}

vkf_status vkf_grammar_matches(const vkf_grammar* grammar, const char* text, int32_t* matches,
                               vkf_error* error) {
  return guard(error, [&] {
    need_all({{grammar, "grammar"}, {text, "text"}, {matches, "matches"}});
    *matches = take(grammar->grammar.matches(text)) ? 1 : 0;
  });
}

vkf_status vkf_constraint_create(const vkf_grammar* grammar, const vkf_tokenizer* tokenizer,
                                 int64_t width, vkf_ids ends, vkf_constraint** constraint,
                                 vkf_error* error) {
  return make_handle(constraint, error, [&] {
    need_all({{grammar, "grammar"}, {tokenizer, "tokenizer"}});
    const std::vector<TokenId> ids = read_ids(ends, "end tokens");
    const GrammarVocabulary vocabulary =
        take(GrammarVocabulary::create(*tokenizer->tokenizer, width, ids));
    return handle(vkf_constraint{std::make_shared<GrammarConstraint>(
        take(GrammarConstraint::create(grammar->grammar, vocabulary)))});
  });
}

void vkf_constraint_free(vkf_constraint* constraint) {
  delete constraint;
}

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
