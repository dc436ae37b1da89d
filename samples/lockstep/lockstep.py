#!/usr/bin/env python3
"""A lockstep game whose characters think by a model: players exchange inputs only, never results.

Each player is a process on a separate device. At every step all get the same input, a few letters. Each
asks its copy of the model for the scores of what comes next. It takes a choice from them into its state of
the game, and tells a digest of that state. As long as digests are equal, the players are in the same world.

    samples/lockstep/lockstep.py models/shakespeare --steps 1000 \\
        --player "tools/drivers run lavapipe" --player "tools/drivers run swiftshader"

A --player is what stands before the command of a player's process: it picks the device. Without
`precision="reproducible"` (--precision f32) the players part within some steps.
"""
import argparse
import hashlib
import random
import shlex
import subprocess
import sys
from pathlib import Path

WINDOW = 16  # letters that a character remembers


def play(model_folder, precision, options):
    """A player: a line of letters comes in, a line with the digest of the state goes out."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings" / "python"))
    import vkformer

    device = vkformer.Device(**dict(option.split("=", 1) for option in options))
    session = vkformer.Session(vkformer.Model(model_folder, device, precision=precision))
    memory = [32] * WINDOW
    world = hashlib.sha256()
    for line in sys.stdin:
        memory = (memory + list(line.rstrip("\n").encode()))[-WINDOW:]
        logits = memoryview(session.run({"input_ids": [memory]})["logits"]).cast("B").cast("f")
        width = len(logits) // WINDOW
        scores = logits[(WINDOW - 1) * width:]
        memory = (memory + [max(range(width), key=scores.__getitem__)])[-WINDOW:]
        world.update(bytes(memory))
        world.update(scores)
        print(world.hexdigest(), flush=True)


def start(before, args, options):
    command = shlex.split(before) + [sys.executable, __file__, args.model, "--play", "--precision", args.precision]
    for option in options:
        command += ["--option", option]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def step(players, line):
    for player in players:
        player.stdin.write(line + "\n")
        player.stdin.flush()
    return [player.stdout.readline().strip() for player in players]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a decoder over bytes, such as models/shakespeare")
    parser.add_argument("--player", action="append", default=[], help="what starts a player, such as a driver")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="of the inputs")
    parser.add_argument("--precision", default="reproducible", choices=["f32", "reproducible"])
    parser.add_argument("--option", action="append", default=[], help="of the second player's device: tier=baseline")
    parser.add_argument("--play", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.play:
        play(args.model, args.precision, args.option)
        return 0
    starts = args.player or ["", ""]
    players = [start(before, args, args.option if i > 0 else []) for i, before in enumerate(starts)]
    inputs = random.Random(args.seed)
    for number in range(1, args.steps + 1):
        digests = step(players, "".join(inputs.choice("abcdefghijklmnopqrstuvwxyz ,.") for _ in range(3)))
        if "" in digests:
            print(f"player {digests.index('')} ended at step {number}", file=sys.stderr)
            return 1
        if len(set(digests)) > 1:
            print(f"step {number}: the players are in different worlds: {' '.join(d[:16] for d in digests)}")
            return 1
    print(f"{args.steps} steps, {len(players)} players, one world: {digests[0][:16]}")
    for player in players:
        player.stdin.close()
        player.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
