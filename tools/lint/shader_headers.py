#!/usr/bin/env python3
"""Checks how shaders open: six labels that say what they do, and what an include needs. Checks that only
kernels of matrix units ask for the size of subgroups. It checks that no single word lies in shared memory beside
vectors, and that no line is longer than 100 columns."""
import re
import sys

from common import files, relative, report

MOST_COLUMNS = 100
VARIANT = re.compile(r"//(?: variants:|          ) +\w+( UNROLLED)?( FEATURES| DEFINES|$)")
LABELS = ["computes", "shapes", "mapping", "bounds", "requires", "variants"]


def opening(path):
    """The comment lines at the top, after #version and #extension, without their slashes."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not lines and (line.startswith(("#version", "#extension")) or not line.strip()):
            continue
        if not line.startswith("//"):
            break
        lines.append(line[2:].strip())
    return lines


def check_shader(path):
    """The six labels in order, each with text; longer ones go on in further comment lines."""
    lines = opening(path)
    found = [m[1] for m in (re.match(r"([a-z]+):\s*\S", line) for line in lines) if m]
    found = [label for label in found if label in LABELS]
    if found == LABELS and lines[0].startswith("computes:"):
        return []
    missing = [label for label in LABELS if label not in found]
    what = f"lacks {', '.join(f'`// {label}:`' for label in missing)}" if missing else (
        "has them in another order, or does not open with them")
    return [f"{relative(path)}:1: opens with `// computes:`, `// shapes:`, `// mapping:`, `// bounds:`, "
            f"`// requires:` and `// variants:`, in that order; this one {what}."]


def check_include(path):
    lines = opening(path)
    if lines and re.match(r"needs:\s*\S", lines[0]):
        return []
    return [f"{relative(path)}:1: opens with `// needs:` and the names it needs, or `nothing`."]


def variants(path):
    """The lines after `variants:`, each a variant."""
    lines = opening(path)
    first = next((i for i, line in enumerate(lines) if line.startswith("variants:")), len(lines))
    return [line.removeprefix("variants:").strip() for line in lines[first:]]


def check_subgroup_size(path):
    """A driver may run a shader in narrower subgroups than it states: Intel's 8 or 16 of 32, Adreno's 64 of 128.
    Only kernels of matrix units have theirs set."""
    names = variants(path)
    if names and all(re.search(r"\bFEATURES\b.*\bmatrix\b", name) for name in names):
        return []
    code = [re.sub(r"//.*", "", line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [f"{relative(path)}:{number}: reads gl_SubgroupSize, which is the driver's to choose; count with "
            f"gl_NumSubgroups, or make it a kernel of matrix units, whose size is set."
            for number, line in enumerate(code, 1) if "gl_SubgroupSize" in line]


def check_shared(path):
    """Drivers lay shared variables out one after the other, in their own order. After a single word NVK
    loads vectors by the word, and has units load from addresses that they cannot load from."""
    shared = [(number, line) for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
              if line.startswith("shared ")]
    if not any(re.match(r"shared \w*(vec4|VKF_FACTORS) ", line) for _, line in shared):
        return []
    return [f"{relative(path)}:{number}: puts single words into shared memory beside vectors of 4, which some drivers "
            f"then load by the word; make it a vector of 4, too."
            for number, line in shared if re.match(r"shared (bool|uint|int|float) [^\[]*;", line)]


def check_columns(path):
    """clang-format leaves comments as they are, so their width is checked here. A variant is one line, however long."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if len(line) > MOST_COLUMNS and not VARIANT.match(line):
            found.append(f"{relative(path)}:{number}: has {len(line)} columns, over the limit of {MOST_COLUMNS}; "
                         "break the line.")
        elif "\t" in line or line != line.rstrip():
            found.append(f"{relative(path)}:{number}: has a tab or a space at its end; write spaces between words.")
    return found


def main():
    shaders = files("shaders", suffixes={".comp"})
    includes = files("shaders/include", suffixes={".glsl"})
    findings = [finding for path in shaders for finding in check_shader(path)]
    findings += [finding for path in includes for finding in check_include(path)]
    findings += [finding for path in shaders + includes for finding in check_subgroup_size(path)]
    findings += [finding for path in shaders + includes for finding in check_shared(path)]
    params = files("shaders/params", suffixes={".h"})
    findings += [finding for path in shaders + includes + params for finding in check_columns(path)]
    report("shader headers", len(shaders) + len(includes) + len(params), findings)


if __name__ == "__main__":
    sys.exit(main())
