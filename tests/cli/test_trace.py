"""Traces of `tandem run`, read by Perfetto's own message classes, and reports made of them."""

import html.parser
import json
import os
import pathlib
import subprocess
import unittest

from cli_testing import CliTest

PYTHON = pathlib.Path(os.environ["TANDEM_SOURCE"]) / ".venv/bin/python"
MODEL = "zoo:tiny_inception"

# All packets of a trace, by the definitions that come with the `perfetto` package. (Its trace processor
# is a program that the package downloads when it is first used: tests have no network.)
READ = """
import json, sys
from google.protobuf import json_format
from perfetto.protos.perfetto.trace import perfetto_trace_pb2
trace = perfetto_trace_pb2.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
print(json.dumps([json_format.MessageToDict(p) for p in trace.packet]))
"""


class Page(html.parser.HTMLParser):
    """Fails at tags that do not nest; collects what a page would load."""

    VOID = {"meta", "br"}

    def __init__(self):
        super().__init__()
        self.open = []
        self.rects = 0
        self.loads = []

    def handle_starttag(self, tag, attributes):
        self.rects += tag == "rect"
        self.loads += [v for k, v in attributes if k in ("src", "href")]
        if tag in ("script", "link", "img"):
            self.loads.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class TraceTest(CliTest):
    def setUp(self):
        super().setUp()
        # Every second slice on the other lane: there must be crossings.
        self.succeed(
            "run", MODEL, "--strategy", "cpu", "--plan", "p.json", "--replan", "--runs", 1
        )
        plan = json.loads((self.work / "p.json").read_text())
        cpu, gpu = plan["lanes"]
        for i, piece in enumerate(cpu["slices"]):
            piece.update(start_us=10 * i, predicted_us=5)
        gpu["slices"] = cpu["slices"][1::2]
        cpu["slices"] = cpu["slices"][0::2]
        (self.work / "p.json").write_text(json.dumps(plan))
        self.plan = {lane["lane"]: [s["operator"] for s in lane["slices"]] for lane in plan["lanes"]}

    def trace(self, *flags):
        self.succeed("run", MODEL, "--plan", "p.json", "--runs", 2, "--trace", "t.trace", *flags)
        done = subprocess.run(
            [PYTHON, "-c", READ, self.work / "t.trace"], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_perfetto_s_messages(self):
        for mechanism in ("svm", "event"):
            with self.subTest(mechanism=mechanism):
                self.check(self.trace("--sync", mechanism))

    def check(self, packets):
        tracks = {}
        processes = {}
        for packet in packets:
            descriptor = packet.get("trackDescriptor", {})
            if "process" in descriptor:
                processes[descriptor["process"]["pid"]] = descriptor["process"]["processName"]
            if "thread" in descriptor:
                thread = descriptor["thread"]
                tracks[descriptor["uuid"]] = (thread["pid"], thread["threadName"])
        measured, predicted = sorted(processes)
        self.assertIn("measured", processes[measured])
        self.assertIn("predicted", processes[predicted])
        lanes = [(pid, lane) for pid in (measured, predicted) for lane in ("cpu", "gpu")]
        self.assertEqual(sorted(tracks.values()), sorted(lanes))

        spans = {track: [] for track in tracks}
        flows = {}
        for packet in packets:
            event = packet.get("trackEvent")
            if event is None or event["type"] == "TYPE_INSTANT":
                continue
            time = int(packet["timestamp"])
            of_track = spans[event["trackUuid"]]
            if event["type"] == "TYPE_SLICE_BEGIN":
                # Nothing on a lane overlaps.
                self.assertTrue(not of_track or of_track[-1]["end"] is not None)
                self.assertTrue(not of_track or of_track[-1]["end"] <= time)
                notes = {a["name"]: a for a in event["debugAnnotations"]}
                span = {
                    "kind": event["categories"][0], "name": event["name"], "begin": time,
                    "end": None, "operator": notes["operator"].get("stringValue"),
                    "process": tracks[event["trackUuid"]][0],
                }
                of_track.append(span)
                for flow in event.get("flowIds", []):
                    flows.setdefault(flow, [None, None])[0] = span
                for flow in event.get("terminatingFlowIds", []):
                    flows.setdefault(flow, [None, None])[1] = span
            else:
                self.assertLessEqual(of_track[-1]["begin"], time)
                of_track[-1]["end"] = time
        for track, (_, lane) in tracks.items():
            slices = [s for s in spans[track] if s["kind"] == "slice"]
            self.assertEqual([s["operator"] for s in slices], self.plan[lane])
            for span in slices:
                self.assertTrue(span["name"].startswith(span["operator"]))
            self.assertTrue(all(s["end"] is not None for s in spans[track]))
        # Arrows join slices of different lanes, and go forward in time.
        self.assertTrue(any(s["kind"] == "wait" for of_track in spans.values() for s in of_track))
        self.assertEqual({f[0]["process"] for f in flows.values()}, {measured, predicted})
        for source, target in flows.values():
            self.assertEqual(source["kind"], "slice")
            self.assertEqual(target["kind"], "slice")
            self.assertEqual(source["process"], target["process"])
            self.assertLessEqual(source["end"], target["begin"])

    def test_report(self):
        self.succeed(
            "run", MODEL, "--plan", "p.json", "--runs", 2, "--trace", "t.trace", "--report", "a.html"
        )
        self.succeed("report", "t.trace", "-o", "b.html")
        for name in ("a.html", "b.html"):
            text = (self.work / name).read_text()
            page = Page()
            page.feed(text)
            self.assertEqual(page.open, [])
            self.assertEqual(page.loads, [])
            self.assertGreaterEqual(page.rects, 2 * sum(map(len, self.plan.values())))
            for operators in self.plan.values():
                for operator in operators:
                    self.assertIn(operator, text)
            for part in ("tiny_inception", "median", "governor", "busy", "measured / predicted"):
                self.assertIn(part, text)

    def test_what_is_no_trace(self):
        self.refuse("report", "nothing.trace", "-o", "a.html", says=["nothing.trace", "--trace"])
        (self.work / "t.trace").write_text("no trace at all")
        self.refuse("report", "t.trace", "-o", "a.html", says=["t.trace", "no trace"])
        self.succeed("run", MODEL, "--plan", "p.json", "--runs", 1, "--trace", "t.trace")
        whole = (self.work / "t.trace").read_bytes()
        for size in (0, len(whole) // 3, len(whole) - 1):
            (self.work / "t.trace").write_bytes(whole[:size])
            self.refuse("report", "t.trace", "-o", "a.html", says=["t.trace"])
        self.assertFalse((self.work / "a.html").exists())
        self.refuse("run", MODEL, "--compare", "cpu,gpu", "--trace", "t", status=2, says=["--trace"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
