#!/usr/bin/env python3
"""How well slices keep their budgets, of `vkformer_frame_budget`, as a picture and as a table.

    bench/plot_frame_budgets.py bench/results/2026-11-frame-budgets.json
        [--plot docs/frame_budgets.svg] [--page docs/embedding.md] [--check]

The picture is an SVG without any library. It has for every driver and budget the median, 90th and 99th percentile and
the longest slice, as parts of the budget. A fixed pass measures that a driver's 99th percentile is N times its median.
Such a driver can use 1.25 / N of a budget in the median without exceeding 1.25 of it. "Used of what noise leaves" is
the median as a part of that. --page rewrites the table on that page. With --check nothing is written, and
a file that would change is an error."""

import argparse
import json
import sys
from html import escape
from pathlib import Path

HEADER = ("| driver | work | budget | median | 90% | 99% | longest | 99% of budget | "
          "reference pass, 99% of median | used of what noise leaves | frames a result | "
          "calls above 1 ms |\n"
          + "|---" * 12 + "|\n")
MARKS = (("p50_us", "#2f6db3", "median"), ("p90_us", "#3d9a57", "90%"),
         ("p99_us", "#d9822b", "99%"), ("max_us", "#999999", "longest"))
LEFT, WIDTH, ROW = 400, 420, 22
MOST = 3.0  # budgets that the picture shows


def rows_of(document):
    for report in document["reports"]:
        for row in report["rows"]:
            yield report["driver"].strip(), row


def table(document):
    text = HEADER
    for driver, row in rows_of(document):
        times = [f"{row[key] / 1000:.2f} ms" for key, _, _ in MARKS]
        cells = [driver, row["work"], f"{row['budget_us'] / 1000:g} ms", *times,
                 f"{row['p99_of_budget']:.2f}", f"{row['reference_p99_of_p50']:.2f}",
                 f"{row['p50_us'] / row['budget_us'] * row['reference_p99_of_p50'] / 1.25:.2f}",
                 f"{row['frames'] / max(1, row['results']):.0f}",
                 f"{row['calls_above_1_ms']} of {row['calls']:,}"]
        text += "| " + " | ".join(cells) + " |\n"
    return text


def line(x, top, bottom, color, dash=""):
    style = f' stroke-dasharray="{dash}"' if dash else ""
    return (f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="{color}"'
            f"{style}/>\n")


def words(x, y, text, anchor="start"):
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>\n'


def place(share):
    return LEFT + WIDTH * min(share, MOST) / MOST


def picture(document):
    rows = list(rows_of(document))
    bottom = 40 + ROW * len(rows)
    height = bottom + 45
    body = words(10, 20, "GPU time of slices as part of their budget, "
                 f"{rows[0][1]['frames']:,} slices a row")
    for tick in range(7):
        share = tick * MOST / 6
        body += line(place(share), 32, bottom, "#dddddd")
        body += words(place(share), bottom + 14, f"{100 * share:.0f}%", "middle")
    body += line(place(1), 32, bottom, "#333333") + line(place(1.25), 32, bottom, "#333333", "4 3")
    for index, (driver, row) in enumerate(rows):
        y = 40 + ROW * index + ROW // 2
        body += words(10, y + 4, f"{driver}, {row['work']}, {row['budget_us'] / 1000:g} ms")
        low, high = (place(row[key] / row["budget_us"]) for key in ("p50_us", "p99_us"))
        body += (f'<rect x="{low:.1f}" y="{y - 3}" width="{max(0, high - low):.1f}" height="6" '
                 'fill="#d8e3f0"/>\n')
        for key, color, _ in MARKS:
            x = place(row[key] / row["budget_us"])
            body += f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="{color}"/>\n'
    x = LEFT
    for _, color, name in MARKS:
        body += f'<circle cx="{x}" cy="{height - 12}" r="4" fill="{color}"/>\n'
        body += words(x + 8, height - 8, name)
        x += 75
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 30}" '
            f'height="{height}" font-family="sans-serif" font-size="11">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n{body}</svg>\n')


def page_with(text, document):
    start = text.index("| driver | work |")
    end = start
    while text.startswith("|", end):
        end = text.index("\n", end) + 1
    return text[:start] + table(document) + text[end:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("results", metavar="RESULTS.json", type=Path)
    parser.add_argument("--plot", type=Path, help="SVG to write")
    parser.add_argument("--page", type=Path, help="Markdown page whose table is rewritten")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()
    document = json.loads(options.results.read_text(encoding="utf-8"))
    made = {}
    if options.plot:
        made[options.plot] = picture(document)
    if options.page:
        made[options.page] = page_with(options.page.read_text(encoding="utf-8"), document)
    if not made:
        print(table(document), end="")
    for path, text in made.items():
        if not options.check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path} is not what {options.results} gives; run this without --check")


if __name__ == "__main__":
    main()
