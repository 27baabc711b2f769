"""tandem profile: measurements of this machine's lanes."""

import csv
import io
import signal
import subprocess
import time
import unittest

from cli_testing import TANDEM, CliTest

SMALL = ["--models", "tiny_conv,tiny_vit", "--use_gpu=false"]


class Profile(CliTest):
    def profile(self, *arguments):
        return self.succeed_json("profile", *SMALL, "--store", "m.sqlite", *arguments)

    def test_measures_tells_and_exports(self):
        report = self.profile("--budget", 0.01)
        self.assertGreater(report["measured"], 10)
        self.assertEqual(sum(row["rows"] for row in report["rows"]), report["measured"])
        more = self.profile("--budget", 0.01)
        rows = sum(row["rows"] for row in more["rows"])
        self.assertGreaterEqual(rows, report["measured"])
        status = self.succeed_json("profile", "--status", "--store", "m.sqlite")
        self.assertEqual(status["rows"], more["rows"])
        self.assertIn("cpu", status["lanes"])
        text = self.succeed("profile", "--export", "csv", "--store", "m.sqlite").stdout
        table = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(table), rows)
        for row in table:
            self.assertEqual(row["family"], row["slice_family"])
            self.assertGreater(float(row["median_us"]), 0)
        self.succeed("profile", "--export", "csv", "--store", "m.sqlite", "-o", "m.csv")
        self.assertEqual((self.work / "m.csv").read_text(encoding="utf-8"), text)

    def test_families(self):
        report = self.profile("--budget", 0.005, "--families", "linear,softmax")
        self.assertLessEqual({row["family"] for row in report["rows"]}, {"linear", "softmax"})
        self.refuse("profile", *SMALL, "--families", "lineal", says=["lineal", "linear"])

    def test_refuses(self):
        self.refuse("profile", *SMALL, "--lanes", "tpu", says=["tpu", "cpu"])
        self.refuse("profile", "--status", "--store", "none.sqlite", says=["none.sqlite", "profile"])
        (self.work / "text").write_text("of somebody", encoding="utf-8")
        self.refuse("profile", *SMALL, "--store", "text", says=["text", "SQLite"])
        self.assertEqual((self.work / "text").read_text(encoding="utf-8"), "of somebody")
        self.succeed("profile", *SMALL, "--store", "s.sqlite")
        rows = (self.work / "s.sqlite").read_bytes()
        self.refuse("profile", "--store", "s.sqlite", "--export", "csv", "-o", "s.sqlite",
                    says=["the store", "--output"])
        self.refuse("train", "--store", "s.sqlite", "-o", "s.sqlite", says=["the store", "--output"])
        self.assertEqual((self.work / "s.sqlite").read_bytes(), rows)

    def test_interrupted_goes_on(self):
        process = subprocess.Popen(
            [TANDEM, "profile", *SMALL, "--budget", "10", "--store", "m.sqlite"],
            cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        wal = self.work / "m.sqlite-wal"
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if wal.exists() and wal.stat().st_size > 100_000:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("goes on where this one stopped", errors)
        kept = self.succeed_json("profile", "--status", "--store", "m.sqlite")
        self.assertGreater(sum(row["rows"] for row in kept["rows"]), 0)


if __name__ == "__main__":
    unittest.main()
