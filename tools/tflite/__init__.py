"""From ONNX to LiteRT: see tools/tflite_export.py."""
