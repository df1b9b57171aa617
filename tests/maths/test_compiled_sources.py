"""A fingerprint changes with whatever is compiled into a kernel, and with nothing else."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import types
from numba.extending import intrinsic, overload
from scripts.mutants.planting import forget_kernels

from kinfolk.maths.compiled import compiled
from kinfolk.maths.kernel_cache import KernelCache, fingerprint


def made(source, **names):
    """A function from its source, in a module of its own."""
    module = {"__name__": __name__, "compiled": compiled} | names
    exec(source, module)
    return module["f"]


PLAIN = "def f(x):\n    return g(x) + C\n"


def test_comments_docstrings_and_lines_do_not_count():
    short = 'def f(x):\n    """What."""\n    return g(x) + C\n'
    longer = '\n\n# Why.\ndef f(x):\n    """What it is."""\n    # How.\n    return g(x) + C\n'
    assert fingerprint(made(short, C=1)) == fingerprint(made(longer, C=1))


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (1, 2),
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ((1, 2), (1, 3)),
        (np.zeros(2), np.ones(2)),
        (np.zeros(2), np.zeros((1, 2))),
        (NamedTuple("Pair", [("a", int), ("b", int)]), NamedTuple("Pair", [("b", int), ("a", int)])),
        (made("def f(x): return x"), made("def f(x): return -x")),
        (compiled(made("def f(x): return x")), compiled(made("def f(x): return -x"))),
        (compiled(made("def f(x): return x")), compiled(inline="always")(made("def f(x): return x"))),
        (compiled(made("def f(x, y=1): return x")), compiled(made("def f(x, y=2): return x"))),
        (compiled(made("def f(x): return C", C=1)), compiled(made("def f(x): return C", C=2))),
        ((compiled(made("def f(x): return x")),), (compiled(made("def f(x): return -x")),)),
        ({"a": compiled(made("def f(x): return x"))}, {"a": compiled(made("def f(x): return -x"))}),
    ],
)
def test_constants_and_called_kernels_count(value, other):
    assert fingerprint(made(PLAIN, C=1, g=value)) != fingerprint(made(PLAIN, C=1, g=other))
    assert fingerprint(made(PLAIN, C=1, g=value)) == fingerprint(made(PLAIN, C=1, g=value))


def test_names_that_a_kernel_does_not_use_do_not_count():
    assert fingerprint(made(PLAIN, C=1, unused=1)) == fingerprint(made(PLAIN, C=1, unused=2))


def test_what_a_closure_holds_counts():
    def closure(held):
        def f(x):
            return x + held

        return f

    assert fingerprint(closure(1)) == fingerprint(closure(1))
    assert fingerprint(closure(1)) != fingerprint(closure(2))


def test_kernels_that_call_each_other_have_fingerprints():
    names = {"__name__": __name__}
    exec("def f(x): return g(x)\ndef g(x): return f(x)", names)
    assert fingerprint(names["f"]) == fingerprint(names["g"])


def test_the_code_of_intrinsics_and_overloads_counts():
    def ones(shift):
        @intrinsic
        def count(typing_context, word):
            def codegen(context, builder, signature, arguments):
                return builder.shl(arguments[0], arguments[0].type(shift))

            return types.uint64(types.uint64), codegen

        return count

    assert fingerprint(made(PLAIN, C=1, g=ones(1))) != fingerprint(made(PLAIN, C=1, g=ones(2)))

    def overloaded(factor):
        g = made("def f(x): return x")

        @overload(g)
        def choose(x):
            return lambda x: factor * x

        return g

    assert fingerprint(made(PLAIN, C=1, g=overloaded(1))) != fingerprint(made(PLAIN, C=1, g=overloaded(2)))


def test_a_kernel_whose_bytecode_was_exchanged_is_looked_for_anew(monkeypatch):
    """As ``scripts/mutants`` exchanges it."""
    monkeypatch.setattr(KernelCache, "save_overload", KernelCache.save_overload)
    kernel = compiled(made("def f(x): return x"))
    before = kernel._cache._stamp
    kernel.py_func.__code__ = made("def f(x): return -x").__code__
    assert kernel._cache._stamp == before
    forget_kernels()
    assert kernel._cache._stamp != before
