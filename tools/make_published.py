#!/usr/bin/env python3
"""Makes data/published/phones_*.csv from data/phones: the entries that the simulator is compared with.

phones_networks.csv    operators of each network, equal ones counted
phones_end_to_end.csv  entries: whole networks on core combinations and GPUs
phones_operators.csv   entries: operators on GPUs, one per shape and phone (the median of repeats)
"""
import ast
import collections
import csv
import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).resolve().parent.parent
PHONES = ROOT / "data" / "phones"
PUBLISHED = ROOT / "data" / "published"

PLATFORMS = {"pixel4": "pixel4", "s10": "galaxy_s10", "a03s": "galaxy_a03s"}
# Core combinations of the data, in terms of the platform files' clusters.
LANES = {
    "pixel4": {
        "1large": "prime:1", "1med": "big:1", "2med": "big:2", "3med": "big:3",
        "1large1med": "prime:1+big:1", "1small": "little:1", "2small": "little:2",
        "3small": "little:3", "4small": "little:4", "gpu": "gpu",
    },
    "s10": {
        "1large": "prime:1", "2large": "prime:2", "1med": "big:1", "2med": "big:2",
        "1large2med": "prime:1+big:2", "1small": "little:1", "2small": "little:2",
        "3small": "little:3", "4small": "little:4", "gpu": "gpu",
    },
    "a03s": {
        "1large": "big:1", "2large": "big:2", "3large": "big:3", "4large": "big:4",
        "1small": "little:1", "2small": "little:2", "3small": "little:3", "4small": "little:4",
        "gpu": "gpu",
    },
}
FAMILIES = {
    "CONV_2D": "conv", "CONV_2D_GROUP": "conv", "DEPTHWISE_CONV_2D": "depthwise",
    "FULLY_CONNECTED": "linear", "MEAN": "mean", "MAX_POOL_2D": "pool",
    "AVERAGE_POOL_2D": "pool", "CONCATENATION": "concat",
}
SOURCE = "data/phones"
ENTRY_FIELDS = ["id", "kind", "platform", "runtime", "lanes", "workload", "value", "unit", "source",
                "note"]


def number(text, default):
    return default if text in ("-", None) else int(text)


def shape_of(row):
    """family:in:in_channels:out:out_channels:kernel:stride:groups, all images being square."""
    family = FAMILIES[row["operation"]]
    f = ast.literal_eval(row["feature"])
    channels = int(f["Input_channel"])
    size = number(f["Input_shape"], 1)
    kernel, stride = number(f["Kernel"], 1), number(f["Stride"], 1)
    groups = number(f["Group"], 1)
    if family == "linear":
        return f"linear:1:{channels}:1:{int(f['Filter'])}:1:1:1"
    if family == "mean":
        return f"mean:{size}:{channels}:1:{channels}:1:1:1"
    out = number(f["Output_shape"], size)
    if family == "pool":
        return f"pool:{size}:{channels}:{out}:{channels}:{kernel}:{stride}:1"
    if family == "depthwise":
        return f"depthwise:{size}:{channels}:{out}:{channels}:{kernel}:{stride}:{channels}"
    return f"{family}:{size}:{channels}:{out}:{int(f['Filter'])}:{kernel}:{stride}:{groups}"


def write(name, fields, rows):
    with open(PUBLISHED / name, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(fields)
        writer.writerows(rows)


def main():
    PUBLISHED.mkdir(exist_ok=True)
    with open(PHONES / "tflite_cnn_ops_gpu.csv") as file:
        operators = list(csv.DictReader(file))
    networks = collections.defaultdict(collections.Counter)
    times = collections.defaultdict(list)
    kernels = {}
    for row in operators:
        shape = shape_of(row)
        networks[row["model"]][shape] += 1
        for phone in PLATFORMS:
            times[phone, shape].append(float(row[f"{phone}|gpu|float"]))
            kernel = row[f"{phone}|gpu|kernel"].split("_linked_")[0]
            kernels[phone, shape] = re.sub(r"_\d+$", "", kernel)
    write("phones_networks.csv", ["network", "operator", "count"],
          [[n, shape, count] for n in sorted(networks) for shape, count in networks[n].items()])
    write("phones_operators.csv", ENTRY_FIELDS,
          [[f"phones/{PLATFORMS[phone]}/gpu/{shape}", "operator", PLATFORMS[phone], "tflite", "gpu",
            shape, f"{statistics.median(us):.1f}", "us", SOURCE, kernels[phone, shape]]
           for (phone, shape), us in sorted(times.items())])

    rows = []
    with open(PHONES / "tflite_cnn_e2e.csv") as file:
        for row in csv.DictReader(file):
            for phone, lanes in LANES.items():
                for combination, lane in lanes.items():
                    ms = float(row[f"{phone}|{combination}|float|mean"]) / 1000
                    rows.append([f"phones/{PLATFORMS[phone]}/{lane}/{row['model']}", "network",
                                 PLATFORMS[phone], "tflite", lane, row["model"], f"{ms:.4g}", "ms",
                                 SOURCE, ""])
    write("phones_end_to_end.csv", ENTRY_FIELDS, sorted(rows))


if __name__ == "__main__":
    main()
