"""tandem simulate: networks on platforms that are not here."""

import json
import os
import pathlib
import unittest

from cli_testing import CliTest

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
PUBLISHED = SOURCE / "data/published"


class Simulate(CliTest):
    def test_lanes_of_a_platform(self):
        run = ["simulate", "zoo:tiny_conv", "--platform", "pixel5"]
        report = self.succeed_json(*run)
        self.assertTrue(report["simulated"])
        lanes = {lane["lane"]: lane for lane in report["lanes"]}
        self.assertEqual(list(lanes), ["cpu", "cpu.little", "gpu"])
        for lane in lanes.values():
            self.assertGreater(lane["ms"], 0)
            self.assertAlmostEqual(sum(lane["us_by_family"].values()) / 1000, lane["ms"])
        self.assertEqual(report, self.succeed_json(*run))
        self.assertIn("SIMULATED", self.succeed(*run).stdout)

    def test_what_if(self):
        run = ["simulate", "zoo:resnet18", "--platform", "pixel4", "--lane", "gpu=gpu"]
        two = self.succeed_json(*run)["lanes"][0]["ms"]
        six = self.succeed_json(*run, "--set", "gpu.compute_units=6")["lanes"][0]["ms"]
        self.assertLess(six, 0.7 * two)
        self.assertGreater(six, two / 3)

    def test_a_platform_of_ones_own(self):
        with open(SOURCE / "platforms/pixel4.json", encoding="utf-8") as file:
            platform = json.load(file)
        path = self.work / "mine.json"
        platform["name"] = "pixel5"
        path.write_text(json.dumps(platform), encoding="utf-8")
        self.succeed("simulate", "zoo:tiny_conv", "--platform", path)
        del platform["gpu"]["mhz"]
        path.write_text(json.dumps(platform), encoding="utf-8")
        run = ["simulate", "zoo:tiny_conv", "--platform"]
        self.refuse(*run, path, says=["mine.json: gpu.mhz is missing"])
        self.refuse(*run, "nokia3310", says=["pixel4"])

    def test_runs_on_simulated_lanes_are_undisturbed_and_said_to_be_simulated(self):
        run = ["run", "zoo:tiny_residual", "--platform", "pixel5", "--runs", 50]
        done = self.succeed(*run)
        self.assertNotIn("this machine", done.stderr)
        self.assertIn("measuring tiny_residual on simulated lanes", done.stderr)
        self.assertNotIn("preempted", done.stdout)
        (strategy,) = self.succeed_json(*run)["strategies"]
        self.assertEqual((strategy["preempted_runs"], strategy["dropped_runs"]), (0, 0))
        self.assertEqual(strategy["time_ms"]["runs"], 50)

    def test_a_strategy_on_the_simulated_clock(self):
        run = ["simulate", "zoo:tiny_residual", "--platform", "pixel4", "--strategy"]
        joint = self.succeed_json(*run, "joint", "--throttle")
        self.assertTrue(joint["simulated"])
        self.assertEqual(joint["sync"], "svm")
        self.assertAlmostEqual(
            joint["speed_up"], min(joint["alone_ms"].values()) / joint["expected_ms"]
        )
        self.assertGreater(joint["energy_mj"], 0)
        self.assertEqual(joint["throttled"][0]["cpu_clock"], 1)
        again = self.succeed_json(*run, "joint", "--throttle")
        self.assertEqual(
            {**joint, "search_ms": 0}, {**again, "search_ms": 0}
        )
        other = self.succeed_json(*run, "joint", "--seed", 2)
        self.assertNotEqual(joint["median_ms"], other["median_ms"])
        text = self.succeed(*run, "gpu", "--sync", "event").stdout
        self.assertIn("SIMULATED", text)
        self.refuse(*run, "luck", says=["luck"])
        run = ["simulate", "zoo:tiny_residual", "--platform", "rk3588", "--strategy", "joint"]
        self.refuse(*run, "--sync", "svm", says=["no fine-grained atomics"])

    def test_commands_of_real_lanes_on_simulated_ones(self):
        phone = ["--platform", "pixel5"]
        model = "zoo:tiny_linear"
        report = self.succeed_json("profile", *phone, "--models", model, "--budget", 0.1,
                                   "--store", "phone.sqlite")
        self.assertGreater(sum(row["rows"] for row in report["rows"]), 50)
        self.succeed("train", *phone, "--store", "phone.sqlite", "--output", "phone.json",
                     "--folds", 2, "--trees", 10)
        costs = ["--costs", "predicted", "--predictors", "phone.json"]
        plan = self.succeed_json("plan", model, *phone, *costs, "--strategy", "intra",
                                 "--output", "phone.plan")
        self.assertIn("predictors", plan["costs"])
        done = self.succeed("run", model, *phone, *costs, "--plan", "phone.plan", "--runs", 3)
        self.assertIn("SIMULATED", done.stderr)
        self.succeed("run", model, *phone, "--strategy", "gpu", "--verify", "--runs", 1)

    def test_validation_lists_every_entry(self):
        report = self.succeed_json("simulate", "--validate", "--published", PUBLISHED)
        lines = 0
        for name in ("phones_end_to_end.csv", "phones_operators.csv", "literature.csv"):
            text = (PUBLISHED / name).read_text(encoding="utf-8")
            lines += sum("/best/predicted," not in line for line in text.splitlines()[1:])
        self.assertEqual(len(report["entries"]), lines)
        for entry in report["entries"]:
            self.assertAlmostEqual(entry["error"], entry["simulated"] / entry["published"] - 1)
        held_out = [abs(e["error"]) for e in report["entries"] if e["held_out"]]
        median = sorted(held_out)[len(held_out) // 2]
        self.assertAlmostEqual(report["held_out"]["all"]["median"], median, places=3)

    def test_the_fit_makes_the_calibration_file_again(self):
        start = PUBLISHED / "coefficients_start.json"
        self.succeed("simulate", "--fit", "fitted.json", "--published", PUBLISHED,
                     "--calibration", start, "--rounds", 80)
        with open(SOURCE / "platforms/calibration.json", encoding="utf-8") as file:
            kept = json.load(file)
        with open(self.work / "fitted.json", encoding="utf-8") as file:
            self.assertEqual(json.load(file), kept)


if __name__ == "__main__":
    unittest.main()
