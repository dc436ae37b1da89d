#!/usr/bin/env python3
"""Installs the packages on a bare Debian 12, as a user does, and uses them.

    bare_debian.py SOURCE_DIRECTORY PACKAGES WORK_DIRECTORY MIRROR

PACKAGES is a folder that tools/packages filled. The program's package comes first and alone: it runs. Then the one for
development: samples are built through find_package and pkg-config, shared and static. Removed, they leave nothing.
Then the archives, which are only unpacked, the first of them moved. Needs root, debootstrap, and the address of a
Debian archive."""
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "first_hour"))
from first_hour import HOME, WORDS, Failure, User, bare_system  # noqa: E402

INSTALL = "apt-get -qq install -y --no-install-recommends"
FILES = "/packages"


def expect(user, command, expected):
    if expected not in user.shell(command):
        raise Failure(f"[{command}] did not print [{expected}]")


def pronounces(user, command):
    expect(user, f"{command} models/g2p-en attention", f"attention\t{WORDS}")


def consume(user, place, prefix, pkg_config):
    """Builds and runs samples against what is installed below `prefix`, in a folder of that `place`."""
    find = f"-DCMAKE_PREFIX_PATH={prefix} -DCMAKE_BUILD_TYPE=Release >/dev/null"
    for sample in ("embed_minimal", "embed_c"):
        build = f"/tmp/{place}/{sample}"
        user.shell(f"cmake -S samples/{sample} -B {build} {find} && cmake --build {build}")
        pronounces(user, f"{build}/{sample}")
    build = f"/tmp/{place}/static"
    user.shell(f"cmake -S tests/embed/consumer -B {build} -DHOW=find -DCOMPONENTS=static "
               f"-DMAIN={HOME}/samples/embed_minimal/main.cpp {find} && cmake --build {build}")
    pronounces(user, f"{build}/consumer")
    user.shell(f"ldd {build}/consumer >/tmp/needed; ! grep vkformer /tmp/needed")
    user.shell(f"export PKG_CONFIG_PATH={pkg_config}; "
               f"c++ -std=c++20 samples/embed_minimal/main.cpp -o /tmp/{place}/by_hand "
               "$(pkg-config --cflags --libs vkformer) -Wl,-rpath,$(pkg-config --variable=libdir vkformer)")
    pronounces(user, f"/tmp/{place}/by_hand")


def debian_packages(user):
    user.shell(f"apt-get -qq update && {INSTALL} {FILES}/libvkformer0_*.deb {FILES}/vkformer_*.deb mesa-vulkan-drivers libvulkan1 "
               ">/dev/null 2>&1")
    user.shell("ldd /usr/bin/vkformer /usr/lib/x86_64-linux-gnu/libvkformer*.so.0 >/tmp/needed; ! grep 'not found' /tmp/needed")
    expect(user, "vkformer --version", "vkformer ")
    expect(user, "vkformer devices", "llvmpipe")
    pronounces(user, "vkformer generate")
    user.shell("grep -q 'Apache License' /usr/share/doc/libvkformer0/copyright && "
               "grep -q 'libzstd-dev: linked' /usr/share/doc/libvkformer0/copyright")
    user.shell(f"{INSTALL} {FILES}/libvkformer-dev_*.deb g++ cmake make pkg-config >/dev/null 2>&1")
    consume(user, "packages", "/usr", "")
    user.shell("apt-get -qq purge -y vkformer libvkformer-dev libvkformer0 >/dev/null")
    # The user's own cache of pipelines stays.
    ours = " ".join(f"-not -path '{path}*'" for path in (HOME, FILES, "/tmp", "/proc", "/root/.cache"))
    user.shell(f"! find / -xdev -name '*vkformer*' {ours} | grep .")


def archives(user):
    user.shell(f"tar -C /opt -xf {FILES}/vkformer-*-Linux-x86_64.tar.gz && mv /opt/vkformer-* '/opt/a game'")
    pronounces(user, "'/opt/a game/bin/vkformer' generate")
    user.shell("mv '/opt/a game' /opt/game")
    pronounces(user, "/opt/game/bin/vkformer generate")
    consume(user, "archive", "/opt/game", "/opt/game/lib/pkgconfig")
    user.shell(f"mkdir /opt/headers && tar -C /opt/headers --strip-components 1 -xf {FILES}/vkformer-*-c_headers.tar.gz")
    user.shell("cmake -S tests/packages/open_library -B /tmp/open -DCMAKE_PREFIX_PATH=/opt/headers >/dev/null && "
               "cmake --build /tmp/open")
    expect(user, "/tmp/open/open_library /opt/game/lib/libvkformer.so.0 models/g2p-en all", "all: ")
    user.shell("export PKG_CONFIG_PATH=/opt/headers/lib/pkgconfig; cc -std=gnu99 tests/packages/open_library/main.c "
               "-o /tmp/open_by_hand $(pkg-config --cflags vkformer_c_headers)")


def main():
    source, packages, work, mirror = (*(Path(a).resolve() for a in sys.argv[1:4]), sys.argv[4])
    root = work / "root"
    bare_system(source, root, mirror, "bookworm")
    shutil.copytree(packages, root / FILES[1:])
    user = User(source, root)
    try:
        debian_packages(user)
        archives(user)
    except Failure as failure:
        print(f"bare Debian: {failure}", file=sys.stderr)
        return 1
    print("bare Debian: packages and archives run, and applications build with them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
