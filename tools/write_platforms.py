#!/usr/bin/env python3
"""Writes the tables of docs/platforms.md from `tandem simulate --validate --json`.

Usage: tools/write_platforms.py build/release/tandem
"""
import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "platforms.md"
MARK = "<!-- tables -->"
# Networks whose entries are all listed; the others are in --json.
LISTED = ["resnet18", "squeezenet_v1_0", "mobilenet_w1", "mobilenetv2_w1", "densenet121",
          "bninception", "resnet50", "vgg16", "vit_b_16", "vit_b_32"]


def percent(x):
    return f"{100 * x:.1f}"


def cells(summary):
    if summary["entries"] == 0:
        return "0 | - | -"
    return f"{summary['entries']} | {percent(summary['median'])} | {percent(summary['p90'])}"


def summary_tables(report):
    lines = ["| simulated, held out | entries | median error, % | p90 |", "| --- | --- | --- | --- |"]
    for kind, summary in report["held_out"].items():
        lines.append(f"| {kind} | {cells(summary)} |")
    lines += ["", "| ranking of held-out pairs that measurements set more than 5% apart | pairs | right, % |",
              "| --- | --- | --- |"]
    names = {"cpu_and_gpu": "a GPU and each combination of CPU cores",
             "fastest_cpu_and_gpu": "a GPU and the fastest combination of CPU cores",
             "platforms": "two platforms: their GPUs, their fastest combinations of CPU cores"}
    for key, name in names.items():
        ranking = report["held_out_rankings"][key]
        lines.append(f"| {name} | {ranking['pairs']} | {percent(ranking['share'])} |")
    lines += ["", "| simulated | held out: entries | median error, % | p90 | fitted to: entries | median "
              "error, % | p90 |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for name, group in report["groups"].items():
        lines.append(f"| {name} | {cells(group['held_out'])} | {cells(group['fitted'])} |")
    return lines


def entry_tables(report):
    """Rows by network, columns by lane; every cell: simulated / published (error)."""
    by_platform = collections.defaultdict(lambda: collections.defaultdict(dict))
    others = []
    for entry in report["entries"]:
        source, platform, *rest = entry["id"].split("/")
        if entry["kind"] == "network" and rest[-1] in LISTED:
            by_platform[platform][rest[-1]].setdefault(rest[0], []).append((source, entry))
        elif entry["kind"] != "network" and not entry["id"].startswith("phones/"):
            others.append(entry)
    lines = ["", "Single entries: simulated / published milliseconds and the error in %; *held out*. All entries: "
             "`tandem simulate --validate --json`."]
    for platform in sorted(by_platform):
        networks = by_platform[platform]
        lines += ["", f"**{platform}**", "", "| network | lanes | source | simulated / published | error |",
                  "| --- | --- | --- | --- | --- |"]
        for network in sorted(networks, key=LISTED.index):
            for lanes, found in networks[network].items():
                for source, entry in found:
                    text = (f"{network} | {lanes} | {source} | {entry['simulated']:.1f} / "
                            f"{entry['published']:.1f} | {100 * entry['error']:+.0f}")
                    if entry["held_out"]:
                        text = " | ".join(f"*{cell}*" for cell in text.split(" | "))
                    lines.append(f"| {text} |")
    lines += ["", "**Operators, synchronisation and speed-ups from papers**", "",
              "| entry | simulated / published | error | source |", "| --- | --- | --- | --- |"]
    for entry in others:
        name = f"*{entry['id']}*" if entry["held_out"] else entry["id"]
        lines.append(f"| {name} | {entry['simulated']:.4g} / {entry['published']:.4g} {entry['unit']} | "
                     f"{100 * entry['error']:+.0f} | {entry['source']} |")
    return lines


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    run = subprocess.run([sys.argv[1], "simulate", "--validate", "--json"], cwd=ROOT, check=True,
                         capture_output=True, text=True)
    report = json.loads(run.stdout)
    text = PAGE.read_text()
    head = text[:text.index(MARK) + len(MARK)]
    PAGE.write_text(head + "\n\n" + "\n".join(summary_tables(report) + entry_tables(report)) + "\n")


if __name__ == "__main__":
    main()
