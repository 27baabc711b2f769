#!/usr/bin/env python3
"""Searches the hyper-parameters of the predictors' trees: one after another, keeping what helps.

    tools/search_hyperparameters.py build/release/tandem data/phones/tflite_cnn_ops_gpu.csv \\
        -o tools/hyperparameters.json
    tools/search_hyperparameters.py build/release/tandem measurements.sqlite \\
        -o tools/hyperparameters_lanes.json

What is least is the error of held-out networks' operators (measurements of 'tandem profile': of
held-out shapes), a mean over phones or lanes and families in which each family counts by the root of
its number of operators. They are split with another seed than 'tandem train' takes by itself, so
that its figures are not those that were searched for. Trees are at most 100 and at most 6 deep: what
fills a cost table in milliseconds. --minutes ends the search early, with the best until then.
"""

import argparse
import datetime
import hashlib
import json
import math
import pathlib
import subprocess
import sys
import time

SEED = 2
GRID = {
    "depth": [4, 5, 6],
    "learning-rate": [0.05, 0.08, 0.12],
    "feature-share": [0.25, 0.4, 0.6, 0.8],
    "minimum-weight": [2, 4, 8],
    "regularisation": [1, 4, 8],
    "row-share": [0.6, 0.8, 1.0],
}
START = {
    "depth": 6, "learning-rate": 0.08, "feature-share": 0.6, "minimum-weight": 4, "regularisation": 4,
    "row-share": 0.8,
}


def train(binary, data, parameters):
    flags = [f"--{name}={value}" for name, value in parameters.items()]
    if data.endswith(".csv"):
        kind = ["--csv", data, "--transfer", "0"]
    else:
        kind = ["--store", data, "--output", "none", "--only-ours", "--folds", "3"]
    command = [binary, "train", *kind, "--seed", str(SEED), "--json", *flags]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def families_of(report):
    """Rows and error of each phone's or lane's families."""
    if "phones" not in report:
        return [(family["rows"], family["ours"]["mape"]) for family in report["families"]]
    families = [family for phone in report["phones"] for family in phone["families"]]
    return [(f["operators"], f["mape"]) for f in families if "part_of" not in f]


def error_of(report):
    families = families_of(report)
    weights = [math.sqrt(rows) for rows, _ in families]
    return sum(weight * mape for weight, (_, mape) in zip(weights, families)) / sum(weights)


def details(report):
    if "phones" in report:
        return {"convolutions": {p["phone"]: round(p["families"][0]["mape"], 4) for p in report["phones"]}}
    return {"lanes": {lane["lane"]: round(lane["mape"], 4) for lane in report["lanes"]}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("data", help="a CSV of phones, or a store of tandem profile")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--minutes", type=float, default=math.inf)
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes

    tried = {}

    def measure(parameters):
        key = json.dumps(parameters, sort_keys=True)
        if key not in tried:
            if time.monotonic() > end:
                return math.inf
            report = train(arguments.binary, arguments.data, parameters)
            tried[key] = {**parameters, "error": error_of(report), **details(report),
                          "xgboost": report["xgboost"]}
            print(f"{tried[key]['error']:.5f} {key}", file=sys.stderr, flush=True)
        return tried[key]["error"]

    best = dict(START)
    for name, values in GRID.items():
        best = min(({**best, name: value} for value in values), key=measure)
    data = pathlib.Path(arguments.data).read_bytes()
    result = {
        "date": datetime.date.today().isoformat(),
        "data": {"file": pathlib.Path(arguments.data).name, "sha256": hashlib.sha256(data).hexdigest()},
        "seed": SEED,
        "complete": time.monotonic() < end,
        "best": best,
        "tried": sorted(tried.values(), key=lambda t: t["error"]),
    }
    pathlib.Path(arguments.output).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(best))


if __name__ == "__main__":
    main()
