#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "vkformer/chat.h"

using namespace vkformer;
using Json = nlohmann::ordered_json;

namespace {

Result<std::string> render(const std::string& text, const std::string& variables = "",
                           const std::string& messages = R"([{"role": "user", "content": "Hi"}])") {
  const auto made = ChatTemplate::parse(text, R"({"bos_token": "<s>", "eos_token": "</s>"})");
  if (!made) return made.error();
  ChatOptions options;
  options.variables = variables;
  options.now = 86400 * 365;
  return made->render_json(messages, options);
}

void check_text(const std::string& text, const std::string& expected) {
  const auto made = render(text, R"({"x": 5, "l": [3, 1, 2]})");
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? text : text + ": " + made.error().message));
  CHECK(*made == expected);
}

void check_fails(const std::string& text, const std::string& says) {
  CAPTURE(text.substr(0, 200));
  const auto made = render(text);
  REQUIRE_FALSE(made.ok());
  CHECK_MESSAGE(made.error().message.find(says) != std::string::npos, made.error().message);
  CHECK(made.error().message.starts_with("[chat template]"));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("chat templates: the texts of transformers") {
    std::ifstream file(VKFORMER_SOURCE_DIR "/tests/chat/golden/renderings.json");
    const Json data = Json::parse(file);
    int compared = 0;
    const auto compare = [&](const Json& source, const Json& messages, const Json* tools,
                             const Json& expected) {
      CAPTURE(source.get<std::string>().substr(0, 300));
      CAPTURE(messages.dump());
      auto made = ChatTemplate::parse(source.get<std::string>(), data["tokens"].dump());
      ChatOptions options;
      options.variables = data["variables"].dump();
      if (tools != nullptr) options.tools = tools->dump();
      const Result<std::string> text =
          made ? made->render_json(messages.dump(), options) : made.error();
      CHECK(text.ok() == !expected.is_null());
      if (text.ok() && !expected.is_null()) CHECK(*text == expected.get<std::string>());
      ++compared;
    };
    for (const auto& [name, source] : data["templates"].items()) {
      for (size_t i = 0; i < data["conversations"].size(); ++i) {
        const Json& texts = data["texts"][name][i];
        compare(source, data["conversations"][i], nullptr, texts[0]);
        compare(source, data["conversations"][i], &data["tools"], texts[1]);
      }
    }
    for (size_t i = 0; i < data["snippets"].size(); ++i) {
      compare(data["snippets"][i], data["conversations"][0], nullptr, data["snippet_texts"][i]);
    }
    CHECK(compared > 80);
  }

  TEST_CASE("chat templates: white space, scopes and macros") {
    check_text("a\n  {% if true %}\nb\n  {% endif %}\nc\n", "a\nb\nc");
    check_text("a {%- if true -%}  b  {%- endif %} c", "ab c");
    check_text("a\n {#- x -#} \nb", "ab");
    check_text("{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}", "3125");
    check_text("{% macro m(a, b=x) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(b=2, a=1) }}",
               "1512");
    check_text(
        "{% set n = namespace(k=0) %}{% for i in l %}{% set n.k = n.k + i %}{% endfor %}{{ n.k }}",
        "6");
    check_text("{{ strftime_now('%Y') }}", "1971");
    check_text("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", "<s>Hi</s>");
  }

  TEST_CASE("chat templates: messages, prompts and several templates") {
    const std::string config = R"({"chat_template": [
        {"name": "default", "template": "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{{ 'A:' if add_generation_prompt }}"},
        {"name": "tool_use", "template": "{{ tools | length }}{{ bos_token }}"}],
        "bos_token": {"content": "<b>"}, "eos_token": null})";
    MemoryFiles files;
    files["tokenizer_config.json"] = std::as_bytes(std::span(config));
    const auto made = ChatTemplate::load(ModelSource::memory(files));
    REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message));
    CHECK(made->names() == std::vector<std::string>{"default", "tool_use"});
    const std::vector<ChatMessage> talk = {{"user", "Hi \"é\"\n"}, {"assistant", "Yes?"}};
    ChatOptions options;
    CHECK(*made->render(talk, options) == "user:Hi \"é\"\n;assistant:Yes?;A:");
    options.add_generation_prompt = false;
    CHECK(*made->render(talk, options) == "user:Hi \"é\"\n;assistant:Yes?;");
    options.tools = R"([{"name": "f"}])";
    CHECK(*made->render(talk, options) == "1<b>");
    options.template_name = "default";
    CHECK(made->render(talk, options)->starts_with("user:"));
    options.template_name = "other";
    const auto missing = made->render(talk, options);
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().message.find("none of the templates (default, tool_use)") !=
          std::string::npos);
    const std::string jinja = "{{ eos_token }}|{{ bos_token }}";
    const std::string tokens = R"({"eos_token": "</s>", "bos_token": "no"})";
    files["chat_template.jinja"] = std::as_bytes(std::span(jinja));
    files["special_tokens_map.json"] = std::as_bytes(std::span(tokens));
    CHECK(*ChatTemplate::load(ModelSource::memory(files))->render(talk) == "</s>|<b>");
    // A processor's template comes before the tokenizer's, and after one that is its own file.
    const std::string processor = R"({"chat_template": "{{ bos_token }};"})";
    files["chat_template.json"] = std::as_bytes(std::span(processor));
    CHECK(*ChatTemplate::load(ModelSource::memory(files))->render(talk) == "</s>|<b>");
    files.erase("chat_template.jinja");
    CHECK(*ChatTemplate::load(ModelSource::memory(files))->render(talk) == "<b>;");
    const std::string number = R"({"chat_template": 7})";
    files["chat_template.json"] = std::as_bytes(std::span(number));
    const auto wrong = ChatTemplate::load(ModelSource::memory(files));
    REQUIRE_FALSE(wrong.ok());
    CHECK(wrong.error().message.find("chat_template.json") != std::string::npos);
    CHECK_FALSE(ChatTemplate::load(ModelSource::memory({})).ok());
    const std::string bare = "{}";
    const auto none = ChatTemplate::load(
        ModelSource::memory({{"tokenizer_config.json", std::as_bytes(std::span(bare))}}));
    REQUIRE_FALSE(none.ok());
    CHECK(none.error().message.find("has no chat_template") != std::string::npos);
  }

  TEST_CASE("chat templates: what is wrong is said with its line") {
    check_fails("\n\n{{ nothing.at.all }}", "line 3: [nothing] is undefined");
    check_fails("{% if x %}", "expected a block [endif]");
    check_fails("{{ 'a }}", "a string has no end");
    check_fails("{{ x", "a tag has no end");
    check_fails("{# x", "a comment has no end");
    check_fails("{% raw %}", "raw has no endraw");
    check_fails("{% include 'x' %}", "[include] is no statement");
    check_fails("{{ 1 | what }}", "no filter [what]");
    check_fails("{{ 1 is what }}", "no test [what]");
    check_fails("{{ [1].append(2) }}", "would change a value");
    check_fails("{{ raise_exception('not today') }}", "not today");
    check_fails("{{ 1 // 0 }}", "division by zero");
    check_fails("{{ 9223372036854775807 + 1 }}", "beyond 64 bits");
    check_fails("{{ ''.__class__ }}{{ ''.__class__.x }}", "is undefined");
    check_fails("{% set messages.x = 1 %}", "no namespace");
    check_fails("{% break %}", "outside of a loop");
    const auto variables = render("x", "[1]");
    REQUIRE_FALSE(variables.ok());
    CHECK(variables.error().message.find("[variables] is an array") != std::string::npos);
    CHECK_FALSE(render("x", "", "{}").ok());
    CHECK_FALSE(render("x", "", "[").ok());
  }

  TEST_CASE("chat templates: hostile templates end") {
    check_fails("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
                "run for ever");
    check_fails("{{ range(1000000000) | list }}", "range is longer");
    check_fails("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "too deeply");
    check_fails("{{ 'x' * 1000000000000 }}", "too large");
    check_fails(
        "{% set n = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(99) %}"
        "{% set n.s = n.s + n.s %}{% endfor %}",
        "");
    check_fails(
        "{% set n = namespace(s=[]) %}{% for i in range(9999) %}{% set n.s = [n.s] %}"
        "{% endfor %}",
        "nests deeper");
    check_fails(
        "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}"
        "{% endfor %}{{ n.s }}",
        "");
    check_fails("{% set n = namespace() %}{% set n.s = [n] %}", "cannot hold a namespace");
    check_fails("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}",
                "too deeply");
    check_fails("{{ " + std::string(5000, '-') + "1 }}", "too deeply");
    check_fails(
        "{{ x" +
            [] {
              std::string more;
              for (int i = 0; i < 5000; ++i) more += "|list";
              return more;
            }() +
            " }}",
        "too many parts");
    std::string blocks;
    for (int i = 0; i < 5000; ++i) blocks += "{% if true %}";
    check_fails(blocks, "too deeply");
    check_fails("{{ 'a'.replace('', 'x' * 15000000) * 9 }}", "");
    check_fails(std::string(2u << 20, 'x'), "the limit is");
    check_fails("{{ '\xFF' | upper }}", "not valid UTF-8");
    const std::string text = "{% set a = 'ab' * 1000000 %}{% set b = 'ab' * 50000 ~ 'b' %}";
    for (const char* call : {"a.find(b)", "a.rfind(b)", "a.count(b)", "a.split(b)",
                             "a.replace(b, '')", "a.partition(b)", "b in a", "a.strip(b)",
                             "([a] * 9) | tojson(separators=[a, a]) | length"}) {
      check_fails(text + "{{ " + call + " }}", "the limit of");
    }
    check_fails("{% set a = 'x' * 1000000 %}{% for i in range(9999) %}{{ a[0] }}{% endfor %}",
                "the limit of 5000000 steps");
    check_fails("{{ ('\\n' * 100000) | indent(1000, true, true) }}", "limit of 16777216 bytes");
    check_fails(
        "{% set n = namespace(a='') %}{% set l = [n] * 100000 %}{% set n.a = 'x' * 1000000 %}"
        "{{ l | string }}",
        "limit of 16777216 bytes");
    check_text("{{ 'nan' | int }}", "0");
  }

  TEST_CASE("chat templates: the block of a call does not see its own caller") {
    check_text(
        "{% macro m() %}<{{ caller() }}>{% endmacro %}"
        "{% macro o() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}"
        "{% call o() %}x{% endcall %}",
        "<x>");
    check_fails(
        "{% macro m() %}{{ caller() }}{% endmacro %}"
        "{% call m() %}{{ caller() }}{% endcall %}",
        "[caller] is undefined");
  }
}
