// Examples of grammars, chat templates and stop strings.
#include <vkformer/chat.h>
#include <vkformer/grammar.h>
#include <vkformer/stop_strings.h>
#include <vkformer/tokenizer.h>

#include <cstdio>

#include "examples.h"

namespace {

vkformer::Status show_matching() {
  //! [Grammar::from_gbnf Grammar::from_json_schema Grammar::any_json Grammar::matches]
  // Checks texts against a grammar, a JSON schema, and JSON in general.
  const auto answer = vkformer::Grammar::from_gbnf(R"(root ::= "yes" | "no")");
  if (!answer) return answer.error();
  const auto number = vkformer::Grammar::from_json_schema(R"({"type": "integer"})");
  if (!number) return number.error();
  const auto json = vkformer::Grammar::any_json();
  if (!json) return json.error();
  for (const auto& [grammar, text] :
       {std::pair{*answer, "yes"}, std::pair{*number, "7"}, std::pair{*json, "{\"a\": [1]}"}}) {
    const auto matches = grammar.matches(text);
    if (!matches) return matches.error();
    std::printf("%s: %s\n", text, *matches ? "allowed" : "refused");
  }
  //! [end]
  return {};
}

vkformer::Status show_constraint(const vkformer::Tokenizer& tokenizer) {
  const auto answer = vkformer::Grammar::from_gbnf(R"(root ::= "yes" | "no")");
  if (!answer) return answer.error();
  const vkformer::Grammar& grammar = *answer;
  //! [GrammarVocabulary::create GrammarConstraint::create GrammarConstraint::start]
  //! [GrammarConstraint::allowed]
  // Which tokens a text may begin with; token 0 is where it may end.
  const std::vector<vkformer::TokenId> ends = {0};
  const auto width = static_cast<int64_t>(tokenizer.vocab_size());
  const auto vocabulary = vkformer::GrammarVocabulary::create(tokenizer, width, ends);
  if (!vocabulary) return vocabulary.error();
  auto constraint = vkformer::GrammarConstraint::create(grammar, *vocabulary);
  if (!constraint) return constraint.error();
  const vkformer::GrammarState state = constraint->start();
  const auto allowed = constraint->allowed(state);
  if (!allowed) return allowed.error();
  for (int64_t token = 0; token < width; ++token) {
    if (((*allowed)[token / 32] >> (token % 32) & 1) != 0) std::printf("token %d\n", int(token));
  }
  //! [end]
  return expect(!allowed->empty(), "bits");
}

vkformer::Status show_states() {
  //! [GrammarVocabulary::from_bytes GrammarConstraint::accept GrammarState::has_ended]
  // Follows the tokens of a text to its end. Token 0 ends a text and adds no bytes.
  const std::vector<std::string> tokens = {"", "y", "es", "no"};
  const std::vector<vkformer::TokenId> ends = {0};
  const auto grammar = vkformer::Grammar::from_gbnf(R"(root ::= "yes" | "no")");
  if (!grammar) return grammar.error();
  const auto vocabulary = vkformer::GrammarVocabulary::from_bytes(tokens, ends);
  if (!vocabulary) return vocabulary.error();
  auto constraint = vkformer::GrammarConstraint::create(*grammar, *vocabulary);
  if (!constraint) return constraint.error();
  vkformer::GrammarState state = constraint->start();
  for (const vkformer::TokenId token : {1, 2, 0}) {
    const auto next = constraint->accept(state, token);
    if (!next) return next.error();
    state = *next;
  }
  if (state.has_ended()) std::puts("complete");
  //! [end]

  //! [GrammarConstraint::accept_text GrammarConstraint::allowed_within GrammarState::may_end]
  // After "no", which no tokens brought, the text may end, and must where no token may follow.
  const auto after = constraint->accept_text(constraint->start(), "no");
  if (!after) return after.error();
  if (after->may_end()) std::puts("may end");
  const auto last = constraint->allowed_within(*after, 0);
  if (!last) return last.error();
  //! [end]
  return expect(state.has_ended() && ((*last)[0] & 1) == 1, "the end");
}

vkformer::Status show_chat(const vkformer::ModelSource& source) {
  //! [ChatTemplate::load ChatTemplate::names ChatTemplate::render]
  // Writes a conversation as the text that a model continues, by the template of its directory.
  const auto chat = vkformer::ChatTemplate::load(source);
  if (!chat) return chat.error();
  for (const std::string& name : chat->names()) std::puts(name.c_str());
  const std::vector<vkformer::ChatMessage> messages = {{"user", "Who goes there?"}};
  const auto text = chat->render(messages);
  if (!text) return text.error();
  std::puts(text->c_str());
  //! [end]

  //! [ChatTemplate::parse ChatTemplate::render_json]
  // The same by a template's text, with messages as JSON.
  const auto own = vkformer::ChatTemplate::parse(
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}",
      R"({"bos_token": "<s>"})");
  if (!own) return own.error();
  const auto written = own->render_json(R"([{"role": "user", "content": "Who goes there?"}])");
  if (!written) return written.error();
  std::puts(written->c_str());
  //! [end]
  return expect(*written == "<s>[user] Who goes there?\n", "the conversation");
}

vkformer::Status show_stop_strings() {
  //! [StopStrings::push StopStrings::stopped StopStrings::finish]
  // Ends a text that arrives in pieces before "END".
  vkformer::StopStrings stops({"END"});
  std::string text;
  for (const char* piece : {"all is well EN", "D and more"}) {
    text += stops.push(piece);
    if (stops.stopped()) break;
  }
  text += stops.finish();
  std::printf("[%s]\n", text.c_str());
  //! [end]
  return expect(text == "all is well ", "the text before END");
}

}  // namespace

vkformer::Status show_grammars(const Setting& setting) {
  const auto tokenizer = vkformer::Tokenizer::load(setting.models + "/shakespeare");
  if (!tokenizer) return tokenizer.error();
  for (const auto show : {show_matching, show_states, show_stop_strings}) {
    const auto shown = show();
    if (!shown) return shown;
  }
  const auto constraint = show_constraint(*tokenizer);
  if (!constraint) return constraint;
  return show_chat(vkformer::ModelSource::directory(setting.tasks + "/prompts-llava"));
}
