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
import tempfile
from collections import Counter
from pathlib import Path

from results_predictors import PredictorResults
from results_text import table
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
# What one lane should reach: its time over ONNX Runtime's, on these networks.
LANE_TARGETS = {"cpu": 1.15, "gpu": 1.6}
LANE_TARGET_NETWORKS = ("vgg16", "resnet50", "inception_v3", "vit_b_32")
STARTED = "resnet50"
LANE_RUNS = 15
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


def megabytes(count):
    return f"{count / 1e6:.1f}"


def per_core(values, digits):
    return "/".join(f"{value:.{digits}f}" for value in values)


def probe_text(probes):
    """What the cores did beside the measurement: the range over all probes."""

    def extent(key, digits):
        figures = [figure for probe in probes for figure in probe[key]]
        return f"{min(figures):.{digits}f} to {max(figures):.{digits}f}"

    return (
        f"Each core did {extent('alone_gflops', 0)} GFLOPS of multiply-adds alone and "
        f"{extent('together_gflops', 0)} beside the other, and read {extent('alone_read_gbps', 1)} "
        f"GB/s alone and {extent('together_read_gbps', 1)} beside the other, before and after each "
        "network.\n\n"
    )


class Results(PredictorResults):
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

    def bench_all(self):
        """Every network on each lane alone: several sections show this one measurement."""
        return self.command(
            "bench", "model", "--all", "--strategy", "cpu,gpu", "--litert", "none", "--runs",
            LANE_RUNS,
        )

    def lanes(self):
        command, report = self.bench_all()
        rows = []
        for model in report["models"]:
            row = [model["model"], f"{model['onnxruntime_ms']:.2f}"]
            for lane, target in LANE_TARGETS.items():
                times = model["strategies"][lane]
                ratio = times["over_onnxruntime"]
                verdict = ""
                if model["model"] in LANE_TARGET_NETWORKS:
                    verdict = f" ({target:.2f} {'reached' if ratio <= target else 'missed'})"
                row += [
                    f"{times['median_ms']:.2f}", f"{100 * times['spread']:.0f}%",
                    f"{ratio:.2f}{verdict}", f"{times['max_relative_difference']:.0e}",
                ]
            rows.append(row)
        probes = [m[key] for m in report["models"] for key in ("probe_before", "probe_after")]
        version = report["models"][0]["onnxruntime"]["version"]
        text = (
            "Milliseconds an inference, medians of interleaved runs. ONNX Runtime "
            f"{version} has one thread, on the CPU lane's core. Over: the lane's time over ONNX "
            "Runtime's, with the target where there is one. Difference: the greatest from ONNX "
            "Runtime's outputs, relative to the greatest output. " + probe_text(probes)
        )
        header = ["network", "ONNX Runtime"]
        for lane in LANE_TARGETS:
            header += [lane, f"spread of {lane}", f"{lane} over", f"difference of {lane}"]
        return "Networks on one lane", command, text + table(header, rows), report

    def memory(self):
        command, report = self.bench_all()
        rows = []
        for model in report["models"]:
            cpu, gpu = (model["strategies"][lane]["memory"] for lane in ("cpu", "gpu"))
            other = model["onnxruntime"]["memory"]
            rows.append(
                [
                    model["model"],
                    megabytes(cpu["arena_bytes_without_reuse"]),
                    megabytes(cpu["padding_bytes_without_reuse"]),
                    megabytes(cpu["least_bytes"]),
                    megabytes(cpu["arena_bytes"]),
                    f"{cpu['arena_bytes'] / cpu['arena_bytes_without_reuse']:.2f}",
                    megabytes(other["planned_bytes"]),
                    megabytes(other["arena_bytes"]),
                    megabytes(cpu["packed_bytes"]["cpu"]),
                    megabytes(gpu["packed_bytes"]["gpu"]),
                ]
            )
        header = [
            "network", "sum of tensors", "of it padding", "most in use", "arena", "arena over sum",
            "ONNX Runtime, planned", "ONNX Runtime, arena", "packed by cpu", "packed by gpu",
        ]
        text = (
            "Megabytes. The arena holds a network's inputs, activations and outputs on one lane, in "
            "memory that lanes share; most in use: no plan can do with less. ONNX Runtime, planned: "
            "the block that it asks its arena for once it knows the activations (inputs and outputs "
            "are elsewhere); its arena: all that it took from the system for activations and "
            "scratch, in powers of two. Both from its log, with weights kept out of the arena. "
            "Packed: weights as the lanes' kernels read them, and scratch.\n\n"
        )
        return "Memory", command, text + table(header, rows), report

    def initialization(self):
        command, report = self.bench_all()
        rows = []
        for model in report["models"]:
            cpu, gpu = (model["strategies"][lane] for lane in ("cpu", "gpu"))
            parts, of_gpu = cpu["init_parts"], gpu["init_lanes"]["gpu"]
            figures = (
                parts["read"], parts["import"], parts["passes"], parts["memory"],
                cpu["init_lanes"]["cpu"]["pack"], gpu["init_parts"]["memory"], of_gpu["pack"],
                of_gpu["compile"], of_gpu["warm"], model["onnxruntime_init_ms"],
            )
            programs = f"{of_gpu['programs_compiled']}/{of_gpu['programs_cached']}"
            rows.append([model["model"], *(f"{ms:.0f}" for ms in figures), programs])
        header = [
            "network", "read", "import", "passes", "cpu: memory", "cpu: pack", "gpu: memory",
            "gpu: pack", "gpu: programs", "gpu: first launches", "ONNX Runtime's session",
            "programs compiled/cached",
        ]
        text = (
            "Milliseconds from the file to the first run, by part. Reading, importing and passes are "
            "the model's; the rest is each lane's alone. Programs that an earlier network of this "
            "process needed are not loaded again: with the networks above is what a process of its "
            "own takes.\n\n"
        )
        return "Initialization", command, text + table(header, rows), report

    def start(self):
        """The same command twice, with no cache of any kind before the first."""
        rows = []
        with tempfile.TemporaryDirectory(prefix="tandem-results-") as folder:
            for start in ("first", "second"):
                command, report = self.command(
                    "run", f"zoo:{STARTED}", "--strategy", "gpu", "--runs", 1,
                    environment={"XDG_CACHE_HOME": folder},
                )
                session = report["strategies"][0]
                lane, cache = session["init_lanes"]["gpu"], report["program_cache"]
                rows.append(
                    [
                        start, cache["misses"], cache["hits"], f"{lane['pack']:.0f}",
                        f"{lane['compile']:.0f}", f"{lane['warm']:.0f}", f"{session['init_ms']:.0f}",
                    ]
                )
        header = [
            "start", "programs compiled", "from the cache", "pack", "programs", "first launches",
            "from the file to ready",
        ]
        text = "Milliseconds, with empty caches before the first start.\n\n" + table(header, rows)
        return "First and second start", f"XDG_CACHE_HOME=EMPTY {command}", text, report

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

    def schedules(self):
        command, report = self.command("bench", "schedule")
        strategies = ("single", "inter", "intra", "chain", "joint")
        graphs = report["graphs"]
        rows = []
        names = [*(kind for kind in report["kinds"] if kind != "adversary"), "all", "adversary"]
        for kind in names:
            summary = report if kind == "all" else report["kinds"].get(kind)
            if summary is None:
                continue
            of_kind = [
                g for g in graphs if g["kind"] == kind or (kind == "all" and g["kind"] != "adversary")
            ]
            over = (
                sum(g[f"{s}_us"] / g["exact_us"] for g in of_kind) / len(of_kind) for s in strategies
            )
            gaps = ("mean_gap_proven", "max_gap_proven", "mean_gap_to_bound", "max_gap_to_bound")
            rows.append(
                [
                    kind, len(of_kind), f"{100 * summary['share_proven']:.0f}%",
                    *(f"{ratio:.3f}" for ratio in over),
                    *("" if summary[g] is None else f"{100 * summary[g]:.2f}%" for g in gaps),
                    f"{summary['median_search_ms']:.1f}",
                    f"{max(g['search_ms'] for g in of_kind):.0f}",
                ]
            )
        header = [
            "problems", "number", "optimum proven", *strategies, "gap of joint to proven optima, mean",
            "worst", "gap to optimum or bound, mean", "worst", "search, median ms", "most ms",
        ]
        settings = report["settings"]
        text = (
            f"{len(graphs)} problems of 5 to 60 operators on 2 to 4 lanes, contention 1; "
            f"CP-SAT {settings['time_limit_s']} s a problem with {settings['workers']} workers. Columns "
            "of strategies: makespans over the best that anything found (the optimum, where it is "
            "proven), means. Joint is worse than a baseline on "
            f"{sum(not g['joint_never_worse'] for g in graphs)} problems. Targets: 60% proven, gap to "
            "proven optima 2% in the mean and 8% at worst. docs/scheduling.md says what the problems "
            "are; the adversary's were chosen because joint does badly on them.\n\n"
        )
        text += table(header, rows)
        worst = sorted(
            (g for g in graphs if g["kind"] == "adversary"), key=lambda g: g["gap"], reverse=True
        )
        text += "\nThe adversary's, joint over the optimum (or over the bound, where none is proven):\n\n"
        text += table(
            ["problem", "operators", "lanes", "joint us", "optimum us", "proven", "ratio"],
            [
                [
                    g["name"], g["operators"], g["lanes"], f"{g['joint_us']:.1f}", f"{g['exact_us']:.1f}",
                    "yes" if g["proven"] else "no", f"{1 + g['gap']:.3f}",
                ]
                for g in worst
            ],
        )
        return "Schedules", command, text, report

    def split_set(self, name):
        command, report = self.command(
            "bench", "op", "--set", name, "--costs", "predicted", "--sync", "svm,event"
        )
        rows = [
            [
                o["name"], o["shape"], *(f"{o[f'{who}_ms']:.3f}" for who in ("cpu", "gpu", "chosen")),
                o["chosen"], f"{o['grid_ms']:.3f}", o["grid"], f"{o['limit']:.2f}",
                "not told" if o["corun_limit"] is None else f"{o['corun_limit']:.2f}", o["bound"],
            ]
            for o in report["operators"]
        ]
        header = [
            "from", "operator", "cpu ms", "gpu ms", "chosen ms", "chosen", "best of grid ms",
            "best of grid", "limit", "co-running limit", "bound by",
        ]
        text = (
            f"Mean speed-up over the better lane: chosen {report['mean_speedup_chosen']:.3f}, best of "
            f"an exhaustive search, measured afresh, {report['mean_speedup_grid']:.3f}; at most "
            f"{report['max_speedup_chosen']:.2f}. Attained (mean of grid over chosen): "
            f"{report['attained']:.3f}, target 0.97. Of the co-running limit, where computing bounds: "
            f"{report['mean_of_corun_limit']:.3f}, target 0.93. docs/splitting.md says what is "
            "measured. Splits are predicted by the predictors above. Figures are those with mechanism "
            f"`{report['mechanisms'][0]['sync']}` where no other is named.\n\n"
        )
        return command, text + table(header, rows) + self.by_size(report), report

    @staticmethod
    def by_size(report):
        """What mechanisms of synchronisation are worth, by operators' time on the better lane."""
        mechanisms = report["mechanisms"]
        header = ["better lane's time", "operators"]
        for mechanism in mechanisms:
            header += [f"{mechanism['sync']}: chosen", f"{mechanism['sync']}: search"]
        rows = []
        for entry in report["by_time"]:
            to = "more" if entry["to_ms"] is None else f"{entry['to_ms']:g} ms"
            row = [f"{entry['from_ms']:g} to {to}", entry["operators"]]
            for chosen, grid in zip(entry["speedup_chosen"], entry["speedup_grid"], strict=True):
                row += [f"{chosen:.2f}", f"{grid:.2f}"]
            rows.append(row)
        row = ["all", len(report["operators"])]
        for mechanism in mechanisms:
            row += [f"{mechanism['mean_speedup_chosen']:.2f}", f"{mechanism['mean_speedup_grid']:.2f}"]
        attained = ", ".join(f"{m['attained']:.3f} with {m['sync']}" for m in mechanisms)
        return (
            "\nMean speed-up over the better lane with each mechanism of synchronisation, by the time "
            f"that the better lane takes. Attained of the search: {attained}.\n\n"
            + table(header, [*rows, row])
        )

    def linear_splits(self):
        return "Linear layers split", *self.split_set("linear")

    def convolution_splits(self):
        return "Convolutions split", *self.split_set("conv")


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
