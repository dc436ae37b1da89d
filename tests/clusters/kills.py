#!/usr/bin/env python3
"""Data jobs whose processes are killed: outputs are whole, in order, nothing twice, nothing missing.

    kills.py PROGRAM MODEL [--jobs 20] [--seed N]

First at random moments, three processes a job. Then, by strace, at each of the calls by which a process changes files,
one after the other."""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile

import data_jobs

# What changes files; the process ends where it makes the call for the n-th time.
CALLS = {"pwrite64": 12, "rename,renameat,renameat2": 10, "fsync": 24, "ftruncate": 1,
         "unlink,unlinkat": 4, "mkdir,mkdirat": 1}


def random_kills(arguments, folder):
    failures, all_killed = 0, 0
    for number in range(arguments.jobs):
        chance = random.Random(arguments.seed + number)
        job = data_jobs.DataJob(arguments.program, arguments.model,
                                os.path.join(folder, f"job{number}"),
                                lines=chance.choice((37, 80, 160)))
        wrong, killed = data_jobs.kill_at_random(job, 3, chance.randint(3, 7),
                                                 arguments.seed + number, longest=1.5)
        print(f"job {number}: {len(job.lines)} inputs, {killed} killed: {wrong or 'whole'}",
              flush=True)
        failures += bool(wrong)
        all_killed += killed
    print(f"{arguments.jobs} jobs, {all_killed} processes killed, {failures} jobs not whole")
    return failures == 0 and all_killed > 0


def strace_works():
    result = subprocess.run(["strace", "-qq", "-e", "inject=getcwd:signal=KILL:when=1", "pwd", "-P"],
                            capture_output=True)
    return result.returncode != 0


def kills_at_calls(arguments, folder):
    """Whether a second process finishes each job whose first one ends at a call."""
    good, ended = True, 0
    for calls, most in CALLS.items():
        for when in range(1, most + 1):
            job = data_jobs.DataJob(arguments.program, arguments.model,
                                    os.path.join(folder, f"call-{calls.split(',')[0]}-{when}"), lines=14)
            known = [call for call in calls.split(",") if call_exists(call)]
            names = ",".join(known)
            first = job.start(before=("strace", "-f", "-qq", "-o", "/dev/null", "-e",
                                      f"trace={names}", "-e",
                                      f"inject={names}:signal=KILL:when={when}"))
            first.communicate(timeout=600)
            ended += first.returncode != 0
            second = job.run()
            wrong = second.stderr if second.returncode else job.wrong()
            if wrong:
                print(f"killed at call {when} of {calls}: {wrong}", flush=True)
                good = False
    print(f"{sum(CALLS.values())} jobs, {ended} ended at a call; "
          f"{'all whole' if good else 'NOT all whole'}")
    return good and ended > sum(CALLS.values()) // 2


def call_exists(call):
    return subprocess.run(["strace", "-qq", "-e", f"trace={call}", "true"],
                          capture_output=True).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory() as folder:
        good = random_kills(arguments, folder)
        if shutil.which("strace") and strace_works():
            good = kills_at_calls(arguments, folder) and good
        else:
            print("skipped: kills at calls: strace is not installed or may not trace")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
