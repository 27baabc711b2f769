#!/usr/bin/env python3
"""Prints the newest version of each of ONNX's operators, as the installed onnx package defines them.

    .venv/bin/python tools/list_operator_versions.py > tests/import/data/operator_versions.txt

After that the tests of the import name the operators whose lowerings were written for an older version:
read what changed (ONNX's Changelog.md), then raise the version in the table of lowerings and kLastOpset.
"""

import onnx
from onnx import defs


def main():
    newest = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "":
            newest[schema.name] = max(newest.get(schema.name, 0), schema.since_version)
    print(f"# onnx {onnx.__version__}: opset {defs.onnx_opset_version()}")
    for name, version in sorted(newest.items()):
        print(name, version)


if __name__ == "__main__":
    main()
