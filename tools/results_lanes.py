"""Sections of docs/results.md: networks on each lane alone."""

import tempfile

from results_text import probe_text, table

# What one lane should reach: its time over ONNX Runtime's, on these networks.
LANE_TARGETS = {"cpu": 1.15, "gpu": 1.6}
LANE_TARGET_NETWORKS = ("vgg16", "resnet50", "inception_v3", "vit_b_32")
STARTED = "resnet50"
LANE_RUNS = 15


def megabytes(count):
    return f"{count / 1e6:.1f}"


class LaneResults:
    """Methods of the class that measures sections (write_results.py)."""

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
