"""What the tests of the command line share: running it, and writing small ONNX and .npy files.

Only Python's own library is used, so that the tests run wherever the build does.
"""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

TANDEM = os.environ["TANDEM_BINARY"]
TIMEOUT_S = 120


class CliTest(unittest.TestCase):
    """Runs the binary in a fresh folder. The tests of a file share caches, so that each kernel is
    compiled once."""

    @classmethod
    def setUpClass(cls):
        cls.cache = pathlib.Path(tempfile.mkdtemp(prefix="tandem-cli-cache-"))
        cls.addClassCleanup(shutil.rmtree, cls.cache)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tandem-cli-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        # What the user's machine has measured and learnt is neither used nor replaced.
        self.environment = dict(
            os.environ, XDG_CACHE_HOME=str(self.cache), XDG_DATA_HOME=str(self.folder / "data"))
        self.work = self.folder / "work"
        self.work.mkdir()

    def use_fresh_caches(self):
        self.cache = self.folder / "cache"
        self.environment["XDG_CACHE_HOME"] = str(self.cache)

    def run_tandem(self, *arguments, environment=None, stdout=subprocess.PIPE):
        """A hang is an error: it ends with subprocess.TimeoutExpired."""
        return subprocess.run(
            [TANDEM, *map(str, arguments)],
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            cwd=self.work,
            env={**self.environment, **(environment or {})},
        )

    def succeed(self, *arguments, **keywords):
        done = self.run_tandem(*arguments, **keywords)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def succeed_json(self, *arguments, **keywords):
        return json.loads(self.succeed(*arguments, "--json", **keywords).stdout)

    def refuse(self, *arguments, status=1, says=(), **keywords):
        """The command must end with that status (never by a signal), print nothing on stdout, and
        say each of `says` on stderr."""
        done = self.run_tandem(*arguments, **keywords)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.endswith("\n"), done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)
        return done

    def leftovers(self):
        return sorted(str(path.relative_to(self.work)) for path in self.work.rglob("*"))


# --- .npy ---


def write_npy(path, shape, values, dtype="<f4"):
    code = {"<f4": "f", "<i8": "q", "<f8": "d"}[dtype]
    extents = "".join(f"{extent}, " for extent in shape)
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({extents}), }}\n".encode()
    data = struct.pack(f"<{len(values)}{code}", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


def read_npy(path):
    """The floats of a file that Tandem wrote."""
    content = path.read_bytes()
    (length,) = struct.unpack_from("<H", content, 8)
    data = content[10 + length :]
    return struct.unpack(f"<{len(data) // 4}f", data)


# --- ONNX, as protocol buffers ---


def _varint(value):
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _integer(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, value):
    if isinstance(value, str):
        value = value.encode()
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def node(op_type, inputs, outputs, name):
    return (
        b"".join(_bytes(1, text) for text in inputs)
        + b"".join(_bytes(2, text) for text in outputs)
        + _bytes(3, name)
        + _bytes(4, op_type)
    )


def value_info(name, shape):
    """Of floats; text in `shape` is a symbolic extent."""
    extents = b"".join(
        _bytes(1, _bytes(2, e) if isinstance(e, str) else _integer(1, e)) for e in shape
    )
    tensor = _integer(1, 1) + _bytes(2, extents)
    return _bytes(1, name) + _bytes(2, _bytes(1, tensor))


def model(nodes, inputs, outputs, opset=13):
    graph = (
        b"".join(_bytes(1, n) for n in nodes)
        + _bytes(2, "test")
        + b"".join(_bytes(11, i) for i in inputs)
        + b"".join(_bytes(12, o) for o in outputs)
    )
    return _integer(1, 8) + _bytes(7, graph) + _bytes(8, _integer(2, opset))
