"""The examples in the docstrings of the package, and its public names."""

import doctest
import importlib
import pkgutil

import pytest

import companion.countdown

MODULES = ["companion.countdown", "companion.seeds"] + [
    f"companion.countdown.{module.name}"
    for module in pkgutil.iter_modules(companion.countdown.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_public_names_exist_and_hide_no_module():
    names = companion.countdown.__all__
    assert names == sorted(names)
    modules = {module.name for module in pkgutil.iter_modules(companion.countdown.__path__)}
    assert not modules & set(names)
    assert all(hasattr(companion.countdown, name) for name in names)
