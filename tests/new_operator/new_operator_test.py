#!/usr/bin/env python3
"""tools/new_operator in a copy of the tree: what it writes compiles, runs and is checked.

  new_operator_test.py BUILD_FOLDER     # of this tree, built with Ninja

The new operator's name is the last one in every list. So the numbers of all others stay. Only its own files and those
that hold the lists are compiled (in a unity build, with their neighbors). They are linked with the objects of the
build.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = "zz_square"
COPIED = ["CMakeLists.txt", "cmake", "conformance", "docs", "include", "mpi", "runtime", "samples",
          "shaders", "tools"]
# What holds a list of operators or kernels, or counts them.
LISTS = re.compile(r"op_list\.def|kernel_list\.inc|kernel_groups\.inc|(?:Op|Kernel)Id::kCount")
OWN = [f"runtime/{room}/{NAME}.cpp" for room in ("ops", "operators", "reference")] + [
    f"conformance/cases/{NAME}.cpp"]


def run(command, **options):
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                         check=False, **options)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(str(word) for word in command[:4])} ... failed with "
                 f"{ran.returncode}:\n{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}")
    return ran.stdout


def same_options(build):
    """The options of a build, for another one."""
    wanted = re.compile(r"^((?:VKFORMER|CMAKE_(?:BUILD_TYPE|UNITY_BUILD|CXX_|C_|PREFIX_PATH))\w*):"
                        r"(?:BOOL|STRING|PATH|FILEPATH)=(.*)$", re.M)
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    return [f"-D{name}={value}" for name, value in wanted.findall(cache)
            if "_FLAGS_" not in name]


def linked(build, program):
    """(objects, libraries) of a program or library of the build."""
    rules = (build / "build.ninja").read_text(encoding="utf-8")
    rule = re.search(rf"^build {re.escape(program)}\S*: \S+_LINKER_\S+ (.*?) \| .*\n((?:  .*\n)+)",
                     rules, re.M)
    libraries = re.search(r"^  LINK_LIBRARIES = (.*)$", rule[2], re.M)[1].split()
    return rule[1].split(), [word for word in libraries
                             if not word.startswith("-Wl,-rpath") and "libvkformer" not in word]


def compiled_here(tree):
    """Sources whose objects of the build do not know the new operator."""
    sources = [path.relative_to(tree).as_posix() for room in ("runtime", "conformance")
               for path in sorted((tree / room).rglob("*.cpp"))]
    return [path for path in sources
            if path in OWN or LISTS.search((tree / path).read_text(encoding="utf-8"))]


def objects_by_source(tree, scratch):
    """The object of each source, by its path in the tree; one of a unity build is that of many."""
    objects = {}
    for name in re.findall(r"^(\S+\.o): ", run(["ninja", "-C", scratch, "-t", "targets", "all"]), re.M):
        unity = scratch / name.removesuffix(".o")
        if "/Unity/" in name:
            for path in re.findall(r'^#include "(.*)"$', unity.read_text(encoding="utf-8"), re.M):
                objects[Path(os.path.normpath(unity.parent / path)).relative_to(tree).as_posix()] = name
        else:
            source = re.sub(r"CMakeFiles/\w+\.dir/", "", name).removesuffix(".o")
            objects[source] = name
    return objects


def build_program(build, tree):
    """Path of a command line program that has the new operator."""
    scratch = tree / "build"
    run(["cmake", "-G", "Ninja", "-S", tree, "-B", scratch, *same_options(build),
         "-DVKFORMER_BUILD_TESTS=OFF", "-DVKFORMER_BUILD_BENCH=OFF", "-DVKFORMER_INSTALL=OFF"])
    objects = objects_by_source(tree, scratch)
    mine = [objects[source] for source in compiled_here(tree)]
    mine += [name for source, name in objects.items()
             if source.endswith(f"spirv/{NAME.split('_')[0]}.cpp")]
    mine = list(dict.fromkeys(mine))
    run(["ninja", "-C", scratch, *mine])
    archive = next(path for path in (build / "lib/libvkformer_host_parts.a",
                                     build / "lib/libvkformer.a") if path.exists())
    program, libraries = linked(build, "bin/vkformer")
    conformance, more = linked(build, "lib/libvkformer_conformance.so")
    others = [build / path for path in program + conformance if path not in mine]
    compiler = re.search(r"CMAKE_CXX_COMPILER:\w+=(.*)",
                         (scratch / "CMakeCache.txt").read_text(encoding="utf-8"))[1]
    sanitizer = re.findall(r"-fsanitize=\S+", " ".join(same_options(build)))
    run([compiler, *sanitizer, "-o", tree / "vkformer", *(scratch / path for path in mine),
         *others, archive, *dict.fromkeys(libraries + more), "-pthread", "-ldl"], cwd=build)
    return tree / "vkformer"


def check(program, tree):
    assert NAME in run([program, "op"]), "run_operator does not list it"
    report = tree / "report.json"
    run([program, "conformance", "--quick", "--filter", f"{NAME}/", "--json", report, "-q"])
    checks = json.loads(report.read_text(encoding="utf-8"))["checks"]
    assert len(checks) >= 8, f"only {len(checks)} checks"
    for one in checks:
        assert one["outcome"] == "passed", one
        assert one["kernels"] == [f"{NAME}_row__f32_none_f32"], one
    timed = run([program, "bench", "operators", NAME, "--rounds", "2", "--json", "-q"])
    assert f"{NAME}_row" in timed, timed
    print(f"{NAME}: {len(checks)} checks passed, 1 row timed")


def refused(tree, name, part):
    ran = subprocess.run([tree / "tools/new_operator", name], capture_output=True, text=True,
                         check=False)
    assert ran.returncode != 0 and part in ran.stderr, ran.stderr


def main():
    build = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(dir=build) as folder:
        tree = Path(folder)
        for name in COPIED:
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, tree / name)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        run([tree / "tools/new_operator", NAME])
        refused(tree, NAME, "would overwrite")
        refused(tree, "gru", "is in runtime/ops/op_list.def already")
        refused(tree, "NewOne", "snake_case")
        assert f"| `{NAME}` |" in (tree / "docs/operators.md").read_text(encoding="utf-8")
        check(build_program(build, tree), tree)


if __name__ == "__main__":
    main()
