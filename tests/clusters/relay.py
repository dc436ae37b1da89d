#!/usr/bin/env python3
"""Joins two network namespaces by a link that is as slow and lossy as asked.

    relay.py FIRST SECOND --delay MS [--loss SHARE] [--seed N]

Each namespace gets a device vkf0, 10.77.0.1 and 10.77.0.2. A packet arrives MS milliseconds after it was sent, and of
all packets the share SHARE is dropped at random. It prints "ready" when the link is up, and runs until it is killed.
Kernels without netem have no other way. Needs root."""
import argparse
import collections
import ctypes
import fcntl
import os
import random
import select
import struct
import subprocess
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
MOST_WAITING = 4096  # packets under way; more are dropped, as a full queue does


def enter(namespace):
    """os.setns came with Python 3.12."""
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def open_device(namespace, address):
    """The file descriptor of a new device in the namespace. The process comes back to its own namespace."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    enter(there)
    try:
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"vkf0", IFF_TUN | IFF_NO_PI))
        subprocess.run(["ip", "addr", "add", address + "/24", "dev", "vkf0"], check=True)
        subprocess.run(["ip", "link", "set", "vkf0", "up"], check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    finally:
        enter(home)
        os.close(home)
        os.close(there)
    return device


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--loss", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    first = open_device(options.first, "10.77.0.1")
    second = open_device(options.second, "10.77.0.2")
    other = {first: second, second: first}
    waiting = collections.deque()  # (when, device, packet); the delay is one for all, so they stay in order
    print("ready", flush=True)
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, device, packet = waiting.popleft()
            try:
                os.write(device, packet)
            except BlockingIOError:
                pass  # the other side's queue is full: the packet is lost
        rest = max(0, waiting[0][0] - now) if waiting else None
        for device in select.select([first, second], [], [], rest)[0]:
            packet = os.read(device, 65536)
            if len(waiting) < MOST_WAITING and chance.random() >= options.loss:
                waiting.append((time.monotonic() + options.delay / 1000, other[device], packet))


main()
