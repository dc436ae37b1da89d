#!/usr/bin/env python3
"""Fills in what transformers makes of the templates and conversations in renderings.json.

    python3 tests/chat/golden/make_renderings.py

Made with transformers 5.12.1 and Jinja 3.1.6. Every template is rendered for every conversation,
with and without tools; every snippet once. What cannot be rendered is null.
"""
import json
import pathlib

from transformers.utils.chat_template_utils import _compile_jinja_template

FILE = pathlib.Path(__file__).with_name("renderings.json")


def rendered(template, messages, tools, variables):
    try:
        return _compile_jinja_template(template).render(
            messages=messages, tools=tools, documents=None, add_generation_prompt=True, **variables)
    except Exception:  # every way of failing is one
        return None


def main():
    data = json.loads(FILE.read_text(encoding="utf-8"))
    variables = {**data["tokens"], **data["variables"]}
    data["texts"] = {
        name: [[rendered(template, messages, tools, variables) for tools in (None, data["tools"])]
               for messages in data["conversations"]]
        for name, template in data["templates"].items()}
    data["snippet_texts"] = [rendered(snippet, data["conversations"][0], None, variables)
                             for snippet in data["snippets"]]
    FILE.write_text(json.dumps(data, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
