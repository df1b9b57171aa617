"""The long description of the package: the README without pictures, and without links into the repository.

Both would point nowhere on a page that does not stand beside the repository's files.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def describe(readme: str) -> str:
    """The README as it reads by itself."""
    without_pictures = re.sub(r"^!\[[^\]]*\]\([^)]*\)\n+(\*[^*]+\*\n+)?", "", readme, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", without_pictures)


class LongDescription(MetadataHookInterface):
    """What hatchling calls to fill in the project's dynamic metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the long description."""
        text = describe(Path(self.root, "README.md").read_text("utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
