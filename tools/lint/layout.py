#!/usr/bin/env python3
"""Checks who includes whom. These are the rooms of docs/architecture.md, and the public API's edge. That no exception
leaves the public API. That no folder lies beside those of the project."""
import re
import shutil
import subprocess
import sys

from common import ROOT, files, relative, report

ALL = {"base", "checkpoint", "tokenizer_files", "gguf", "weights", "model", "graph", "ops", "kernels", "plan", "driver", "vulkan",
       "load", "recording", "software", "reproducible", "generate", "session", "operators", "measure", "tasks", "text", "unicode", "json", "device_files", "grammar", "chat", "image", "audio", "reference", "api", "c_api"}
# What a room's files may include besides their own room and base.
ROOMS = {
    "base": set(),
    "checkpoint": set(),
    "tokenizer_files": {"checkpoint"},
    "gguf": {"checkpoint", "tokenizer_files"},
    "weights": {"checkpoint"},
    "graph": set(),
    "kernels": set(),
    "plan": {"kernels"},
    "unicode": set(),
    "json": {"unicode"},
    "text": {"unicode", "json"},
    "grammar": {"text", "unicode", "json"},
    "chat": {"text", "unicode", "json"},
    "image": {"checkpoint"},
    "attention_view": {"image", "checkpoint"},  # only api and c_api include it
    "audio": {"checkpoint"},
    "reference": set(),
    # Part of ops in its own room: each asks the other.
    "ops": {"software", "graph", "plan", "kernels"},
    "software": {"ops", "graph", "plan", "kernels"},
    "model": {"ops", "graph", "weights", "checkpoint"},
    "device_files": {"plan", "kernels"},
    "reproducible": {"kernels"},
    "driver": {"software", "reproducible", "plan", "kernels"},
    "vulkan": {"driver", "software", "reproducible", "device_files", "plan", "kernels"},
    "load": {"checkpoint", "gguf", "weights", "model", "vulkan"},
    "recording": {"load", "model", "ops", "graph", "plan", "kernels", "vulkan", "reproducible"},
    "generate": {"recording", "load", "model", "ops", "graph", "plan", "vulkan", "grammar"},
    "operators": {"recording", "checkpoint", "weights", "model", "ops", "graph", "plan", "kernels",
                  "vulkan"},
    "session": {"generate", "recording", "load", "model", "ops", "graph", "plan", "kernels", "vulkan",
                "checkpoint", "image", "audio", "operators", "text"},
    "measure": ALL - {"api", "c_api", "tasks"},
    "tasks": ALL - {"api", "c_api", "driver", "vulkan"},
    "api": ALL - {"c_api"} | {"attention_view"},
    "c_api": ALL | {"attention_view"},
}
TOP = {"bench", "bindings", "mpi", "cmake", "conformance", "docs", "include", "models", "runtime", "samples",
       "shaders", "tests", "tools"}
VULKAN_ROOMS = {"driver", "vulkan", "api", "c_api"}
INTEROP = "vkformer/vulkan_interop.h"
C_HEADERS = {"stdint.h", "stddef.h", "stdbool.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1] == '"', match[2]


def is_vulkan(target):
    return target.startswith(("vulkan/vulkan", "vulkan/vk_", "vk_video/"))


def check_runtime(path, quoted, target):
    """A sentence on what is wrong with one include of a runtime file, or None."""
    room = path.relative_to(ROOT / "runtime").parts[0]
    if room not in ROOMS:
        return f"[runtime/{room}] is not a room of the design."
    if not quoted and is_vulkan(target) or target == INTEROP:
        if room not in VULKAN_ROOMS:
            return f"[{target}] holds Vulkan declarations; only driver, vulkan, api and c_api may include it."
        return None
    if not quoted or target.startswith(("vkformer/", "params/")):
        return None
    if "/" not in target:
        if (path.parent / target).exists():
            return f"[{target}] needs its room in front: {room}/{target}."
        return None  # generated, such as kernel_list.inc
    other = target.split("/")[0]
    if other not in ROOMS:
        return f"[{target}] is in no room of the design."
    if other != room and other != "base" and other not in ROOMS[room]:
        allowed = ", ".join(sorted(ROOMS[room])) or "nothing"
        return f"[{target}] is out of reach: {room} may include base and {allowed}."
    return None


def check_public(path, quoted, target):
    if quoted:
        return None if target.startswith("vkformer/") else (
            f"[{target}] is not a public header; include vkformer/... or the standard library.")
    if is_vulkan(target):
        return None if path.name == "vulkan_interop.h" else (
            f"[{target}] belongs in {INTEROP}, the only public header with Vulkan.")
    standard = target in C_HEADERS or re.fullmatch(r"[a-z_]+", target)
    return None if standard else f"[{target}] is not a header of the standard library."


def check_sample(path, quoted, target):
    # Its own files: beside it, or from the top of a sample that has rooms. The examples of the reference are also guests
    # of the sample that is a renderer.
    top = ROOT.joinpath(*path.relative_to(ROOT).parts[:2])
    own = (path.parent / target).exists() or (top / target).exists() or (
        top.name == "reference" and (top.parent / "embed_renderer" / target).exists())
    if quoted and not target.startswith("vkformer/") and not own:
        return f"[{target}] is not public; samples use include/vkformer/ only."
    return None


def check(path, quoted, target):
    if quoted and target.startswith("../"):
        return f"[{target}] climbs out of its folder; write the path from the room on."
    top = path.relative_to(ROOT).parts[0]
    if top == "runtime":
        return check_runtime(path, quoted, target)
    if top == "include":
        return check_public(path, quoted, target)
    if top == "samples":
        return check_sample(path, quoted, target)
    return None


def unguarded(text):
    """Numbers of the lines where a public call that returns a Result begins without guarded()."""
    hidden = False
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if line in ("namespace {", "}  // namespace"):
            hidden = line == "namespace {"
        if hidden or not re.match(r"(Result<|Status )", line):
            continue
        end = next((i for i in range(number - 1, len(lines)) if lines[i].endswith(("{", ";"))), None)
        if end is not None and lines[end].endswith("{"):
            if not lines[end + 1].startswith("  return guarded("):
                yield number


def strays(names):
    """Sentences on folders beside those of the project: what a run left there is soon committed."""
    return [f"{name}:1: is no folder of the project; remove it, or name it in tools/lint/layout.py."
            for name in sorted(names) if name not in TOP and not name.startswith(".")]


def tracked_folders():
    """Top folders of what git tracks; none where that cannot be asked."""
    if not shutil.which("git"):
        return set()
    ran = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=False)
    return {line.split("/")[0] for line in ran.stdout.splitlines() if "/" in line}


def main():
    sources = files("runtime", "conformance", "include", "samples", "tests", "bench", "shaders",
                    suffixes={".h", ".cpp", ".def", ".comp", ".glsl", ".c"})
    findings = strays(tracked_folders())
    for path in sources:
        if path.parent.name in {"api", "c_api"} and path.parent.parent == ROOT / "runtime" and path.suffix == ".cpp":
            findings += [f"{relative(path)}:{number}: lets exceptions out; let it return guarded(...)."
                         for number in unguarded(path.read_text(encoding="utf-8"))]
        for number, quoted, target in includes(path):
            problem = check(path, quoted, target)
            if problem:
                findings.append(f"{relative(path)}:{number}: {problem}")
    report("layout", len(sources), findings)


if __name__ == "__main__":
    sys.exit(main())
