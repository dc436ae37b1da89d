#!/usr/bin/env python3
"""Walks the first hour of a new user on a bare Debian 12, word by word as the pages have it.

    first_hour.py SOURCE_DIRECTORY WORK_DIRECTORY MIRROR [SUITE]

Makes a system of debootstrap's minimal packages in WORK_DIRECTORY and puts the sources that git knows into it. Then it
types what README.md, docs/tutorial.md, docs/embedding.md, docs/c_api.md and the samples' pages say. A command counts
only if it is a line of its page. PREFIX in a line is a folder of this test. Needs root, debootstrap, and the address of
a Debian archive. Writes WORK_DIRECTORY/report.md: seconds, processor time and megabytes of each step."""
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

PREFIX = "/opt/vkformer"
WORDS = "AH0 T EH1 N SH AH0 N"
HOME = "/root/vkformer"


class Failure(Exception):
    pass


class User:
    """Someone at the shell of the new system, in the checkout's folder."""

    def __init__(self, source, root):
        self.source = source
        self.root = root
        self.environment = ""
        self.steps = []

    def shell(self, command):
        """Runs it, shows what it prints and returns that."""
        print(f"$ {command}", flush=True)
        line = f"cd {HOME}; {self.environment}{command}"
        # What the system's own mount namespace holds goes with the command.
        done = subprocess.run(
            ["unshare", "--mount", "--fork", "--pid", "--kill-child", "bash", "-c",
             'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && '
             'exec chroot "$0" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb '
             'DEBIAN_FRONTEND=noninteractive bash -euc "$1"', str(self.root), line],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print(done.stdout[-4000:], flush=True)
        if done.returncode != 0:
            raise Failure(f"[{command}] ended with {done.returncode}")
        return done.stdout

    def types(self, page, command, expected=""):
        """Types a line of a page; what it prints must hold `expected`."""
        text = (self.source / page).read_text(encoding="utf-8")
        if not re.search(rf"^    {re.escape(command)}(?:\s+#.*)?$", text, re.M):
            raise Failure(f"[{page}] does not have the line [{command}]")
        typed = command.replace("PREFIX", PREFIX)
        if typed.startswith("export "):
            self.environment += typed + "; "
            return
        begin, before = time.monotonic(), processor_seconds()
        printed = self.shell(typed)
        self.steps.append((page, command, time.monotonic() - begin, processor_seconds() - before))
        if expected not in printed:
            raise Failure(f"[{command}] did not print [{expected}]")

    def saves(self, page, language, name):
        """Saves the page's one block of a language as a file."""
        text = (self.source / page).read_text(encoding="utf-8")
        blocks = [b for b in re.findall(rf"^```{language}\n(.*?)^```$", text, re.S | re.M) if "main(" in b]
        if len(blocks) != 1:
            raise Failure(f"[{page}] has {len(blocks)} programs in {language}, not one")
        (self.root / HOME[1:] / name).write_text(blocks[0], encoding="utf-8")


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def megabytes(folder):
    out = subprocess.run(["du", "-smx", str(folder)], capture_output=True, text=True, check=True)
    return int(out.stdout.split()[0])


def bare_system(source, root, mirror, suite):
    if root.exists():
        shutil.rmtree(root)
    root.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["debootstrap", "--variant=minbase", suite, str(root), mirror], check=True,
                   stdout=subprocess.DEVNULL)
    for name in ("etc/resolv.conf", "etc/hosts"):
        if Path("/", name).exists():
            shutil.copy(Path("/", name), root / name)
    proxies = [line for line in subprocess.run(["apt-config", "dump"], capture_output=True, text=True,
                                               check=True).stdout.splitlines()
               if line.startswith("Acquire::http")]
    (root / "etc/apt/apt.conf.d/90proxy").write_text("\n".join(proxies) + "\n", encoding="utf-8")
    home = root / HOME[1:]
    home.mkdir(parents=True)
    files = subprocess.run(["git", "-C", str(source), "ls-files", "-z"], capture_output=True, check=True)
    archive = subprocess.run(["tar", "-C", str(source), "--null", "-T", "-", "-c"], input=files.stdout,
                             capture_output=True, check=True)
    subprocess.run(["tar", "-C", str(home), "-x", "--no-same-owner"], input=archive.stdout, check=True)


def walk(user):
    readme = "README.md"
    user.types(readme, "tools/demo", f"attention\t{WORDS}")
    for program in ("vkformer", "embed_renderer"):
        user.shell(f"test -x build/release/bin/{program}")
    user.types("samples/embed_renderer/README.md",
               "build/release/bin/embed_renderer models/g2p-en attention is all you need", WORDS)
    user.types(readme, "cmake --install build/release --prefix PREFIX")
    user.types(readme, "cmake -S samples/embed_minimal -B build/embed -DCMAKE_PREFIX_PATH=PREFIX")
    user.types(readme, "cmake --build build/embed")
    minimal = "samples/embed_minimal/README.md"
    user.types(minimal, "build/embed/embed_minimal models/g2p-en attention is all you need", WORDS)
    user.types(readme, "export PKG_CONFIG_PATH=PREFIX/lib/pkgconfig")
    user.types(readme, "c++ -std=c++20 samples/embed_minimal/main.cpp -o minimal "
               "$(pkg-config --cflags --libs vkformer) -Wl,-rpath,PREFIX/lib")
    user.types(readme, "./minimal models/g2p-en attention is all you need", WORDS)
    in_c = "samples/embed_c/README.md"
    user.types(in_c, "cmake -S samples/embed_c -B build/embed_c -DCMAKE_PREFIX_PATH=PREFIX")
    user.types(in_c, "cmake --build build/embed_c")
    user.types(in_c, "build/embed_c/embed_c models/g2p-en attention is all you need", WORDS)
    user.types(in_c, "cc -std=c99 samples/embed_c/main.c -o embed_c "
               "$(pkg-config --cflags --libs vkformer) -Wl,-rpath,PREFIX/lib")
    user.types(in_c, "./embed_c models/g2p-en attention is all you need", WORDS)
    guest = "docs/embedding.md"
    user.saves(guest, "cpp", "program.cpp")
    user.types(guest, "c++ -std=c++20 program.cpp -o program $(pkg-config --cflags --libs vkformer) "
               "-lvulkan -Wl,-rpath,PREFIX/lib")
    user.types(guest, "./program models/g2p-en attention", WORDS)
    c_api = "docs/c_api.md"
    user.saves(c_api, "c", "program.c")
    user.types(c_api, "cc -std=c99 program.c -o program $(pkg-config --cflags --libs vkformer) "
               "-Wl,-rpath,PREFIX/lib")
    user.types(c_api, "./program models/g2p-en attention", WORDS)
    user.shell("apt-get -qq install -y --no-install-recommends python3 >/dev/null")
    user.saves(c_api, "python", "program.py")
    user.types(c_api, "python3 program.py PREFIX/lib/libvkformer.so models/g2p-en attention", WORDS)
    user.environment = f"export PATH={PREFIX}/bin:$PATH; "
    for line in commands_of(user.source / readme, "## On the command line"):
        user.types(readme, line)
    tutorial = "docs/tutorial.md"
    user.saves(tutorial, "cpp", "frames.cpp")
    for line in commands_of(user.source / tutorial, "# Tutorial"):
        if line not in ("tools/demo", "cmake --install build/release --prefix PREFIX"):  # done above
            user.types(tutorial, line)


def commands_of(page, title):
    """The lines that a section of a page says to type; of a page's title, those of all its sections."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    section = text[text.index(title):]
    end = section.find("\n## ", 3) if title.startswith("## ") else -1
    return re.findall(r"^    (\S.*)$", section[:end], re.M)


def main():
    source, work, mirror = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3]
    suite = sys.argv[4] if len(sys.argv) > 4 else "bookworm"
    os.umask(0o022)
    root = work / "root"
    bare_system(source, root, mirror, suite)
    user = User(source, root)
    before = megabytes(root)
    try:
        walk(user)
    except Failure as failure:
        print(f"first hour: {failure}", file=sys.stderr)
        return 1
    rows = "".join(f"| {page} | `{command.replace('|', chr(92) + '|')}` | {seconds:.1f} | {used / 60:.2f} |\n"
                   for page, command, seconds, used in user.steps)
    report = (f"{len(user.steps)} steps on a bare {suite}, {os.cpu_count()} processors; the system grew from {before} "
              f"to {megabytes(root)} MB.\n\n| page | step | seconds | processor minutes |\n|---|---|---|---|\n{rows}")
    (work / "report.md").write_text(report, encoding="utf-8")
    print(report)
    print(f"first hour: {len(user.steps)} steps, none failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
