"""Print, as constraints for pip, the oldest versions of dependencies that ``pyproject.toml`` allows."""

import re
import tomllib
from pathlib import Path


def lowest(project: dict[str, list[str]]) -> list[str]:
    """One ``name==version`` for every ``name>=version`` of the dependencies."""
    found = (re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", wanted) for wanted in project["dependencies"])
    return [f"{match[1]}=={match[2]}" for match in found if match]


if __name__ == "__main__":
    text = Path(__file__).parents[1].joinpath("pyproject.toml").read_text("utf-8")
    print("\n".join(lowest(tomllib.loads(text)["project"])))
