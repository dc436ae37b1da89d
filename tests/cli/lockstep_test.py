#!/usr/bin/env python3
"""The lockstep sample on two drivers: players that exchange inputs only stay in one world, bit by bit.

  lockstep_test.py [--library FOLDER] [--steps N]

Takes the first two drivers of `tools/drivers names`, those of one name last: two builds of one driver have more in common
than two drivers. With one driver alone there is nothing to compare; then it says so and is skipped (77).
"""
import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77


def two_drivers():
    names = subprocess.run([ROOT / "tools" / "drivers", "names"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    kinds = {}
    for name in names:
        kinds.setdefault(name.split("-")[0], name)
    others = [name for name in names if name not in kinds.values()]
    return (list(kinds.values()) + others)[:2], names


def play(drivers, options, environment):
    command = [sys.executable, "-B", ROOT / "samples" / "lockstep" / "lockstep.py", ROOT / "models" / "shakespeare", *options]
    for driver in drivers:
        command += ["--player", f"{ROOT}/tools/drivers run {driver}"]
    return subprocess.run(command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", help="the folder with libvkformer.so")
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    drivers, names = two_drivers()
    if len(drivers) < 2:
        print(f"skipped: a lockstep game needs two drivers, but `tools/drivers names` prints [{' '.join(names)}]; "
              "`tools/drivers get` brings more")
        return SKIPPED
    environment = dict(os.environ)
    if args.library:
        environment["VKFORMER_LIBRARY_DIR"] = args.library
    together = play(drivers, ["--steps", str(args.steps)], environment)
    print(f"{' and '.join(drivers)}: {together.stdout.strip()} {together.stderr.strip()}")
    return 0 if together.returncode == 0 and "one world" in together.stdout else 1


if __name__ == "__main__":
    sys.exit(main())
