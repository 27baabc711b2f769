#!/usr/bin/env python3
"""Measures what docs/results.md shows, and writes it. Takes some ten minutes; leave the machine alone.

Every table says by which command it was made, on what, and when.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime

from tandem_cli import STRATEGIES, TandemError, run_tandem

NETWORKS = (
    "vgg16", "resnet18", "resnet50", "inception_v3", "mobilenet_v2", "squeezenet1_1", "vit_b_32",
    "deit_tiny",
)
SHAPES = ("vgg16", "resnet50", "inception_v3", "mobilenet_v2", "vit_b_32")
RUNS = 31


def revision():
    """Of the sources, which the binary is taken to be built from."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def priority():
    if os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR):
        return "with real-time priority (chrt), because other work was running on the machine"
    return "with normal priority"


def conditions(report):
    facts = report["conditions"]
    lanes = "; ".join(
        f"{lane['name']} on cores {','.join(map(str, lane['cores'])) or 'of its own'} "
        f"({lane['description']})"
        for lane in facts["lanes"]
    )
    return (
        f"Machine: {facts['cpu']}, {facts['processors']} processors, {facts['stolen_percent']:.1f}% "
        f"of the time taken by the hypervisor, load {facts['load_average']:.1f} at the end, run "
        f"{priority()}. "
        f"Lanes: {lanes}. {facts['date']}.\n"
    )


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


class Results:
    """Sections of the file, in the order of their measurement."""

    def __init__(self, tandem):
        self.tandem = tandem
        self.sections = []

    def command(self, *arguments):
        shown = " ".join(["tandem", *map(str, arguments)])
        print(f"{shown} ...", flush=True)
        report = json.loads(run_tandem(self.tandem, *arguments, "--json", timeout=3600))
        return shown, report

    def add(self, title, command, text, report):
        self.sections.append(f"## {title}\n\n`{command}`\n\n{text}\n{conditions(report)}")

    def synchronization(self):
        command, report = self.command("bench", "sync")
        rows = []
        for name, costs in report["mechanisms"].items():
            if not costs["available"]:
                rows.append([name, "not available: " + costs["reason"], "", ""])
                continue
            cells = [
                f"{costs[key + '_us']:.2f} ({costs[key + '_p90_us']:.2f})"
                for key in ("cpu_to_gpu", "gpu_to_cpu", "round_trip")
            ]
            rows.append([name, *cells])
        header = ["mechanism", "CPU to OpenCL", "OpenCL to CPU", "round trip"]
        text = "Microseconds a crossing, median (p90).\n\n" + table(header, rows)
        self.add("Synchronisation", command, text, report)

    def operators(self):
        files = [f"bench/shapes/{name}.csv" for name in SHAPES]
        command, report = self.command("bench", "op", "--samples", 15, "--shapes", *files)
        rows = [
            [
                s["lane"], s["class"], s["shapes"], f"{s['gflops']:.0f}", f"{s['share']:.2f}",
                f"{s['median_share']:.2f}", f"{s['worst_share']:.2f} ({s['worst_shape']})",
                f"{s['target']:.2f} {'reached' if s['reached'] else 'missed'}"
                if "target" in s else "",
            ]
            for s in report["summary"]
        ]
        probe = report["probe_after"]
        text = (
            "Speed of the lanes as a share of a library called directly on the same cores, with the "
            "layout that it likes best: CPU lanes of the better of oneDNN and XNNPACK, OpenCL lanes "
            "of oneDNN. Overall: over the time of all shapes, counted as often as the networks have "
            "them. The cores' multiply-add rate was "
            f"{'/'.join(f'{x:.0f}' for x in probe['alone_gflops'])} GFLOPS alone and "
            f"{'/'.join(f'{x:.0f}' for x in probe['together_gflops'])} GFLOPS together.\n\n"
        )
        header = ["lane", "shapes", "number", "GFLOPS", "overall", "median", "worst", "target"]
        self.add("Operators", command, text + table(header, rows), report)

    def onnxruntime_ms(self, name, folder):
        """Median with two threads, on a random input."""
        path = Path(folder) / f"{name}.onnx"
        run_tandem(self.tandem, "zoo", "export", name, "-o", path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        declared = session.get_inputs()[0]
        values = np.random.default_rng(1).standard_normal(declared.shape, dtype=np.float32)
        times = []
        for _ in range(RUNS):
            begin = time.perf_counter()
            session.run(None, {declared.name: values})
            times.append(time.perf_counter() - begin)
        path.unlink()
        return 1000 * float(np.median(times))

    def networks(self):
        rows = []
        report = None
        with tempfile.TemporaryDirectory(prefix="tandem-results-") as folder:
            for name in NETWORKS:
                other = self.onnxruntime_ms(name, folder)
                _, report = self.command(
                    "run", f"zoo:{name}", "--compare", ",".join(STRATEGIES), "--runs", RUNS
                )
                medians = [s["time_ms"] for s in report["strategies"]]
                intra = report["strategies"][-1]
                rows.append(
                    [
                        name,
                        *(f"{time['median']:.2f}" for time in medians),
                        f"{100 * intra['time_ms']['spread']:.0f}%",
                        f"{intra['speed_up_over_best_lane']:.2f}",
                        f"{report['limit']:.2f}",
                        f"{intra['share_of_limit']:.2f}",
                        f"{other:.2f}",
                    ]
                )
        header = [
            "network", *STRATEGIES, "spread of intra", "intra over best lane", "limit",
            "share of limit", "ONNX Runtime, 2 threads",
        ]
        text = (
            "Milliseconds an inference, medians of interleaved runs (ONNX Runtime's were taken just "
            "before, not interleaved). Limit: 1 + t_fast / t_slow of the two lanes alone.\n\n"
        )
        command = f"tandem run zoo:NETWORK --compare {','.join(STRATEGIES)} --runs {RUNS}"
        self.add("Networks", command, text + table(header, rows), report)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tandem", required=True, help="the tandem binary")
    parser.add_argument("-o", "--output", default="docs/results.md")
    arguments = parser.parse_args()
    results = Results(arguments.tandem)
    results.synchronization()
    results.operators()
    results.networks()
    introduction = (
        f"# Measurements\n\nWritten by `tools/write_results.py` at revision {revision()}, all on real "
        "devices; nothing here is simulated. Machines differ and are disturbed: ratios of figures of "
        "one table mean something, figures of different tables need not.\n"
    )
    Path(arguments.output).write_text("\n".join([introduction, *results.sections]), encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except (TandemError, OSError) as error:
        print(f"write_results: {error}", file=sys.stderr)
        sys.exit(1)
