"""Print, as constraints for pip, the oldest versions of dependencies that ``pyproject.toml`` allows.

Those of the library, and of the extras that are named.
"""

import re
import sys
import tomllib
from pathlib import Path


def lowest(dependencies: list[str]) -> list[str]:
    """One ``name==version`` for every ``name>=version`` of the dependencies."""
    found = (re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", wanted) for wanted in dependencies)
    return [f"{match[1]}=={match[2]}" for match in found if match]


if __name__ == "__main__":
    text = Path(__file__).parents[1].joinpath("pyproject.toml").read_text("utf-8")
    project = tomllib.loads(text)["project"]
    named = [wanted for extra in sys.argv[1:] for wanted in project["optional-dependencies"][extra]]
    print("\n".join(lowest(project["dependencies"] + named)))
