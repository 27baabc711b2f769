#!/usr/bin/env python3
"""Searches the hyper-parameters of the predictors' trees: one after another, keeping what helps.

    tools/search_hyperparameters.py build/release/tandem data/phones/tflite_cnn_ops_gpu.csv \\
        -o tools/hyperparameters.json

What is least is the error of held-out networks' operators, a mean over phones and families in which
each family counts by the root of its number of operators. The networks are split with another seed
than 'tandem train' takes by itself, so that its figures are not those that were searched for. Trees
are at most 100 and at most 6 deep: what fills a cost table in milliseconds.
"""

import argparse
import datetime
import hashlib
import json
import math
import pathlib
import subprocess
import sys

SEED = 2
GRID = {
    "depth": [4, 5, 6],
    "learning-rate": [0.08, 0.12, 0.18],
    "feature-share": [0.25, 0.4, 0.6, 0.8],
    "minimum-weight": [1, 2, 4],
    "row-share": [0.6, 0.8, 1.0],
}
START = {"depth": 6, "learning-rate": 0.12, "feature-share": 0.4, "minimum-weight": 2, "row-share": 0.8}


def train(binary, csv, parameters):
    flags = [f"--{name}={value}" for name, value in parameters.items()]
    command = [binary, "train", "--csv", csv, "--seed", str(SEED), "--transfer", "0", "--json", *flags]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def error_of(report):
    total = weights = 0
    for phone in report["phones"]:
        for family in phone["families"]:
            if "part_of" not in family:
                weight = math.sqrt(family["operators"])
                total += weight * family["mape"]
                weights += weight
    return total / weights


def convolutions(report):
    return {p["phone"]: round(p["families"][0]["mape"], 4) for p in report["phones"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("csv")
    parser.add_argument("-o", "--output", required=True)
    arguments = parser.parse_args()

    tried = {}

    def measure(parameters):
        key = json.dumps(parameters, sort_keys=True)
        if key not in tried:
            report = train(arguments.binary, arguments.csv, parameters)
            tried[key] = {**parameters, "error": error_of(report), "convolutions": convolutions(report),
                          "xgboost": report["xgboost"]}
            print(f"{tried[key]['error']:.5f} {key}", file=sys.stderr, flush=True)
        return tried[key]["error"]

    best = dict(START)
    for name, values in GRID.items():
        best = min(({**best, name: value} for value in values), key=measure)
    data = pathlib.Path(arguments.csv).read_bytes()
    result = {
        "date": datetime.date.today().isoformat(),
        "data": {"file": pathlib.Path(arguments.csv).name, "sha256": hashlib.sha256(data).hexdigest()},
        "seed": SEED,
        "best": best,
        "tried": sorted(tried.values(), key=lambda t: t["error"]),
    }
    pathlib.Path(arguments.output).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(best))


if __name__ == "__main__":
    main()
