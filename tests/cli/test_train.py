"""tandem train: predictors from measurements."""

import csv
import json
import os
import pathlib
import unittest
import xml.etree.ElementTree

from cli_testing import CliTest

PHONES = pathlib.Path(os.environ["TANDEM_SOURCE"]) / "data/phones"
NETWORKS = 15


def fnv1a(data):
    """The hash of predictors' files."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


class Train(CliTest):
    def some_networks(self):
        """The first networks of the phones' data, as a file of its own."""
        with open(PHONES / "tflite_cnn_ops_gpu.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        names = list(dict.fromkeys(row[0] for row in rows[1:]))[:NETWORKS]
        self.write_rows([rows[0]] + [row for row in rows[1:] if row[0] in names])
        return names

    def write_rows(self, rows):
        with open(self.work / "ops.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)

    def test_reports_errors_of_held_out_networks(self):
        self.some_networks()
        arguments = ["train", "--csv", "ops.csv", "--folds", 3, "--trees", 30, "--output", "models"]
        report = self.succeed_json(
            *arguments, "--end-to-end", PHONES / "tflite_cnn_e2e.csv"
        )
        phones = {phone["phone"]: phone for phone in report["phones"]}
        self.assertEqual(list(phones), ["pixel4", "s10", "a03s", "iphone7", "iphonexs"])
        for name, phone in phones.items():
            families = {family["family"]: family for family in phone["families"]}
            convolution = families["convolution"]
            for key in ("p90", "within_10", "mape_true_kernel", "mape_without_kernel"):
                self.assertGreater(convolution[key], 0)
            self.assertEqual(phone["end_to_end"]["count"], NETWORKS)
            self.assertEqual(set(phone["transfer"]), {"50", "500"})
            with open(self.work / f"models/{name}-convolution.json", encoding="utf-8") as file:
                model = json.load(file)
            self.assertEqual(model["platform"], f"phones/{name}")
            self.assertEqual(model["statistics"]["rows"], convolution["operators"])
        def mean(key):
            return sum(phone["families"][0][key] for phone in report["phones"]) / len(phones)

        self.assertLess(mean("mape"), mean("mape_flops_only"))
        text = self.succeed(*arguments).stdout
        self.assertIn("pixel4", text)
        shown = 100 * phones["pixel4"]["families"][0]["mape"]
        self.assertIn(f"{shown:.1f}", text)

    def test_a_schema_of_ones_own(self):
        schema = json.loads(self.succeed("train", "--print-schema").stdout)
        schema["group_column"] = "network"
        schema["devices"] = schema["devices"][:1]
        (self.work / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
        self.some_networks()
        text = (self.work / "ops.csv").read_text(encoding="utf-8")
        (self.work / "ops.csv").write_text("network" + text[len("model") :], encoding="utf-8")
        self.refuse("train", "--csv", "ops.csv", says=["no column 'model'", "ops.csv"])
        report = self.succeed_json(
            "train", "--csv", "ops.csv", "--schema", "schema.json", "--folds", 2, "--trees", 5
        )
        self.assertEqual([phone["phone"] for phone in report["phones"]], ["pixel4"])
        self.assertEqual(report["phones"][0]["transfer"], {})

    def test_says_what_is_wrong_with_a_file(self):
        home = {"XDG_DATA_HOME": str(self.work)}
        self.refuse("train", "--use_gpu=false", environment=home, says=["tandem profile"])
        self.refuse("train", "--csv", "nowhere.csv", says=["nowhere.csv"])
        self.refuse("train", "--csv", "nowhere.csv", "--schema", "tablets", says=["'tablets'"])
        (self.work / "ops.csv").write_text("", encoding="utf-8")
        self.refuse("train", "--csv", "ops.csv", says=["ops.csv", "empty"])
        names = self.some_networks()
        self.refuse("train", "--csv", "ops.csv", "--folds", len(names) + 1, says=["--folds"])
        self.refuse("train", "--csv", "ops.csv", "--depth", 20, says=["depth"])
        with open(self.work / "ops.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        rows[7][3] = "fast"
        self.write_rows(rows)
        self.refuse("train", "--csv", "ops.csv", says=["line 8", "pixel4|gpu|float", "'fast'"])

    def profile(self):
        lanes = ["--use_gpu=false"]
        self.succeed(
            "profile", *lanes, "--models", "tiny_conv,tiny_vit", "--store", "m.sqlite",
            "--budget", 0.04,
        )
        return lanes

    def test_learns_from_this_machines_measurements(self):
        lanes = self.profile()
        arguments = ["train", *lanes, "--store", "m.sqlite", "-o", "p.json", "--trees", 20]
        report = self.succeed_json(
            *arguments, "--folds", 3, "--budgets", "1s,1h,full", "--plots", "plots"
        )
        for family in report["families"]:
            self.assertEqual(
                family["meets_target"], family["ours"]["mape"] <= family["target"]
            )
            self.assertGreaterEqual(family["target"], 1.5 * family["noise"]["used"])
        short, long, full = report["budgets"]
        self.assertTrue(short["reached"])
        self.assertFalse(long["reached"])
        self.assertLess(short["rows"], long["rows"])
        self.assertEqual(long["rows"], full["rows"])
        self.assertEqual(full["rows"], report["rows"])
        ours = {key: report["lanes"][0][key] for key in ("rows", "mape", "time_weighted")}
        self.assertLessEqual(ours.items(), full["lanes"][0].items())
        picture = (self.work / "plots/predicted_cpu.svg").read_text(encoding="utf-8")
        svg = xml.etree.ElementTree.fromstring(picture)
        series = svg.findall("{http://www.w3.org/2000/svg}path")
        self.assertEqual(len(series), len(report["families"]))
        marks = sum(path.get("d").count("M") for path in series)
        self.assertGreater(marks, report["lanes"][0]["rows"] / 4)
        self.refuse(*arguments, "--budgets", "ten", says=["'ten'", "10s"])

    def test_saved_predictors_are_used_or_refused(self):
        lanes = self.profile()
        self.succeed("train", *lanes, "--store", "m.sqlite", "-o", "p.json", "--folds", 2)
        run = ["run", "zoo:tiny_conv", *lanes, "--strategy", "chain"]
        self.succeed(*run, "--costs", "predicted", "--predictors", "p.json")
        self.refuse(*run, "--costs", "predicted", "--predictors", "none.json", says=["none.json"])
        first, header, models = (self.work / "p.json").read_bytes().split(b"\n", 2)
        self.assertEqual(first, b"tandem predictors 2 %016x" % fnv1a(header))
        document = json.loads(header)
        engine = document["engine"]
        header = json.dumps({**document, "engine": "older"}).encode()
        first = b"tandem predictors 2 %016x" % fnv1a(header)
        older = b"\n".join([first, header, models])
        (self.work / "older.json").write_bytes(older)
        self.refuse(
            *run, "--costs", "predicted", "--predictors", "older.json", says=["older", engine]
        )
        (self.work / "half.json").write_bytes(older[: len(older) // 2])
        self.refuse(*run, "--costs", "predicted", "--predictors", "half.json", says=["half.json"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
