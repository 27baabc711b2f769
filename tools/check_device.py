#!/usr/bin/env python3
"""Tries Tandem on a device, and writes what ran, what did not, and what things cost, as Markdown.

Everything after `--` goes to each command: which device and cores to take, such as
`-- --opencl-device nvidia --cpu-cores 0-5`. docs/devices.md is made of such sections.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tandem_cli import STRATEGIES, TandemError, run_tandem
from write_results import NETWORK_STRATEGIES, Results, conditions, table
from write_results import NETWORKS as RESULTS_NETWORKS

NETWORKS = ("resnet50", "inception_v3", "mobilenet_v2", "vit_b_32")
CHECKED = ("tiny_concat", "tiny_mobilenet", "tiny_vit", "tiny_unet", "squeezenet1_1")
SECTIONS = ("Crossings", "Mechanisms", "Networks", "Strategies")


class Device:
    """The sections of one device, in the order in which they are tried."""

    def __init__(self, tandem, lane_options, runs, models, model_options):
        self.tandem = tandem
        self.models = models
        self.model_options = model_options
        self.lane_options = lane_options
        self.runs = runs

    def command(self, *arguments):
        shown = " ".join(["tandem", *arguments, *self.lane_options])
        print(f"{shown} ...", flush=True)
        report = json.loads(
            run_tandem(self.tandem, *arguments, *self.lane_options, "--json", timeout=600)
        )
        return f"`{shown}`\n\n", report

    def crossings(self):
        shown, report = self.command("bench", "sync")
        rows = []
        for name, costs in report["mechanisms"].items():
            if costs["available"]:
                rows.append([name, *(f"{costs[key + '_us']:.2f} ({costs[key + '_p90_us']:.2f})"
                                     for key in ("cpu_to_gpu", "gpu_to_cpu", "round_trip"))])
            else:
                rows.append([name, "not available: " + costs["reason"], "", ""])
        header = ["mechanism", "CPU to OpenCL", "OpenCL to CPU", "round trip"]
        return f"{shown}Microseconds a crossing, median (p90).\n\n{table(header, rows)}"

    def mechanisms(self):
        """Which mechanisms give right numbers, each operator against the reference."""
        available = self.command("bench", "sync")[1]["mechanisms"]
        rows = []
        for mechanism, costs in available.items():
            if not costs["available"]:
                continue
            row = [mechanism]
            for model in CHECKED:
                try:
                    self.command("run", f"zoo:{model}", "--strategy", "intra", "--sync", mechanism,
                                 "--runs", "3", "--verify")
                    row.append("agrees")
                except TandemError as error:
                    row.append(str(error).strip().splitlines()[-1].replace("|", "/"))
            rows.append(row)
        text = ("`tandem run zoo:NETWORK --strategy intra --sync MECHANISM --verify`: every operator's "
                "output against the reference in double precision.\n\n")
        return text + table(["mechanism", *CHECKED], rows)

    def networks(self):
        rows = []
        zoo = json.loads(run_tandem(self.tandem, "zoo", "list", "--json"))
        gflop = {network["name"]: network["gflops"] for network in zoo["networks"]}
        for name in NETWORKS:
            _, report = self.command("run", f"zoo:{name}", "--compare", ",".join(STRATEGIES),
                                     "--runs", str(self.runs))
            intra = report["strategies"][-1]
            medians = [s["time_ms"]["median"] for s in report["strategies"]]
            rows.append([name, *(f"{ms:.2f} ({1000 * gflop[name] / ms:.0f})" for ms in medians),
                         f"{intra['speed_up_over_best_lane']:.2f}", f"{report['limit']:.2f}",
                         f"{intra['share_of_limit']:.2f}"])
        shown = " ".join(["tandem run zoo:NETWORK --compare", ",".join(STRATEGIES), "--runs",
                          str(self.runs), *self.lane_options])
        header = ["network", *STRATEGIES, "intra over best lane", "limit", "share of limit"]
        return (f"`{shown}`\n\nMilliseconds an inference, medians of interleaved runs; in brackets GFLOPS.\n\n"
                f"{table(header, rows)}\n{conditions(report)}")

    def strategies(self):
        """The same table as in docs/results.md, on these lanes."""
        shown, report = self.command(
            "bench", "model", *self.models, "--strategy", ",".join(NETWORK_STRATEGIES),
            "--onnxruntime-threads", "2", "--litert-threads", "2", "--runs", str(self.runs),
            *self.model_options,
        )
        return shown + Results.networks_text(report["models"]) + "\n" + conditions(report)


def run_tests(binaries):
    """A row per test program: what passed, what was skipped, what failed."""
    rows = []
    for binary in binaries:
        print(f"{binary} ...", flush=True)
        with tempfile.NamedTemporaryFile("w+", errors="replace") as log:
            try:
                subprocess.run([binary], stdout=log, stderr=log, timeout=900, check=False)
                ended = ""
            except subprocess.TimeoutExpired:
                ended = "stopped after 900 s"
            log.seek(0)
            text = log.read()
        counts = {}
        for word in ("PASSED", "SKIPPED", "FAILED"):
            found = re.search(rf"^\[\s+{word}\s+\] (\d+) tests?", text, re.MULTILINE)
            counts[word] = int(found.group(1)) if found else 0
        failed = sorted(set(re.findall(r"^\[  FAILED  \] ([^ ,\n]+\.[^ ,\n]+)", text, re.MULTILINE)))
        rows.append([Path(binary).name, counts["PASSED"], counts["SKIPPED"], counts["FAILED"],
                     ended or ", ".join(failed[:10])])
    return table(["test program", "passed", "skipped", "failed", ""], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tandem", required=True, help="the tandem binary")
    parser.add_argument("--title", required=True, help="of the section: which machine and device")
    parser.add_argument("--tests", nargs="*", default=[], help="test programs to run on the default lanes")
    parser.add_argument("--sections", nargs="*", default=SECTIONS, choices=SECTIONS)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--models", nargs="*", default=RESULTS_NETWORKS, help="of section Strategies")
    parser.add_argument("--onnxruntime", help="the Python to run ONNX Runtime with, or none")
    parser.add_argument("--litert", help="the Python to run LiteRT with, or none")
    parser.add_argument("-o", "--output", required=True, help="the Markdown file to write")
    parser.add_argument("lane_options", nargs="*", help="after `--`: options of every command")
    arguments = parser.parse_args()
    model_options = []
    for engine in ("onnxruntime", "litert"):
        if python := getattr(arguments, engine):
            model_options += [f"--{engine}", python]
    device = Device(arguments.tandem, arguments.lane_options, arguments.runs, arguments.models,
                    model_options)
    parts = [f"## {arguments.title}\n"]
    failures = 0
    for title in arguments.sections:
        try:
            parts.append(f"### {title}\n\n{getattr(device, title.lower())()}")
        except TandemError as error:
            failures += 1
            parts.append(f"### {title}\n\nFailed: {error}\n")
        Path(arguments.output).write_text("\n".join(parts), encoding="utf-8")
    if arguments.tests:
        parts.append(f"### Tests\n\n{run_tests(arguments.tests)}")
    Path(arguments.output).write_text("\n".join(parts), encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
