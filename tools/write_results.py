#!/usr/bin/env python3
"""Measures what docs/results.md shows, and writes it. Takes some twenty minutes; leave the machine alone.

Every table says by which command it was made, on what, when, and at which revision. With --sections
only those are measured; the file's others stay.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from results_lanes import LaneResults
from results_predictors import PredictorResults
from results_schedules import ScheduleResults
from results_splits import SplitResults
from results_text import probe_text, table
from tandem_cli import TandemError, run_tandem

NETWORKS = (
    "vgg16", "resnet18", "resnet34", "resnet50", "inception_v3", "inception_v4", "inception_resnet_v2",
    "mobilenet_v2", "squeezenet1_1", "peleenet", "hrnet_w18", "vit_b_32", "vit_b_16", "deit_tiny",
)
NETWORK_STRATEGIES = ("cpu", "gpu", "inter", "intra", "chain", "joint")
# What joint should reach there, of 1 + t_fast / t_slow.
OF_LIMIT_TARGET = 0.8
OF_LIMIT_NETWORKS = ("vgg16", "resnet50", "inception_v3", "vit_b_32")
SHAPES = ("vgg16", "resnet50", "inception_v3", "mobilenet_v2", "vit_b_32")
NETWORK_RUNS = 31

INTRODUCTION = """# Measurements

Written by `tools/write_results.py`, all on real devices; nothing here is simulated. Machines differ and
are disturbed: ratios of figures of one table mean something, figures of different tables need not.
"""


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
    if "platform" not in report and "conditions" not in report:  # of problems, not of a machine
        return f"Revision {revision()}.\n"
    facts = report.get("conditions")
    if facts is None:  # nothing was measured: the measurements are older
        today = datetime.date.today().isoformat()
        return f"Platform: {report['platform']}. {today}, revision {revision()}.\n"
    lanes = "; ".join(
        f"{lane['name']} on cores {','.join(map(str, lane['cores'])) or 'of its own'} "
        f"({lane['description']})"
        for lane in facts["lanes"]
    )
    return (
        f"Machine: {facts['cpu']}, {facts['processors']} processors, {facts['stolen_percent']:.1f}% "
        f"of the time taken by the hypervisor, load {facts['load_average']:.1f} at the end, run "
        f"{priority()}. "
        f"Lanes: {lanes}. {facts['date']}, revision {revision()}.\n"
    )


def per_core(values, digits):
    return "/".join(f"{value:.{digits}f}" for value in values)


class Results(LaneResults, PredictorResults, ScheduleResults, SplitResults):
    """Measures sections: each method returns a title, a command, a text, and the report with the
    conditions."""

    def __init__(self, tandem):
        self.tandem = tandem
        self.reports = {}

    def command(self, *arguments, environment=None):
        shown = " ".join(["tandem", *map(str, arguments)])
        if environment is None and shown in self.reports:
            return shown, self.reports[shown]
        print(f"{shown} ...", flush=True)
        report = json.loads(
            run_tandem(self.tandem, *arguments, "--json", timeout=3600, environment=environment)
        )
        if environment is None:
            self.reports[shown] = report
        return shown, report

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
        return "Synchronisation", command, text, report

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
            f"{per_core(probe['alone_gflops'], 0)} GFLOPS alone and "
            f"{per_core(probe['together_gflops'], 0)} GFLOPS together; they read "
            f"{per_core(probe['alone_read_gbps'], 1)} GB/s alone and "
            f"{per_core(probe['together_read_gbps'], 1)} GB/s together.\n\n"
        )
        header = ["lane", "shapes", "number", "GFLOPS", "overall", "median", "worst", "target"]
        return "Operators", command, text + table(header, rows), report

    def networks(self):
        command, report = self.command(
            "bench", "model", *NETWORKS, "--strategy", ",".join(NETWORK_STRATEGIES),
            "--onnxruntime-threads", 2, "--litert-threads", 2, "--runs", NETWORK_RUNS,
        )
        return "Networks", command, self.networks_text(report["models"]), report

    @classmethod
    def networks_text(cls, models):
        """Tables of `bench model`: strategies measured, predicted, and what sessions take."""
        rows = []
        for model in models:
            joint = model["strategies"]["joint"]
            medians = {s: model["strategies"][s]["median_ms"] for s in NETWORK_STRATEGIES}
            verdict = ""
            if model["model"] in OF_LIMIT_NETWORKS:
                verdict = " (reached)" if model["of_limit"] >= OF_LIMIT_TARGET else " (missed)"
            rows.append(
                [
                    model["model"], *(f"{ms:.2f}" for ms in medians.values()),
                    f"{100 * joint['spread']:.0f}%", f"{model['speedup_joint']:.2f}",
                    f"{model['limit']:.2f}", f"{model['of_limit']:.2f}{verdict}",
                    f"{100 * (medians['joint'] / min(medians.values()) - 1):.1f}%",
                    *cls.beside(model, joint, "onnxruntime"), *cls.beside(model, joint, "litert"),
                ]
            )
        header = [
            "network", *NETWORK_STRATEGIES, "spread of joint", "joint over best lane", "limit",
            f"share of limit (target {OF_LIMIT_TARGET})", "behind the best strategy",
            "ONNX Runtime, 2 threads", "joint over ONNX Runtime", "LiteRT, 2 threads",
            "joint over LiteRT",
        ]
        probes = [m[key] for m in models for key in ("probe_before", "probe_after")]
        text = (
            "Milliseconds an inference, medians of interleaved runs; ONNX Runtime and LiteRT have the "
            f"cores of both lanes. {cls.litert_text(models)}Limit: 1 + t_fast / t_slow of the two faster "
            "lanes alone. Targets: within 2% of the best strategy, at most 1.1 times ONNX Runtime's "
            "time. " + probe_text(probes)
        )
        return text + table(header, rows) + "\n" + cls.predictions(models) + "\n" + cls.sessions(models)

    @staticmethod
    def beside(model, joint, engine):
        """Another engine's time, and joint's over it."""
        time = model.get(f"{engine}_ms")
        return ("", "") if time is None else (f"{time:.2f}", f"{joint[f'over_{engine}']:.2f}")

    @staticmethod
    def litert_text(models):
        """Which LiteRT, and what its figures are of."""
        facts = [m["litert"] for m in models if m.get("litert_ms") is not None]
        if not facts:
            return ""
        outside = Counter()
        for fact in facts:
            outside.update(fact["operators_outside_xnnpack"])
        own = ", ".join(f"{count} {name}" for name, count in outside.items())
        worst = max(fact["max_relative_difference"] for fact in facts)
        return (
            f"LiteRT {facts[0]['version']} runs what tools/tflite_export.py makes of the same ONNX files, "
            f"with its XNNPACK delegate ({own or 'no operator'} outside it); its outputs differ from "
            f"Tandem's by at most {worst:.0e} of the greatest. "
        )

    @staticmethod
    def predictions(models):
        """Predicted times of strategies, and how far they are from measured ones."""

        def cell(times):
            if "predicted_ms" not in times:
                return ""
            off = times["predicted_ms"] / times["median_ms"] - 1
            return f"{times['predicted_ms']:.2f} ({100 * off:+.0f}%)"

        rows = [[m["model"], *(cell(m["strategies"][s]) for s in NETWORK_STRATEGIES)] for m in models]
        joints = [m["strategies"]["joint"] for m in models]
        close = sum(abs(t["predicted_ms"] / t["median_ms"] - 1) <= 0.1 for t in joints)
        text = (
            "Predicted milliseconds, and how far they are from the medians above; for joint within 10% "
            f"(the target) on {close} of {len(models)} networks:\n\n"
        )
        return text + table(["network", *NETWORK_STRATEGIES], rows)

    @staticmethod
    def sessions(models):
        """What it takes from the file to joint's session, beside ONNX Runtime."""
        keys = (
            "read", "import", "passes", "predictors", "calibrate", "search", "memory", "lanes", "other",
        )
        rows = []
        for model in models:
            parts, share = model["init_parts"], model["search_share"]
            other = model.get("onnxruntime_init_ms")
            rows.append(
                [
                    model["model"], *(f"{parts[key]:.0f}" for key in keys), f"{model['init_ms']:.0f}",
                    f"{100 * share:.1f}% {'reached' if share < 0.1 else 'missed'}",
                    "" if other is None else f"{other:.0f}",
                ]
            )
        header = [
            "network", "read", "import", "passes", "reading predictors", "calibrating",
            "costs and search", "memory", "lanes", "other", "whole",
            "share of costs and search (target 10%)", "ONNX Runtime's session",
        ]
        text = (
            "Milliseconds from the model's file to a session of joint that is ready, in a process of "
            "its own that has loaded no programs yet (`tandem run FILE`), the median of three such "
            "processes where they take less than a second each. Programs, and what was measured of "
            "crossings, are on disk from an earlier start. Costs and search: predicting every slice "
            "that is asked for, the other strategies as starts, and the search. Lanes: packing "
            "weights, loading programs, first launches. ONNX Runtime's: `InferenceSession(FILE)`, in a "
            "process of its own, too. Starting drivers and importing libraries is in neither.\n\n"
        )
        return text + table(header, rows)


SECTIONS = (
    "synchronization", "operators", "lanes", "networks", "memory", "initialization", "start",
    "predictors", "predicted_networks", "phones", "linear_splits", "convolution_splits", "schedules",
)


def read_sections(path):
    """The sections of a file by title, in order; none if there is no file."""
    if not path.exists():
        return {}
    _, *parts = re.split(r"^(?=## )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {part.splitlines()[0].removeprefix("## "): part.rstrip("\n") + "\n" for part in parts}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tandem", required=True, help="the tandem binary")
    parser.add_argument("-o", "--output", default="docs/results.md", type=Path)
    parser.add_argument(
        "--sections", nargs="+", choices=SECTIONS, default=SECTIONS,
        help="measure only these (default: all)",
    )
    arguments = parser.parse_args()
    results = Results(arguments.tandem)
    # What is measured anew takes its old place, or the next one.
    whole = set(arguments.sections) == set(SECTIONS)
    sections = {} if whole else read_sections(arguments.output)
    for name in SECTIONS:
        if name in arguments.sections:
            title, command, text, report = getattr(results, name)()
            sections[title] = f"## {title}\n\n`{command}`\n\n{text}\n{conditions(report)}"
            arguments.output.write_text(
                "\n".join([INTRODUCTION, *sections.values()]), encoding="utf-8"
            )


if __name__ == "__main__":
    try:
        main()
    except (TandemError, OSError) as error:
        print(f"write_results: {error}", file=sys.stderr)
        sys.exit(1)
