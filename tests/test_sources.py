"""What the sources may not do: unpickle what they read, need one system's modules, leave an encoding to the system."""

import ast
from pathlib import Path

import pytest

SOURCES = sorted(Path(__file__).parents[1].joinpath("src").rglob("*.py"))
PICKLES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "jsonpickle"}
# Kernels that numba compiled, in places that nobody else may write to.
MAY_UNPICKLE = {"kinfolk/maths/kernel_cache.py"}
ONE_SYSTEM = {"fcntl", "grp", "msvcrt", "pwd", "resource", "syslog", "termios", "tty", "winreg"}
READERS_OF_PICKLES = {"read_pickle", "deserialize", "unpack_state"}


def name_of(path):
    return path.relative_to(Path(__file__).parents[1] / "src").as_posix()


def imports(tree):
    """Top-level packages that a file imports anywhere, and the line of each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name.partition(".")[0], node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0], node.lineno


def called(node):
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def unpickles(tree):
    """Lines that can run what a file holds."""
    yield from (line for name, line in imports(tree) if name in PICKLES)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        given = {word.arg: word.value for word in node.keywords}
        pickled = given.get("allow_pickle")
        if pickled is not None and not (isinstance(pickled, ast.Constant) and pickled.value is False):
            yield node.lineno
        of = getattr(getattr(node.func, "value", None), "id", "")
        if called(node) in READERS_OF_PICKLES or (called(node) == "load" and of in ("joblib", "torch")):
            yield node.lineno


def without_encoding(tree):
    """Lines that open a text in whatever encoding the system has."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        words = {word.arg for word in node.keywords}
        modes = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        binary = any("b" in mode for mode in modes)
        if called(node) == "read_text" and not node.args and "encoding" not in words:
            yield node.lineno
        if called(node) == "write_text" and len(node.args) < 2 and "encoding" not in words:
            yield node.lineno
        # A path's own open has the mode first; an archive's has a name there.
        first = getattr(node.args[0], "value", None) if node.args else "r"
        plain = isinstance(node.func, ast.Name) or first in ("r", "w", "a", "x")
        if called(node) == "open" and plain and not binary and "encoding" not in words:
            yield node.lineno


def one_system(tree):
    """Lines that import what another system lacks, but where its absence is expected."""
    guarded = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any(getattr(h.type, "id", "") == "ImportError" for h in node.handlers):
            guarded |= {line for part in node.body for _, line in imports(part)}
    return (line for name, line in imports(tree) if name in ONE_SYSTEM and line not in guarded)


def found(rule):
    trees = {name_of(path): ast.parse(path.read_text("utf-8")) for path in SOURCES}
    return {name: lines for name, tree in trees.items() if (lines := sorted(rule(tree)))}


def test_nothing_is_unpickled_but_the_kernels_own_cache():
    assert set(found(unpickles)) == MAY_UNPICKLE


def test_no_module_of_one_system_is_imported():
    assert found(one_system) == {}


def test_every_text_is_opened_in_an_encoding():
    assert found(without_encoding) == {}


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (unpickles, "import pickle"),
        (unpickles, "from cloudpickle import loads"),
        (unpickles, "np.load(path, allow_pickle=True)"),
        (unpickles, "joblib.load(path)"),
        (unpickles, "pd.read_pickle(path)"),
        (one_system, "def f():\n    import fcntl"),
        (one_system, "try:\n    import fcntl\nexcept ImportError:\n    import resource"),
        (one_system, "try:\n    import fcntl\nexcept ValueError:\n    pass"),
        (without_encoding, "open(path)"),
        (without_encoding, "open(path, 'w')"),
        (without_encoding, "path.open()"),
        (without_encoding, "path.open('a')"),
        (without_encoding, "path.read_text()"),
        (without_encoding, "path.write_text(text)"),
    ],
)
def test_each_rule_notices_what_it_is_about(rule, text):
    assert len(list(rule(ast.parse(text)))) == 1
