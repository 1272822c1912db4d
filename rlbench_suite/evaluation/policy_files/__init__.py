"""Read policies from files: checkpoints, ONNX and shared libraries."""
