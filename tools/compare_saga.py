#!/usr/bin/env python3
"""Compares Tandem's HEFT with that of SAGA (anrg-saga on PyPI) on random problems of whole operators.

  pip install anrg-saga==2.0.2
  compare_saga.py --tandem build/release/tandem [--problems 200]

SAGA knows processors of one speed each, so that is what is drawn. It averages communication over the links of
a processor with itself, too, which the paper does not: ranks are computed on the network without those
("paper's mean"), and, for information, with them ("SAGA's mean"). Exit status 0 only if all makespans agree
with the paper's mean.
"""

import argparse
import json
import logging
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/cli"))
from list_schedulers import as_mode_problem, random_tasks  # noqa: E402

try:
    from saga import Network, TaskGraph
    from saga.schedulers import heft as saga_heft
except ImportError as error:
    sys.exit(f"compare_saga.py: {error}; install it with: pip install anrg-saga==2.0.2")

rank_of_saga = saga_heft.heft_rank_sort


def rank_with_papers_mean(network, task_graph):
    between = frozenset(edge for edge in network.edges if edge.source != edge.target)
    return rank_of_saga(Network(nodes=network.nodes, edges=between), task_graph)


def makespan_of_saga(tasks, rank):
    speeds = [tasks.times[0][0] / tasks.times[0][p] for p in tasks.processors]
    delay = tasks.delay[0][1]
    network = Network.create(
        nodes=[(f"p{p}", speeds[p]) for p in tasks.processors],
        edges=[(f"p{p}", f"p{q}", 1.0) for p in tasks.processors for q in tasks.processors if p < q],
    )
    graph = TaskGraph.create(
        tasks=[(f"t{task}", times[0]) for task, times in enumerate(tasks.times)],
        dependencies=[(f"t{t}", f"t{r}", delay) for t, readers in enumerate(tasks.readers) for r in readers],
    )
    saga_heft.heft_rank_sort = rank
    return saga_heft.HeftScheduler().schedule(network, graph).makespan


def makespans_of_tandem(tandem, problems):
    with tempfile.TemporaryDirectory() as folder:
        for name, tasks in problems.items():
            Path(folder, f"{name}.json").write_text(json.dumps(as_mode_problem(tasks, name)), encoding="utf-8")
        command = [tandem, "bench", "schedule", "--no-stages", "--no-adversaries", "--graphs", "0", "--problems", folder]
        done = subprocess.run(
            [*command, "--no-offline", "--exact-ms", "1", "--json"], capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        sys.exit(done.stderr)
    return {graph["name"]: graph["inter_heft_us"] for graph in json.loads(done.stdout)["graphs"]}


def main():
    parser = argparse.ArgumentParser(description="Compares Tandem's HEFT with SAGA's; see the top of this file.")
    parser.add_argument("--tandem", required=True, help="the binary")
    parser.add_argument("--problems", type=int, default=200)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    numbers = random.Random(7)
    problems = {
        f"{index:04}": random_tasks(numbers, numbers.randint(2, 40), numbers.randint(2, 4), related=True)
        for index in range(options.problems)
    }
    ours = makespans_of_tandem(options.tandem, problems)
    agreeing = {"paper's mean": 0, "SAGA's mean": 0}
    for name, tasks in problems.items():
        for what, rank in (("paper's mean", rank_with_papers_mean), ("SAGA's mean", rank_of_saga)):
            theirs = makespan_of_saga(tasks, rank)
            agreeing[what] += abs(theirs - ours[name]) <= 1e-6 * theirs
    for what, count in agreeing.items():
        print(f"SAGA's HEFT with {what} of communication: {count} of {len(problems)} makespans agree")
    return 0 if agreeing["paper's mean"] == len(problems) else 1


if __name__ == "__main__":
    sys.exit(main())
