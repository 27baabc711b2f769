"""Runs on simulated clocks: what examples/simulated/*.txt show is what is printed, to the letter.

With TANDEM_WRITE_EXAMPLES=1, what is printed is written there instead.
"""

import os
import pathlib
import shlex
import unittest

from cli_testing import CliTest

EXAMPLES = pathlib.Path(os.environ["TANDEM_SOURCE"]) / "examples/simulated"


class GoldenExamples(CliTest):
    maxDiff = None

    def test_timelines(self):
        files = sorted(EXAMPLES.glob("*.txt"))
        self.assertGreaterEqual(len(files), 3)
        for path in files:
            with self.subTest(path.name):
                command, expected = path.read_text(encoding="utf-8").split("\n", 1)
                program = "$ tandem "
                self.assertTrue(command.startswith(program), command)
                arguments = shlex.split(command[len(program):])
                printed = self.succeed(*arguments).stdout
                if os.environ.get("TANDEM_WRITE_EXAMPLES"):
                    path.write_text(f"{command}\n{printed}", encoding="utf-8")
                else:
                    self.assertEqual(printed, expected)


if __name__ == "__main__":
    unittest.main()
