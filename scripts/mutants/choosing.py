"""Which tests have a chance to notice a mutant: those that enter its function, the quickest and most varied first."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

# What makes a function a kernel: the one decorator, and the names that it has with some options.
DECORATORS = {"compiled", "inner", "reordered", "spliced", "_in_lanes"}


class Tests:
    """What the plugin ``covering`` wrote, and who calls which kernel.

    Parameters
    ----------
    covering : Path
        Lines of JSON, one a test.
    package : Path
        The folder of the package's sources.
    """

    def __init__(self, covering: Path, package: Path) -> None:
        self.seconds: dict[str, float] = {}
        self._entering: dict[str, set[str]] = defaultdict(set)
        for line in covering.read_text().splitlines():
            about = json.loads(line)
            self.seconds[about["test"]] = about["seconds"]
            for place in about["entered"]:
                file, _, name = place.partition(":")
                parts = [part for part in name.split(".") if not part.startswith("<")]
                for key in (f"{file}:{'.'.join(parts)}", ".".join(parts), file):
                    self._entering[key].add(about["test"])
        self._callers, self._kernels = _call_graph(package)
        # Tests that call kernels themselves: by the names that their files mention.
        mentioned: dict[str, set[str]] = {}
        for test in self.seconds:
            file = test.partition("::")[0]
            if file not in mentioned:
                mentioned[file] = _names_in(package.parents[1] / file)
            for name in mentioned[file] & self._kernels:
                self._entering[f"kernel {name}"].add(test)

    def of(self, file: str, function: str, budget: float) -> list[str]:
        """Tests that enter a function, up to a budget of seconds.

        Parameters
        ----------
        file : str
            Path of the file inside the package.
        function : str
            Its name, with its class; all tests of the file are asked about what stands outside of functions.
        budget : float
            Seconds that the tests may take together.
        """
        name = function.rsplit(".", 1)[-1]
        if name in self._kernels:
            callers = self._python_callers(name)
            found = set().union(*(self._entering[caller] for caller in callers))
            found |= set().union(*(self._entering[f"kernel {caller.rsplit('.', 1)[-1]}"] for caller in callers))
        else:
            found = self._entering[f"{file}:{function}"] or self._entering[function]
        found = found or self._entering[file]
        return list(self._varied(found, budget))

    def _python_callers(self, kernel: str) -> set[str]:
        seen, left = {kernel}, [kernel]
        while left:
            for caller in self._callers[left.pop()]:
                if caller not in seen:
                    seen.add(caller)
                    if caller.rsplit(".", 1)[-1] in self._kernels:
                        left.append(caller.rsplit(".", 1)[-1])
        return seen

    def _varied(self, found: set[str], budget: float) -> Iterator[str]:
        """One case of each test function before the second case of any."""
        cases: dict[str, list[str]] = defaultdict(list)
        for test in sorted(found, key=lambda test: (self.seconds[test], test)):
            cases[test.partition("[")[0]].append(test)
        ranked = [(rank, self.seconds[test], test) for tests in cases.values() for rank, test in enumerate(tests)]
        for _, seconds, test in sorted(ranked):
            if seconds <= budget:
                budget -= seconds
                yield test


def _names_in(path: Path) -> set[str]:
    return _names_of(ast.parse(path.read_text())) if path.exists() else set()


def _names_of(tree: ast.AST) -> set[str]:
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def _call_graph(package: Path) -> tuple[dict[str, set[str]], set[str]]:
    """Who mentions which function, by name, and the names of compiled kernels."""
    callers: dict[str, set[str]] = defaultdict(set)
    kernels = set()

    def look(node: ast.AST, names: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                if any(DECORATORS & _names_of(decorator) for decorator in child.decorator_list):
                    kernels.add(child.name)
                look(child, (*names, child.name))
            else:
                if isinstance(child, ast.Name | ast.Attribute):
                    callers[child.id if isinstance(child, ast.Name) else child.attr].add(".".join(names))
                look(child, names)

    for path in package.rglob("*.py"):
        look(ast.parse(path.read_text()), ())
    return callers, kernels
