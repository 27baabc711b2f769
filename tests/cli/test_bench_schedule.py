"""tandem bench schedule and the offline referee that it asks."""

import json
import os
import pathlib
import random
import subprocess
import sys
import unittest

from cli_testing import CliTest
from list_schedulers import as_mode_problem, heft, peft, random_tasks

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
OFFLINE = SOURCE / "tools/offline.py"


def python_with_ortools():
    """An interpreter, or None."""
    for python in (SOURCE / ".venv/bin/python", sys.executable):
        check = [str(python), "-c", "import ortools.sat.python.cp_model"]
        try:
            if subprocess.run(check, capture_output=True, timeout=60, check=False).returncode == 0:
                return str(python)
        except OSError:
            pass
    return None


PYTHON = python_with_ortools()
needs_ortools = unittest.skipIf(PYTHON is None, "no Python here has OR-tools: see requirements.txt")


def pair_problem():
    """Two operators, one after the other, whole on either of two lanes or the first cut over both."""
    return {
        "format": "tandem mode problem",
        "version": 1,
        "name": "pair",
        "lanes": [
            {"name": "a", "fed_by": None, "enqueue_us": 0, "send_us": 0.5, "receive_us": 0.25},
            {"name": "b", "fed_by": 0, "enqueue_us": 1, "send_us": 0, "receive_us": 0},
        ],
        "latency_us": [[0, 2], [2, 0]],
        "operators": [
            {
                "name": "first",
                "modes": [
                    {"parts": [{"lane": 0, "us": 40}]},
                    {"parts": [{"lane": 1, "us": 60}]},
                    {"parts": [{"lane": 0, "us": 22}, {"lane": 1, "us": 21}]},
                ],
            },
            {"name": "second", "modes": [{"parts": [{"lane": 0, "us": 10}]}, {"parts": [{"lane": 1, "us": 30}]}]},
        ],
        "edges": [{"from": 0, "to": 1, "waits": [[[1], [1]], [[1], [1]], [[3], [3]]]}],
    }


# First cut (lane b starts at 1, its enqueueing; lane a at 1 too, after enqueueing b's part): a ends at 23,
# b at 22; the second on a waits for b: 22 + 2 latency = 24, and takes 10 + 0.25.
PAIR_OPTIMUM_US = 34.25


class Offline(CliTest):
    def ask(self, *problems, arguments=()):
        for index, problem in enumerate(problems):
            text = problem if isinstance(problem, str) else json.dumps(problem)
            (self.work / f"{index}.json").write_text(text, encoding="utf-8")
        done = subprocess.run(
            [PYTHON or sys.executable, str(OFFLINE), *arguments, str(self.work)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done, [json.loads(line) for line in done.stdout.splitlines()]

    @needs_ortools
    def test_finds_an_optimum_that_can_be_computed_by_hand(self):
        done, [answer] = self.ask(pair_problem())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(answer["status"], "OPTIMAL")
        self.assertAlmostEqual(answer["makespan_us"], PAIR_OPTIMUM_US)
        self.assertAlmostEqual(answer["bound_us"], PAIR_OPTIMUM_US)
        self.assertEqual(answer["schedule"]["modes"], [2, 0])
        self.assertEqual(answer["schedule"]["lanes"], [[[0, 0], [1, 0]], [[0, 1]]])

    @needs_ortools
    def test_refuses_malformed_files_saying_what_is_wrong(self):
        def broken(change):
            problem = pair_problem()
            change(problem)
            return problem

        cases = {
            "not JSON": "{",
            "not a file of format": "{}",
            "version 2": broken(lambda p: p.update(version=2)),
            "has no modes": broken(lambda p: p["operators"][1].update(modes=[])),
            "no such lane": broken(lambda p: p["operators"][0]["modes"][0]["parts"][0].update(lane=7)),
            "no such time": broken(lambda p: p["operators"][0]["modes"][0]["parts"][0].update(us=-1)),
            "from operator 1 to 0": broken(lambda p: p["edges"][0].update({"from": 1, "to": 0})),
            "from first to second": broken(lambda p: p["edges"][0].update(waits=[[[1], [1]]])),
            "latency_us": broken(lambda p: p.update(latency_us=[[0]])),
            "no 'lanes'": broken(lambda p: p.pop("lanes")),
            "another type": broken(lambda p: p.update(operators=3)),
        }
        done, answers = self.ask(*cases.values())
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(answers), len(cases))
        by_file = {pathlib.Path(answer["file"]).stem: answer for answer in answers}
        for index, expected in enumerate(cases):
            self.assertIn(expected, by_file[str(index)]["error"])
            self.assertIn(f"{index}.json: ", done.stderr)


class BenchSchedule(CliTest):
    def bench(self, *arguments):
        return self.succeed_json("bench", "schedule", "--no-stages", "--no-adversaries", *arguments)

    @needs_ortools
    def test_branch_and_bound_and_cp_sat_agree_on_small_problems(self):
        self.succeed("bench", "schedule", "--no-stages", "--no-adversaries", "--graphs", 40, "--seed", 3, "--export", "all")
        small = self.work / "small"
        small.mkdir()
        for path in (self.work / "all").glob("*.json"):
            problem = json.loads(path.read_text(encoding="utf-8"))
            if len(problem["operators"]) <= 7:
                path.rename(small / path.name)
        (small / "pair.json").write_text(json.dumps(pair_problem()), encoding="utf-8")
        report = self.bench(
            "--graphs", 0, "--problems", small, "--python", PYTHON, "--time-limit", 10, "--workers", 1
        )
        both = 0
        for graph in report["graphs"]:
            self.assertGreaterEqual(graph["joint_us"], graph["bound_us"] * (1 - 1e-9))
            if graph["branch_and_bound_us"] is None or not graph["cp_sat"]["optimal"]:
                continue
            both += 1
            # CP-SAT counts whole nanoseconds.
            self.assertAlmostEqual(graph["cp_sat"]["makespan_us"], graph["branch_and_bound_us"], delta=0.1)
        self.assertGreaterEqual(both, 3)
        [pair] = [graph for graph in report["graphs"] if graph["name"] == "pair"]
        self.assertAlmostEqual(pair["exact_us"], PAIR_OPTIMUM_US)

    def test_reports_every_scheduler_and_the_gap(self):
        report = self.bench("--graphs", 5, "--problems", self.work, "--no-offline", "--exact-ms", 50)
        self.assertEqual(len(report["graphs"]), 5)
        for graph in report["graphs"]:
            for key in ("joint_us", "inter_us", "intra_us", "chain_us", "exact_us", "bound_us"):
                self.assertGreater(graph[key], 0)
            self.assertGreaterEqual(graph["exact_us"], graph["bound_us"] * (1 - 1e-9))
            self.assertAlmostEqual(graph["gap"], graph["joint_us"] / graph["bound_us"] - 1)
        self.assertTrue(report["joint_never_worse"])

    def export(self, folder, *arguments):
        self.succeed("bench", "schedule", "--no-stages", "--no-adversaries", "--export", folder, *arguments)
        return {path.name: path.read_text(encoding="utf-8") for path in (self.work / folder).glob("*.json")}

    def test_generated_problems_are_the_same_every_time(self):
        once = self.export("once", "--graphs", 12, "--seed", 4)
        self.assertEqual(once, self.export("again", "--graphs", 12, "--seed", 4))
        self.assertEqual(sum(name.startswith("net-") for name in once), 6)
        self.assertNotEqual(set(once), set(self.export("other", "--graphs", 12, "--seed", 5)))

    def test_the_adversary_finds_problems_with_the_ratios_that_it_says(self):
        found = self.succeed_json(
            *("bench", "schedule", "--adversary", "--minutes", 0.03, "--export", "worst")
        )["adversaries"]
        self.assertTrue(1 <= len(found) <= 10)
        ratios = [one["ratio"] for one in found]
        self.assertEqual(ratios, sorted(ratios, reverse=True))
        self.assertGreaterEqual(ratios[-1], 1 - 1e-9)
        report = self.bench("--graphs", 0, "--problems", "worst", "--no-offline", "--exact-ms", 20_000)
        graphs = {graph["name"]: graph for graph in report["graphs"]}
        for one in found:
            self.assertTrue(graphs[one["name"]]["proven"])
            self.assertAlmostEqual(graphs[one["name"]]["gap"], one["ratio"] - 1)

    def test_says_what_is_missing(self):
        self.refuse(
            "bench", "schedule", "--graphs", 1, "--python", "/usr/bin/false", says=["has ended"]
        )
        no_packages = self.work / "python"
        no_packages.write_text(f"#!/bin/sh\nexec {sys.executable} -S \"$@\"\n", encoding="utf-8")
        no_packages.chmod(0o755)
        self.refuse(
            *("bench", "schedule", "--no-stages", "--no-adversaries", "--graphs", 1, "--python", no_packages),
            says=["ortools", "requirements.txt", "--no-offline"],
        )

    def test_refuses_broken_problem_files(self):
        (self.work / "bad.json").write_text("{}", encoding="utf-8")
        self.refuse(
            "bench", "schedule", "--no-stages", "--no-adversaries", "--graphs", 0, "--problems", self.work, "--no-offline", says=["bad.json"]
        )

    def test_heft_and_peft_are_what_their_papers_say(self):
        numbers = random.Random(11)
        expected = {}
        for index in range(150):
            tasks = random_tasks(numbers, numbers.randint(2, 40), numbers.randint(2, 4))
            expected[f"{index:03}"] = heft(tasks), peft(tasks)
            problem = as_mode_problem(tasks, f"{index:03}")
            (self.work / f"{index:03}.json").write_text(json.dumps(problem), encoding="utf-8")
        report = self.bench(
            "--graphs", 0, "--problems", self.work, "--no-offline", "--exact-ms", 1
        )
        self.assertEqual(len(report["graphs"]), len(expected))
        for graph in report["graphs"]:
            by_heft, by_peft = expected[graph["name"]]
            self.assertAlmostEqual(graph["inter_heft_us"], by_heft, msg=graph["name"])
            self.assertAlmostEqual(graph["inter_lookahead_us"], by_peft, msg=graph["name"])


if __name__ == "__main__":
    unittest.main()
