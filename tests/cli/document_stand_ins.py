"""Small models and files that stand in for those that commands of the documents name.

A document says DIR, MODEL, FILE.gguf or OWNER/NAME and means any model that its command can use. Here such a name is a
model of the tests: what is tried is that the command is one which works, not what it answers.
"""
import json
import re
import shutil
import subprocess
from pathlib import Path

# Models of tests/tasks/golden by command. The first line that fits holds: the command, a word of it ("": any), the model.
MODELS = [
    ("answer", "", "answers"),
    ("attend", "photo.jpg", "picture-labels"),
    ("caption", "", "captions"),
    ("case", "", "case"),
    ("chat", "--picture", "prompts-smolvlm"),
    ("chat", "", "chat"),
    ("classify", "cat.jpg", "picture-texts"),
    ("classify", "GLINER", "named-entities"),
    ("classify", "--label", "zero-shot"),
    ("classify", "", "labels"),
    ("depth", "", "depth"),
    ("detect", "", "objects"),
    ("embed", "", "embed"),
    ("fill-mask", "", "masks"),
    ("generate", "holiday.jpg", "captions"),
    ("generate", "--picture", "prompts-smolvlm"),
    ("generate", "--task", "summaries"),
    ("quantize", "", "judge"),
    ("rerank", "", "rerank"),
    ("segment", "", "segments"),
    ("speak", "", "speak"),
    ("transcribe", "", "speech"),
]
ANY_MODEL = "chat"  # generates texts and has a chat template

TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"

MODEL_NAME = re.compile(r"DIR|GLINER|MODEL|OTHER|CASE_DIR|tests/golden/opt-narrow|OWNER/NAME:.*|(?!(models|tests|samples|build)/)[\w-]+/[\w.-]+")
TEXTS = "attention\nentropy\n"
LINES = "".join(json.dumps({"id": i, "text": text, "max_new_tokens": 4}) + "\n" for i, text in enumerate(["ROMEO:", "JULIET:"]))
FILES = {
    "words.txt": TEXTS, "texts.txt": TEXTS, "lines.txt": TEXTS, "story.txt": TEXTS, "passages.txt": TEXTS,
    "requests.jsonl": LINES, "reviews.jsonl": LINES, "articles.jsonl": LINES, "in.jsonl": LINES, "BIG.jsonl": LINES,
}
PICTURES = ["cat.jpg", "dog.png", "holiday.jpg", "photo.jpg", "street.jpg"]


def change_json(path, **values):
    """Sets values of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | values), encoding="utf-8")


class StandIns:
    """A folder to run commands of the documents in."""

    def __init__(self, folder, root, program):
        self.folder = folder
        for name in ("models", "samples", "tests"):
            (folder / name).symlink_to(root / name)
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
        (folder / "build").mkdir()
        (folder / "build/words.txt").write_text(TEXTS, encoding="utf-8")
        golden = root / "tests/tasks/golden"
        for name in PICTURES:  # what a file holds is seen by its content
            shutil.copy(golden / "picture-0.png", folder / name)
        shutil.copy(golden / "sound-0.wav", folder / "talk.wav")
        self.models = folder / "stand_ins"
        shutil.copytree(root / "tests/golden/bert-base", self.models / "case")
        for name in {name for _, _, name in MODELS} - {"case", "chat", "judge", "summaries"}:
            shutil.copytree(golden / name, self.models / name)
        shutil.copytree(root / "models/shakespeare", self.models / "chat")
        shutil.copytree(golden / "judge", self.models / "judge")
        for name in ("chat", "judge"):
            (self.models / name / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
        shutil.copytree(golden / "translations", self.models / "summaries")
        change_json(self.models / "summaries/config.json",
                    task_specific_params={"summarization": {"prefix": "summarize: ", "max_length": 8}})
        words = json.loads((golden / "speech/words.json").read_text(encoding="utf-8"))
        change_json(self.models / "speech/generation_config.json", alignment_heads=words["alignment_heads"])
        for source, name in (("judge", "FILE.gguf"), ("embed", "embed.gguf")):
            subprocess.run([program, "quantize", self.models / source, folder / name, "--weights", "q8_0"], check=True,
                           capture_output=True, timeout=60)

    def model_of(self, words):
        """The model that stands in for the one a command names."""
        fits = (name for command, word, name in MODELS if command == words[0] and (not word or word in words))
        return str(self.models / next(fits, ANY_MODEL))

    def words(self, words):
        """A command with what stands in for the models that it names; /tmp is in the folder."""
        model, file = self.model_of(words), "embed.gguf" if words[0] == "embed" else "FILE.gguf"
        words = [word.replace("/tmp/", f"{self.folder}/") for word in words]
        return [words[0], *(file if word == "FILE.gguf" else model if MODEL_NAME.fullmatch(word) else word
                            for word in words[1:])]
