#!/usr/bin/env python3
"""Reads the text of a picture with a pretrained detector and recogniser, run by Tandem.

Both models are those of PP-OCRv4. The detector says for every pixel how likely it belongs to a line
of text; the recogniser reads cropped lines. Each runs on the CPU lane alone, on the OpenCL lane
alone and split over both, timed in turn; the answers of all three are compared with ONNX Runtime's.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

from tandem_cli import STRATEGIES, TandemError, compare_strategies

# PP-OCRv4's own settings.
TEXT_THRESHOLD = 0.3
LEAST_BOX_PIXELS = 30
LINE_HEIGHT = 48
DETECTOR_MULTIPLE = 32
# The detector marks lines narrower than their letters: widen what it found by this factor of its
# height, as its post-processing does.
WIDENING = 3.0

# Greatest difference of probabilities from ONNX Runtime's: both compute in single precision and add
# in different orders, through some 60 layers of convolutions.
TOLERANCE = 2e-3


def normalized(pixels):
    """[H, W, 3] of 0..255 as [3, H, W] of -1..1, blue first."""
    return np.ascontiguousarray((pixels[:, :, ::-1] / 127.5 - 1).transpose(2, 0, 1), np.float32)


def detector_input(image, width):
    """The picture at the given width, with sides that are multiples of the detector's stride."""
    height = image.height * width / image.width
    size = [max(1, round(side / DETECTOR_MULTIPLE)) * DETECTOR_MULTIPLE for side in (width, height)]
    pixels = np.asarray(image.resize(size, Image.Resampling.BICUBIC), np.float32)
    return pixels, normalized(pixels)[None]


def components(mask):
    """Connected components of a boolean map, as lists of row and column arrays.

    Runs of set pixels are joined with the runs that they touch in the row above.
    """
    parent = []

    def find(label):
        while parent[label] != label:
            parent[label] = parent[parent[label]]
            label = parent[label]
        return label

    labels = np.full(mask.shape, -1, np.int64)
    for row, line in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], line.view(np.int8), [0]))))
        for begin, end in zip(edges[::2], edges[1::2]):
            label = len(parent)
            parent.append(label)
            if row > 0:
                # Diagonal neighbours touch, too.
                above = labels[row - 1, max(0, begin - 1) : end + 1]
                for other in np.unique(above[above >= 0]):
                    parent[find(label)] = find(other)
            labels[row, begin:end] = label
    roots = np.array([find(label) for label in range(len(parent))], np.int64)
    rows, columns = np.nonzero(mask)
    owner = roots[labels[rows, columns]] if len(parent) else np.array([], np.int64)
    return [(rows[owner == root], columns[owner == root]) for root in np.unique(owner)]


class Line:
    """A line of text: its centre as a curve over columns, and its height."""

    def __init__(self, rows, columns):
        self.left, self.right = columns.min(), columns.max() + 1
        used, thickness = np.unique(columns, return_counts=True)
        middle = np.bincount(columns, rows)[used] / thickness
        # A photographed line is bent a little; a short one too short to tell.
        degree = 2 if len(used) > 100 else 1
        self.curve = np.polynomial.Polynomial.fit(used, middle, degree)
        self.height = float(np.median(thickness)) * WIDENING
        margin = self.height / 2
        self.left -= margin
        self.right += margin

    def sort_key(self):
        return float(self.curve((self.left + self.right) / 2)), float(self.left)

    def crop(self, pixels):
        """The line straightened and scaled to the recogniser's height, bilinear."""
        scale = self.height / LINE_HEIGHT
        width = max(1, round((self.right - self.left) / scale))
        columns = self.left + (np.arange(width) + 0.5) * scale
        offsets = (np.arange(LINE_HEIGHT) + 0.5 - LINE_HEIGHT / 2) * scale
        rows = self.curve(columns)[None, :] + offsets[:, None]
        rows = rows.clip(0, pixels.shape[0] - 1.001)
        columns = np.broadcast_to(columns, rows.shape).clip(0, pixels.shape[1] - 1.001)
        row, column = rows.astype(int), columns.astype(int)
        down, right = (rows - row)[..., None], (columns - column)[..., None]
        top = pixels[row, column] * (1 - right) + pixels[row, column + 1] * right
        bottom = pixels[row + 1, column] * (1 - right) + pixels[row + 1, column + 1] * right
        return top * (1 - down) + bottom * down


def find_lines(probabilities):
    lines = [
        Line(rows, columns)
        for rows, columns in components(probabilities > TEXT_THRESHOLD)
        if len(rows) >= LEAST_BOX_PIXELS and np.ptp(columns) > 1
    ]
    return sorted(lines, key=Line.sort_key)


def recognizer_input(lines, pixels):
    """All lines as one batch, padded on the right to the longest."""
    crops = [normalized(line.crop(pixels)) for line in lines]
    width = max(crop.shape[2] for crop in crops)
    width = -(-width // DETECTOR_MULTIPLE) * DETECTOR_MULTIPLE
    return np.stack([np.pad(crop, ((0, 0), (0, 0), (0, width - crop.shape[2]))) for crop in crops])


def decode(probabilities, characters):
    """Connectionist temporal classification: repeated symbols count once, blanks not at all."""
    texts = []
    for best in probabilities.argmax(axis=2):
        kept = best[np.concatenate(([True], best[1:] != best[:-1]))]
        texts.append("".join(characters[symbol] for symbol in kept if symbol != 0))
    return texts


def alphabet(model):
    """The recogniser carries its characters; symbol 0 is the blank, the last one the space."""
    metadata = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).get_modelmeta()
    listed = metadata.custom_metadata_map.get("character")
    if listed is None:
        raise TandemError(f"{model} has no list of characters in its metadata")
    return ["", *listed.splitlines(), " "]


def run_onnxruntime(model, tensor):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: tensor})[0]


def run_model(tandem, title, model, tensor, runs, work):
    """Runs all strategies, prints times, checks them against ONNX Runtime.

    Returns the output of each strategy, and ONNX Runtime's.
    """
    print(f"\n{title}: {Path(model).name} on {list(tensor.shape)}", flush=True)
    expected = run_onnxruntime(model, tensor)
    report, outputs = compare_strategies(tandem, model, {"x": tensor}, runs, work)
    answers = {}
    for result in report["strategies"]:
        strategy = result["strategy"]
        (answers[strategy],) = outputs[strategy].values()
        difference = float(np.abs(answers[strategy] - expected).max())
        print(
            f"  {strategy:6} {result['time_ms']['median']:9.2f} ms"
            f"  {result['speed_up_over_best_lane']:6.3f}x the best lane"
            f"  {result['share_of_limit']:5.2f} of the limit {report['limit']:.2f}x;"
            f"  max difference from ONNX Runtime {difference:.1e}"
        )
        if not difference <= TOLERANCE:
            raise TandemError(
                f"{strategy} differs from ONNX Runtime by {difference}, more than {TOLERANCE}"
            )
    return answers, expected


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tandem", required=True, help="the tandem binary")
    parser.add_argument("--detector", required=True)
    parser.add_argument("--recognizer", required=True)
    parser.add_argument("--image", required=True)
    parser.add_argument("--width", type=int, default=512, help="of the picture for the detector")
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()

    image = Image.open(arguments.image).convert("RGB")
    print(f"Picture: {Path(arguments.image).name}, {image.width} x {image.height}")
    pixels, tensor = detector_input(image, arguments.width)
    with tempfile.TemporaryDirectory(prefix="tandem-demo-") as work:
        maps, expected_map = run_model(
            arguments.tandem, "Detector", arguments.detector, tensor, arguments.runs, work
        )
        lines = find_lines(maps["intra"][0, 0])
        if not lines:
            raise TandemError("no text found in the picture")
        if len(lines) != len(find_lines(expected_map[0, 0])):
            raise TandemError("ONNX Runtime's map has another number of lines")
        print(f"  {len(lines)} lines of text")

        batch = recognizer_input(lines, pixels)
        outputs, expected = run_model(
            arguments.tandem, "Recogniser", arguments.recognizer, batch, arguments.runs, work
        )
    characters = alphabet(arguments.recognizer)
    reference = decode(expected, characters)
    for strategy in STRATEGIES:
        if decode(outputs[strategy], characters) != reference:
            raise TandemError(f"{strategy} reads other text than ONNX Runtime")

    print("\nText found (ONNX Runtime reads the same):")
    for text in reference:
        print(f"  {text}")


if __name__ == "__main__":
    try:
        main()
    except (TandemError, OSError) as error:
        print(f"demo_ocr: {error}", file=sys.stderr)
        sys.exit(1)
