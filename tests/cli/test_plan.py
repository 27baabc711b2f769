"""`tandem plan`, and plans that `tandem run` uses or refuses."""

import json
import unittest

from cli_testing import CliTest

MODEL = "zoo:tiny_residual"


class Plan(CliTest):
    def plan(self, *flags):
        self.succeed("plan", MODEL, "-o", "p.json", *flags)
        return json.loads((self.work / "p.json").read_text())

    def edit(self, change):
        plan = json.loads((self.work / "p.json").read_text())
        change(plan)
        (self.work / "p.json").write_text(json.dumps(plan))

    def test_json_has_every_strategy(self):
        report = self.succeed_json("plan", MODEL, "--explain", "-o", "p.json")
        for row in report["strategies"]:
            self.assertGreater(row["predicted_ms"], 0)
            self.assertGreaterEqual(row["search_ms"], 0)
        names = [row["strategy"] for row in report["strategies"]]
        self.assertLessEqual({"cpu", "gpu", "intra"}, set(names))
        self.assertEqual(report["plan"], json.loads((self.work / "p.json").read_text()))
        in_plan = {s["operator"] for lane in report["plan"]["lanes"] for s in lane["slices"]}
        self.assertEqual({row["operator"] for row in report["explanation"]}, in_plan)
        self.assertTrue(any(row["critical"] for row in report["explanation"]))
        ends = [s["end_us"] for row in report["explanation"] for s in row["slices"]]
        self.assertAlmostEqual(max(ends) / 1000, report["predicted_ms"])

    def test_text(self):
        text = self.succeed(
            "plan", MODEL, "--strategy", "cpu", "--explain", environment={"COLUMNS": "90"}
        ).stdout
        for part in ("> cpu", "search", "Timeline of cpu", "cpu |", "gpu |", "on a critical path"):
            self.assertIn(part, text)
        self.assertTrue(all(len(line) <= 90 for line in text.splitlines() if "|" in line))

    def test_a_plan_runs_without_calibration_and_gives_the_same_outputs(self):
        plan = self.plan("--strategy", "intra")
        report = self.succeed_json(
            "run", MODEL, "--plan", "p.json", "--runs", 1, "--verify"
        )["strategies"][0]
        self.assertEqual(report["strategy"], "intra")
        self.assertEqual(report["init_parts"]["calibrate"], 0)
        for lane in plan["lanes"]:
            self.assertEqual(report["slices"][lane["lane"]], len(lane["slices"]))

    def test_is_refused_with_the_reason_and_made_anew_on_demand(self):
        self.plan("--strategy", "gpu")
        self.refuse("run", "zoo:tiny_conv", "--plan", "p.json", says=["tiny_residual", "--replan"])
        self.refuse("run", MODEL, "--plan", "p.json", "--no-winograd", says=["platform"])
        self.refuse("run", MODEL, "--plan", "p.json", "--strategy", "cpu", says=["--replan"])
        self.refuse("run", MODEL, "--replan", status=2, says=["--plan"])
        self.edit(lambda plan: plan.update(engine="0.0.0"))
        self.refuse("run", MODEL, "--plan", "p.json", says=["engine", "0.0.0"])
        report = self.succeed_json(
            "run", MODEL, "--plan", "p.json", "--replan", "--strategy", "cpu", "--runs", 1
        )
        self.assertEqual(report["strategies"][0]["strategy"], "cpu")
        rewritten = json.loads((self.work / "p.json").read_text())
        self.assertEqual(rewritten["strategy"], "cpu")
        self.succeed("run", MODEL, "--plan", "p.json", "--runs", 1)

    def test_damaged_plans(self):
        self.refuse("run", MODEL, "--plan", "p.json", says=["p.json", "tandem plan"])
        self.plan("--strategy", "cpu")
        name = json.loads((self.work / "p.json").read_text())["lanes"][0]["slices"][1]["operator"]
        whole = (self.work / "p.json").read_text()
        (self.work / "p.json").write_text(whole[: len(whole) // 2])
        self.refuse("run", MODEL, "--plan", "p.json", says=["p.json", "ends too early"])
        (self.work / "p.json").write_text(whole)
        self.edit(lambda plan: plan["lanes"][0]["slices"].pop(1))
        self.refuse("run", MODEL, "--plan", "p.json", says=[name])
        (self.work / "p.json").write_text(whole)
        self.edit(lambda plan: plan["lanes"][0]["slices"].reverse())
        self.refuse("run", MODEL, "--plan", "p.json", says=["contradicts itself"])
        (self.work / "p.json").write_text(whole)
        self.edit(lambda plan: plan["lanes"][0]["slices"][0].update(threads=-1))
        self.refuse("run", MODEL, "--plan", "p.json", says=["threads is -1"])
        self.refuse("run", MODEL, "--plan", self.work, says=["is a folder"])

    def test_plans_that_say_what_nobody_planned(self):
        self.plan("--strategy", "cpu")
        whole = (self.work / "p.json").read_text()
        for change, says in (
            (lambda plan: plan["lanes"][0]["slices"][2].update(threads=99),
             ["lanes[0].slices[2].threads is 99", "lane cpu"]),
            (lambda plan: plan["lanes"][0]["slices"][2].update(thread=1),
             ["lanes[0].slices[2].thread is nothing"]),
            (lambda plan: plan["lanes"][0]["slices"][2].update(begin=1, end=2),
             ["lanes[0].slices[2].begin is nothing"]),
            (lambda plan: plan["lanes"][1].update(cores=1), ["lanes[1].cores is nothing"]),
            (lambda plan: plan["model"].update(path="x"), ["model.path is nothing"]),
            (lambda plan: plan.update(comment="mine"), ["comment is nothing"]),
            (lambda plan: plan.update(strategy="foo"), ["foo", "joint"]),
        ):
            with self.subTest(says=says):
                (self.work / "p.json").write_text(whole)
                self.edit(change)
                self.refuse("run", MODEL, "--plan", "p.json", says=["p.json", *says])
        (self.work / "p.json").write_text(whole)
        self.succeed("run", MODEL, "--plan", "p.json", "--runs", 1)

    def test_an_operator_has_one_pin(self):
        name = self.plan("--strategy", "cpu")["lanes"][0]["slices"][0]["operator"]
        done = self.refuse(
            "plan", MODEL, "--platform", "pixel5", "--pin", f"{name}=cpu", "--pin", f"{name}=gpu:0.5",
            says=[f"{name}=gpu:0.5", "pinned already"])
        self.assertNotIn("measuring", done.stderr)

    def test_a_proof_is_announced_with_its_limits(self):
        done = self.succeed("plan", "zoo:tiny_linear", "--platform", "pixel5", "--strategy", "exact",
                            "--budget-ms", 20000)
        self.assertRegex(done.stderr, "strategy exact: .* at most 20 million nodes and 20 s")
        done = self.succeed("plan", "zoo:tiny_linear", "--platform", "pixel5")
        self.assertNotIn("exact", done.stderr)

    def test_destroys_no_file(self):
        self.succeed("zoo", "export", "tiny_conv", "-o", "m.onnx")
        model = (self.work / "m.onnx").read_bytes()
        self.refuse("plan", "m.onnx", "-o", "./m.onnx", says=["the model", "--output", "m.onnx"])
        self.assertEqual((self.work / "m.onnx").read_bytes(), model)
        self.plan("--strategy", "cpu")
        plan = (self.work / "p.json").read_text()
        self.refuse("run", MODEL, "--plan", "p.json", "--trace", "p.json", says=["--plan", "--trace"])
        self.refuse("run", MODEL, "--trace", "t", "--report", "t", says=["--trace", "--report"])
        self.assertEqual((self.work / "p.json").read_text(), plan)
        (self.work / "notes").write_text("of somebody")
        self.refuse("run", MODEL, "--plan", "notes", "--replan", says=["notes", "no plan"])
        self.assertEqual((self.work / "notes").read_text(), "of somebody")

    def test_flags_that_a_plan_leaves_without_effect(self):
        self.plan("--strategy", "cpu")
        for flags in (["--pin", "stem=gpu"], ["--evaluations", 5], ["--budget-ms", 1]):
            self.refuse("run", MODEL, "--plan", "p.json", *flags, says=["--plan", "--replan"])
        self.refuse("run", MODEL, "--predictors", "none.json", says=["none.json"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
