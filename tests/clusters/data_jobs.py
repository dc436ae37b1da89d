"""Data jobs that several processes share: how tests start, kill and compare them."""
import json
import os
import random
import subprocess
import time


class DataJob:
    """One job of `vkformer embed` over lines of text, in a separate folder."""

    def __init__(self, program, model, folder, lines=160, arguments=()):
        self.program, self.model, self.folder = program, model, folder
        self.input, self.output = (os.path.join(folder, name) for name in ("in.jsonl", "out.jsonl"))
        self.lines = [json.dumps({"text": f"text number {i}", "id": i}) for i in range(lines)]
        self.arguments = ["--batch", "1", *arguments]
        os.makedirs(folder, exist_ok=True)
        self.write_input(self.lines)

    def write_input(self, lines):
        with open(self.input, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))

    def command(self, *more, output=None):
        return [self.program, "embed", self.model, "--input", self.input, "--output",
                output or self.output, "--cache-dir", "none", "--quiet", *self.arguments, *more]

    def shared(self, *more, output=None):
        return self.command("--shared", "--shared-window", "4", *more, output=output)

    def start(self, *more, before=()):
        return subprocess.Popen([*before, *self.shared(*more)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")

    def run(self, *more):
        return subprocess.run(self.shared(*more), capture_output=True,
                              encoding="utf-8", timeout=600)

    def whole(self):
        """What one process that shares with nobody writes."""
        alone = os.path.join(self.folder, "alone.jsonl")
        if not os.path.exists(alone):
            subprocess.run(self.command(output=alone), check=True, timeout=600)
        with open(alone, encoding="utf-8") as file:
            return file.read()

    def written(self):
        with open(self.output, encoding="utf-8") as file:
            return file.read()

    def leftovers(self):
        """What the folder has beside the three small files that stay."""
        return sorted(set(os.listdir(self.output + ".job")) -
                      {"job.json", "locks", "written.json"})

    def wrong(self):
        """Why the output is not whole, in order and once; None: it is."""
        written, whole = self.written(), self.whole()
        if written != whole:
            ids = [json.loads(line).get("id") for line in written.splitlines()]
            return f"output differs: {len(ids)} lines for {len(self.lines)}, ids {ids[:20]}..."
        return f"left over: {self.leftovers()}" if self.leftovers() else None


def kill_at_random(job, processes, kills, seed, longest=3.0):
    """Runs the job by that many processes, of which `kills` are killed at random moments and replaced.
    What is wrong then, and how many were killed before they ended."""
    chance = random.Random(seed)
    running = [job.start() for _ in range(processes)]
    killed = 0
    for _ in range(kills):
        time.sleep(chance.uniform(0, longest))
        place = chance.randrange(processes)
        running[place].kill()
        killed += running[place].wait() < 0
        running[place].communicate()
        running[place] = job.start()
    failures = []
    for process in running:
        _, errors = process.communicate(timeout=600)
        if process.returncode != 0:
            failures.append(errors)
    return (failures or job.wrong()), killed
