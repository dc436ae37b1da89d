#!/usr/bin/env python3
"""Reports of `vkformer bench ... --json FILE` as a picture and as a table.

    bench/plot_benchmarks.py REPORT.json [REPORT.json ...] [--plot docs/benchmarks.svg]
                             [--text FILE.md]

The picture (needs python3-matplotlib) has a bar for every operator's row. The bar is its share of the roofline that
binds
it. Each report has one color, and a line marks a third. The table is Markdown, for the first report: operators, then
models.
"""

import argparse
import json

THIRD = 1 / 3
COLOURS = ["#2f6db3", "#d9822b", "#3d9a57", "#8a5bb0"]


def read(path):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    if report.get("format") != "vkformer-bench-1":
        raise SystemExit(f"{path} is no report of `vkformer bench --json FILE`")
    return report


def section(report, name):
    return [row for row in report["rows"] if row["section"] == name]


def title(report):
    return f"{report['device']}, {report['driver']}, tier {report['tier']}, {report['date']}"


def draw(reports, path):
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "vkformer", "svg.fonttype": "none"})
    from matplotlib import pyplot

    names = [row["name"] for row in section(reports[0], "operators")]
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.2 * len(names)))
    height = 0.8 / len(reports)
    for index, report in enumerate(reports):
        shares = {row["name"]: row.get("share", 0) for row in section(report, "operators")}
        places = [place + height * (index + 0.5) - 0.4 for place in range(len(names))]
        axes.barh(
            places,
            [100 * shares.get(name, 0) for name in names],
            height=height,
            color=COLOURS[index % len(COLOURS)],
            label=title(report),
        )
    axes.axvline(100 * THIRD, color="#777777", linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(names)), names, fontsize=6)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("share of the measured roofline that binds, %")
    axes.legend(fontsize=6, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def short(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def lines_of(report, name, heading):
    text = f"| {heading} | measured | GFLOP/s | GB/s | of roofline | |\n|---|---|---|---|---|---|\n"
    for row in section(report, name):
        share = f"{100 * row['share']:.0f}% {row['bound']}" if "share" in row else ""
        # Inputs of an operator are in the table of the source; a reason follows them.
        note = row.get("note", "")
        if name == "operators":
            note = note.split("; ", 1)[1] if "; " in note else ""
        cells = [row["name"], f"{short(row['value'])} {row['unit']}"]
        cells += [short(row[key]) if key in row else "" for key in ("gflops", "gbytes")]
        text += "| " + " | ".join(cells + [share, note]) + " |\n"
    return text


def table(report):
    text = title(report) + "\n\n"
    roofline = [f"{row['name']} {short(row['value'])} {row['unit']}" for row in section(report, "roofline")]
    text += "Roofline: " + ", ".join(roofline) + ".\n"
    for name, heading in (("operators", "operator"), ("models", "model")):
        if section(report, name):
            text += "\n" + lines_of(report, name, heading)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("reports", nargs="+", metavar="REPORT.json")
    parser.add_argument("--plot", help="picture to write, .svg or .png")
    parser.add_argument("--text", help="Markdown to write; printed without it")
    options = parser.parse_args()
    reports = [read(path) for path in options.reports]
    if options.plot:
        draw(reports, options.plot)
    if options.text:
        with open(options.text, "w", encoding="utf-8") as file:
            file.write(table(reports[0]))
    elif not options.plot:
        print(table(reports[0]), end="")


if __name__ == "__main__":
    main()
