#!/usr/bin/env python3
"""Killed while it writes, and a full disk: files stay usable, and a failed write is an error.

    killed_test.py PROGRAM GOLDEN_CASE [--kills N]"""
import argparse
import json
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time

EXIT_OK = 0


def whole(path):
    """Whether a safetensors file is as long as its header says."""
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    ends = [t["data_offsets"][1] for n, t in header.items() if n != "__metadata__"]
    return len(content) == 8 + length + max(ends)


class Runs:
    def __init__(self, program, case, folder):
        self.program, self.case, self.folder = program, case, folder
        self.output = os.path.join(folder, "output.safetensors")
        self.environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"))

    def command(self, output=None):
        return [self.program, "case", self.case, "--quiet", "--output", output or self.output]

    def start(self):
        return subprocess.Popen(self.command(), env=self.environment, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def run(self, output=None, limit=None):
        def shrink():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        return subprocess.run(self.command(output), env=self.environment, capture_output=True,
                              text=True, preexec_fn=shrink if limit is not None else None)


def check(holds, what):
    if not holds:
        sys.exit(f"killed: not so: {what}")


def kill_often(runs, kills):
    """Kills -9 at random times, mostly near the end, where files are written."""
    check(runs.run().returncode == EXIT_OK, "an undisturbed run succeeds")
    begun = time.monotonic()
    check(runs.run().returncode == EXIT_OK, "and another, with the cache of the first")
    length = time.monotonic() - begun
    with open(runs.output, "rb") as file:
        wanted = file.read()
    random.seed(1)
    killed = 0
    for _ in range(kills):
        process = runs.start()
        time.sleep(length * random.choice((random.uniform(0, 1), random.uniform(0.6, 1))))
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        with open(runs.output, "rb") as file:
            check(file.read() == wanted, "the output is the old one or the new one, whole")
    done = runs.run()
    check(done.returncode == EXIT_OK and not done.stderr, "the cache that was left is usable")
    os.remove(runs.output)
    for _ in range(kills // 4):
        process = runs.start()
        time.sleep(length * random.uniform(0.5, 1))
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        if os.path.exists(runs.output):
            check(whole(runs.output), "an output that is there is whole")
            os.remove(runs.output)
    print(f"killed: {killed} runs killed in {kills + kills // 4}, files usable")


def fill_disk(runs):
    """A file size limit is to the program what a full disk is: writing fails in the middle."""
    check(runs.run().returncode == EXIT_OK, "an output to keep")
    with open(runs.output, "rb") as file:
        wanted = file.read()
    before = set(os.listdir(runs.folder))
    failed = runs.run(limit=512)
    check(failed.returncode not in (EXIT_OK, -signal.SIGXFSZ) and failed.returncode > 0,
          f"a full disk is an error, got {failed.returncode}")
    check("output.safetensors" in failed.stderr, f"which names the file: {failed.stderr}")
    with open(runs.output, "rb") as file:
        check(file.read() == wanted, "and the old file stands")
    check(set(os.listdir(runs.folder)) == before, "and no temporary file is left")
    print("killed: a full file system is an error, and the old file stands")


def fill_tmpfs(runs):
    """The same on a real file system, where mounting one is allowed."""
    place = os.path.join(runs.folder, "small")
    os.mkdir(place)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", place],
                             capture_output=True)
    if mounted.returncode != 0:
        print("skipped: no file system can be mounted here")
        return
    try:
        failed = runs.run(os.path.join(place, "output.safetensors"))
        check(failed.returncode > 0 and "No space left" in failed.stderr,
              f"a full disk says so: {failed.returncode} {failed.stderr}")
        check(not os.listdir(place), "and leaves nothing")
        print("killed: a full tmpfs is an error that says so")
    finally:
        subprocess.run(["umount", place], check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("case")
    parser.add_argument("--kills", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(options.program, options.case, folder)
        kill_often(runs, options.kills)
        fill_disk(runs)
        fill_tmpfs(runs)


if __name__ == "__main__":
    main()
