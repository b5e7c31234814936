"""Shared by the tests of the statistics."""

import gc

import pytest


@pytest.fixture(autouse=True, scope="package")
def cheap_garbage_collection():
    """statsmodels collects garbage on every Holm correction, a quarter of a second with torch in memory."""
    gc.freeze()
    yield
    gc.unfreeze()
