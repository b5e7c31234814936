"""Shared by all tests: one thread per test process, so that parallel runs do not fight for the cores."""

import os

import torch

if os.environ.get("PYTEST_XDIST_WORKER"):
    torch.set_num_threads(1)
