#!/usr/bin/env python3
"""A report of `embed_renderer --report` as a picture: frame times, the budget's use, and latency.

    samples/embed_renderer/plot_report.py crowd.json crowd.svg

The picture is an SVG without any library."""

import argparse
import json
from html import escape
from pathlib import Path

WIDTH, LEFT, PANEL, GAP = 900, 60, 150, 50
KINDS = (("words", "#2f6db3"), ("looks", "#3d9a57"), ("texts", "#d9822b"))


def text(x, y, words, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>\n'


def rule(y, words, color="#cc3333"):
    return (f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - 20}" y2="{y:.1f}" stroke="{color}"/>\n'
            + text(LEFT - 4, y + 4, words, "end"))


def bars(top, values, most, color):
    """A bar for each value, from the bottom of the panel that begins at `top`."""
    step = (WIDTH - 20 - LEFT) / max(1, len(values))
    body = ""
    for index, value in enumerate(values):
        height = PANEL * min(value, most) / most
        body += (f'<rect x="{LEFT + index * step:.2f}" y="{top + PANEL - height:.2f}" '
                 f'width="{step:.2f}" height="{height:.2f}" fill="{color}"/>\n')
    return body


def panel(top, title, most, unit):
    return text(LEFT, top - 8, title) + rule(top + PANEL, "0", "#999999") + rule(
        top, f"{most:.0f} {unit}", "#dddddd")


def picture(report):
    frames = [total for total, _ in report["times"]]
    slices = [part for _, part in report["times"]]
    budget = report["budget_us"] / 1000
    top = 30
    most = max(1.0, *frames)
    body = panel(top, f"frames, ms: drawing (blue) and inference (orange), {len(frames)} frames", most, "ms")
    body += bars(top, frames, most, "#2f6db3") + bars(top, slices, most, "#d9822b")
    top += PANEL + GAP
    most = max(1.25 * budget, *slices)
    body += panel(top, "slices of inference, ms; the red line is the budget", most, "ms")
    body += bars(top, slices, most, "#d9822b")
    body += rule(top + PANEL * (1 - budget / most), f"{budget:g} ms")
    top += PANEL + GAP
    kinds = [(name, color, sorted(report[name]["frames"])) for name, color in KINDS if name in report]
    most = max([1, *(max(values, default=1) for _, _, values in kinds)])
    body += panel(top, "frames from a start to its result, sorted: words (blue), looks (green), texts (orange)",
                  most, "")
    for _, color, values in kinds:
        points = " ".join(
            f"{LEFT + (WIDTH - 20 - LEFT) * (i + 0.5) / len(values):.1f},{top + PANEL * (1 - v / most):.1f}"
            for i, v in enumerate(values))
        body += f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>\n'
        for point in points.split():
            x, y = point.split(",")
            body += f'<circle cx="{x}" cy="{y}" r="2" fill="{color}"/>\n'
    height = top + PANEL + 20
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
            f"{body}</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("report", metavar="REPORT.json", type=Path)
    parser.add_argument("picture", metavar="PICTURE.svg", type=Path)
    options = parser.parse_args()
    report = json.loads(options.report.read_text(encoding="utf-8"))
    options.picture.write_text(picture(report), encoding="utf-8")


if __name__ == "__main__":
    main()
