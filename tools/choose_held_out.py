#!/usr/bin/env python3
"""Draws which published measurements are kept out of the calibration: data/published/held_out.txt.

Run once, before anything was fitted. Whole networks and operators are drawn by workload, so that a
network or shape that is held out is so on every platform; other entries by their id. Half of each
kind, in the order of a hash.
"""
import csv
import hashlib
import pathlib

PUBLISHED = pathlib.Path(__file__).resolve().parent.parent / "data" / "published"
FILES = ["phones_end_to_end.csv", "phones_operators.csv", "literature.csv"]


def main():
    keys = {}
    entries = []
    for name in FILES:
        with open(PUBLISHED / name) as file:
            for row in csv.DictReader(file):
                kind = row["kind"]
                key = row["workload"] if kind in ("network", "operator") else row["id"]
                keys.setdefault(kind, set()).add(key)
                entries.append((kind, key))
    held_out = set()
    for kind, names in keys.items():
        ordered = sorted(names, key=lambda n: hashlib.sha256(f"{kind} {n}".encode()).hexdigest())
        held_out |= {(kind, n) for n in ordered[:(len(ordered) + 1) // 2]}
    share = sum(entry in held_out for entry in entries) / len(entries)
    with open(PUBLISHED / "held_out.txt", "w") as file:
        file.write("# kind and workload (or id) of entries that nothing is fitted to; drawn by "
                   "tools/choose_held_out.py\n")
        for kind, key in sorted(held_out):
            file.write(f"{kind} {key}\n")
    print(f"{share:.1%} of {len(entries)} entries")


if __name__ == "__main__":
    main()
