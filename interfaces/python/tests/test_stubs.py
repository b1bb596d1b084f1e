"""The stub names what the package has, with the same parameters; the examples of the docstrings hold."""

import ast
import doctest
import inspect
from pathlib import Path

import pytest

import libdtc

STUB = ast.parse((Path(libdtc.__file__).parent / "__init__.pyi").read_text())
# What every object has.
INHERITED = {"__eq__", "__hash__", "__getitem__", "__init__", "__len__"}


def parameters(function):
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return [name for name in names if name != "self"]


def compare(body, found):
    for function in (node for node in body if isinstance(node, ast.FunctionDef)):
        real = inspect.getattr_static(found, function.name)
        if function.decorator_list and getattr(function.decorator_list[0], "id", "") == "property" or function.name in INHERITED:
            continue
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        names = [p.name for p in inspect.signature(real).parameters.values() if p.kind not in kinds and p.name != "self"]
        assert parameters(function) == names, function.name
        assert real.__doc__, function.name


def test_functions():
    compare(STUB.body, libdtc)
    public = {node.name for node in STUB.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")}
    assert public == set(libdtc.__all__)


@pytest.mark.parametrize("found", [libdtc.Layout, libdtc.Batch, libdtc.IndexAxis])
def test_classes(found):
    stub = next(node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name == found.__name__)
    compare(stub.body, found)
    names = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    assert {name for name in vars(found) if not name.startswith("_")} == {n for n in names if not n.startswith("_")}


def test_examples():
    assert doctest.testmod(libdtc).failed == 0
    count = 0
    for named in [*(getattr(libdtc, name) for name in libdtc.__all__), *vars(libdtc.Layout).values()]:
        for test in doctest.DocTestFinder().find(named, getattr(named, "__name__", "getter"), globs={"libdtc": libdtc}):
            assert doctest.DocTestRunner().run(test).failed == 0
            count += len(test.examples)
    assert count > 10
