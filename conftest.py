"""Triton's kernels run in its interpreter in all tests, if Triton is there; decided before anything imports it."""

import os
from importlib.util import find_spec

os.environ.setdefault("TRITON_INTERPRET", "1")
collect_ignore_glob = []
if find_spec("triton") is None:
    collect_ignore_glob = ["src/ltga/kernels/triton/*", "src/ltga/kernels/operators/attention_triton.py"]
