#!/usr/bin/env python3
"""Writes the tables of docs/papers.md from `tandem bench papers --json`.

Usage: tools/write_papers.py build/release/tandem
       tools/write_papers.py report.json
"""
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "papers.md"
MARK = "<!-- tables -->"
FAMILIES = {"linear": "Linear layers", "conv": "Convolutions"}


def table(columns, rows):
    return ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns),
            *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows), ""]


def both(value):
    return f"{value['mean']:.2f} / {value['best']:.2f}"


def layers(report, family):
    published = report["published"]
    rows = []
    for row in report["layers"]:
        if row["family"] != family:
            continue
        ways = row["speed_up"]
        best = ways["best"]
        last = row["platform"] == published["platform"] and row["threads"] == 3
        rows.append([
            row["platform"], row["threads"], f"{row['cpu_us_over_gpu_us_median']:.2f}", both(row["bound"]),
            *(both(best[how]["over_better_lane"])
              for how in ("exhaustive", "predicted", "predicted_without_kernels")),
            both(best["exhaustive"]["over_gpu"]), both(best["predicted"]["over_gpu"]),
            f"{published[family]['exhaustive']} / {published[family]['predicted']}" if last else "-"])
    count = next(row["count"] for row in report["layers"] if row["family"] == family)
    return [f"### {FAMILIES[family]} ({count}): speed-up, mean / best (simulated)", "",
            "The paper's column: its best, exhaustive / predicted; the shared reading of its abstract does not say "
            "over which lane or with how many threads.", "",
            *table(["platform", "threads", "CPU / GPU time, median", "bound", "exhaustive", "predicted",
                    "without kernels", "exhaustive, over the GPU", "predicted, over the GPU", "paper"], rows)]


def events(report):
    rows = []
    for row in report["layers"]:
        ways = row["speed_up"]
        cells = []
        for way in ("best", "event", "event_to_cpu"):
            for how in ("exhaustive", "predicted"):
                cells.append(both(ways[way][how]["over_better_lane"]))
            cells.append(f"{ways[way]['exhaustive']['divided']} of {row['count']}")
        if row["threads"] == 3:
            rows.append([row["platform"], row["family"], *cells])
    names = [f"{way}: {what}" for way in ("SVM or best", "events", "events, to the CPU")
             for what in ("exhaustive", "predicted", "divided")]
    return ["### Synchronisation, three threads: speed-up over the better lane, mean / best (simulated)", "",
            *table(["platform", "layers", *names], rows)]


def errors(report):
    rows = []
    for row in report["predictor_errors"]:
        ours, without = row["predicted"], row["predicted_without_kernels"]
        rows.append([row["platform"], row["lane"], row["family"], row["trained_on"], row["slices"],
                     f"{100 * ours['mape']:.1f}", f"{100 * ours['within_10']:.0f}",
                     f"{100 * without['mape']:.1f}", f"{100 * without['within_10']:.0f}"])
    return ["### Errors of predictors on the sets' layers and all of their parts (simulated)", "",
            *table(["platform", "lane", "layers", "rows learned from (both kinds)", "slices predicted", "MAPE, %",
                    "within 10%, %", "without kernels: MAPE, %", "within 10%, %"], rows)]


def precisions(report):
    rows = []
    names = {"gpu_f32": "GPU in f32", "cpu_f16": "CPU in f16"}
    other = {(name, row["platform"], row["threads"], row["family"]): row
             for name, found in report["other_precisions"].items() for row in found}
    for row in report["layers"]:
        if row["threads"] != 3:
            continue
        cells = []
        for candidate in [row, *(other[(name, row["platform"], 3, row["family"])] for name in names)]:
            speed_up = candidate["speed_up"]["best"]["exhaustive"]
            cells += [f"{candidate['cpu_us_over_gpu_us_median']:.2f}", both(speed_up["over_better_lane"]),
                      both(speed_up["over_gpu"])]
        rows.append([row["platform"], row["family"], *cells])
    columns = [f"{name}: {what}" for name in ("as it is", *names.values())
               for what in ("CPU / GPU", "over the better lane", "over the GPU")]
    return ["### Other precisions, three threads, exhaustive: speed-up, mean / best (simulated)", "",
            "As it is: f32 on the CPU and f16 on the GPU, as TensorFlow Lite's usual settings have it.", "",
            *table(["platform", "layers", *columns], rows)]


def offline_cells(row):
    offline = row.get("offline")
    if not offline:
        return ["-", "-"]
    gap = "optimal" if offline["proven"] else f"{100 * (offline['best_us'] / offline['bound_us'] - 1):.1f}%"
    return [f"{offline['speed_up']:.3f}", f"{100 * (offline['joint_us'] / offline['best_us'] - 1):.1f}% / {gap}"]


def networks(report):
    names = ("inter", "intra", "joint")
    rows = []
    for row in report["networks"]:
        strategies, alone = row["strategies"], row["alone_ms"]
        joint = strategies["joint"]
        rows.append([row["network"], row["platform"], row["sync"],
                     *(f"{alone[lane]:.2f}" for lane in ("cpu alone", "gpu alone")),
                     *(f"{strategies[name]['speed_up']:.3f}" for name in names),
                     f"{joint['predicted_ms']:.2f} / {joint['ms']:.2f}", f"{row['unseen']['speed_up']:.3f}",
                     f"{row['own_costs']['speed_up']:.3f}", *offline_cells(row)])
    means = []
    for platform in dict.fromkeys(row["platform"] for row in report["networks"]):
        mine = [row for row in report["networks"] if row["platform"] == platform]

        def mean(found):
            speed_ups = [plan["speed_up"] for plan in found if plan]
            return f"{sum(speed_ups) / len(speed_ups):.3f}" if speed_ups else "-"

        off = sorted(abs(row["strategies"]["joint"]["predicted_ms"] / row["strategies"]["joint"]["ms"] - 1)
                     for row in mine)
        means.append([platform, *(mean(row["strategies"][name] for row in mine) for name in names),
                      f"{100 * off[len(off) // 2]:.1f} / {100 * off[-1]:.1f}", mean(row["unseen"] for row in mine),
                      mean(row["own_costs"] for row in mine), mean(row.get("offline") for row in mine)])
    return ["## Networks", "", "### Speed-up over the better lane alone (simulated)", "",
            *table(["network", "platform", "sync", "CPU, ms", "GPU, ms", *names, "joint: predicted / simulated, ms",
                    "joint, unseen network", "joint, own costs", "offline, own costs",
                    "joint over offline / offline over bound"], rows),
            *table(["platform, mean of networks", *names, "joint: error of predictions, median / worst, %",
                    "joint, unseen network", "joint, own costs", "offline, own costs"], means)]


def searches(report):
    rows, warm, cold = [], [], []
    for row in report["networks"]:
        search, start = row["strategies"]["joint"]["search_ms"], row["start"]
        warm.append(100 * search / start["warm_ms"])
        cold.append(100 * search / start["cold_ms"])
        rows.append([row["network"], row["platform"], row["operators"], f"{row['strategies']['joint']['prepare_ms']:.0f}", f"{search:.0f}",
                     start["programs"], f"{start['weights_ms']:.0f}", f"{start['cold_ms']:.0f}",
                     f"{start['warm_ms']:.0f}", f"{warm[-1]:.0f}"])
    return ["### Search, here, beside creating a session, modelled", "",
            "Milliseconds. Predicting and searching are those of the machine that wrote this page. Cold: every GPU "
            "program is compiled; warm: loaded. What a program costs is an estimate (the platform files say from what).",
            "", *table(["network", "platform", "operators", "predicting costs", "search", "GPU programs", "weights",
                        "session, cold", "session, warm", "search of warm, %"], rows),
            f"Median: {statistics.median(warm):.0f}% of a warm start, {statistics.median(cold):.0f}% of a cold one.", ""]


def throttling(report):
    gains = [row["throttled_ms"] / row["adapted_ms"] for row in report["throttling"]]
    rows = []
    for row in report["throttling"]:
        rows.append([row["network"], row["platform"], row["throttled"], f"{row['before_ms']:.2f}",
                     f"{row['throttled_ms']:.2f}", f"{row['adapted_ms']:.2f}",
                     f"{row['throttled_ms'] / row['adapted_ms']:.3f}", f"{row['planned']} / {row['changed']}"])
    return ["### A chip that gets too warm in mid-run, with and without `--adapt` (simulated)", "",
            "After 20 of 80 inferences the CPU's or the GPU's clock falls to half. Medians of 20 inferences: before that, "
            "the last ones of a session that keeps its plan, and the last ones of one that adapts.", "",
            *table(["network", "platform", "throttled", "before, ms", "throttled, ms", "adapted, ms", "gain",
                    "planned again / changed"], rows),
            f"Of {len(gains)} cases, {sum(row['changed'] > 0 for row in report['throttling'])} change their schedule; the "
            f"gain is {statistics.median(gains):.2f} in the median, {min(gains):.2f} at worst and {max(gains):.2f} at "
            "best.", ""]


def clusters(report):
    rows = [[row["network"], row["platform"], row["lanes"],
             f"{row['two_lanes']['ms']:.2f} ({row['two_lanes']['what']})", f"{row['all']['ms']:.2f}",
             f"{row['speed_up']:.3f}", f"{row['two_lanes']['energy_mj']:.0f}", f"{row['all']['energy_mj']:.0f}"]
            for row in report["clusters"]]
    return ["## What the papers do not have", "", "### A lane for each cluster of cores, and the GPU (simulated)", "",
            "Beside the best schedule of two lanes (the platform's first CPU lane and the GPU).", "",
            *table(["network", "platform", "lanes", "two lanes, ms", "all, ms", "speed-up", "two lanes, mJ",
                    "all, mJ"], rows)]


def fronts(report):
    rows = []
    for row in report["fronts"]:
        points = "; ".join(f"{point['what']} {point['ms']:.2f} ms, {point['energy_mj']:.0f} mJ"
                           for point in row["front"])
        rows.append([row["network"], row["platform"], points])
    return ["### Latency and energy (simulated)", "",
            "Of each lane alone, every strategy with two lanes, each cluster alone and `joint` with all of them: those "
            "that no other beats in both. Power in platform files is estimated, so energy is no more than that.", "",
            *table(["network", "platform", "front"], rows)]


def what_if(report):
    rows = [[row["network"], row["platform"], f"{row['compute_units']}{' (as it is)' if row['as_it_is'] else ''}",
             f"{row['cpu_ms']:.2f}", f"{row['gpu_ms']:.2f}", f"{row['joint_ms']:.2f}", f"{row['speed_up']:.3f}"]
            for row in report["what_if"]]
    return ["### What if the GPU had half or twice its compute units? (simulated)", "",
            "Nothing else changes, caches and clocks neither. Single questions: `tandem simulate MODEL --platform P --set "
            "gpu.compute_units=6`.", "",
            *table(["network", "platform", "compute units", "CPU, ms", "GPU, ms", "joint, ms",
                    "speed-up over the better lane"], rows)]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1].endswith(".json"):
        text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    else:
        text = subprocess.run([sys.argv[1], "bench", "papers", "--json"], check=True, capture_output=True,
                              text=True).stdout
    report = json.loads(text)
    lines = [MARK, "", "## Single layers", "", *layers(report, "linear"), *layers(report, "conv"), *events(report),
             *errors(report), *precisions(report), *networks(report), *searches(report), *clusters(report),
             *fronts(report), *throttling(report), *what_if(report)]
    head = PAGE.read_text(encoding="utf-8").split(MARK)[0]
    PAGE.write_text(head + "\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
