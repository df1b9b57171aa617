"""Tables of a TOML file, read key by key: each error is one sentence that names the file and the key."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

_LARGEST = 1 << 20


def read_settings(path: Path) -> Settings:
    """Read a TOML file.

    Raises
    ------
    ValueError
        Where it is not TOML.
    """
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"{path} has more than {_LARGEST} octets, which is too much for settings.")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}.") from error
    return Settings(path, "", values, [])


class Settings:
    """One table of a settings file.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        How the table is called in it, "" for the outermost.
    values : dict
        What is in it.
    warnings : list of str
        Where warnings go, shared by all tables of the file.
    """

    def __init__(self, path: Path, name: str, values: dict[str, Any], warnings: list[str]) -> None:
        self.path = path
        self.name = name
        self.warnings = warnings
        self._values = values
        self._asked: set[str] = set()
        self._inner: list[Settings] = []

    def wrong(self, key: str, what: str) -> ValueError:
        """Make the error that says what is wrong with a key."""
        return ValueError(f"{self.path}: {self._called(key)} {what}.")

    def warn(self, key: str, what: str) -> None:
        """Note what works but should not be so."""
        self.warnings.append(f"{self.path}: {self._called(key)} {what}.")

    def beside(self, name: str) -> Path:
        """Give a path that is relative to the file's folder."""
        return self.path.parent / name

    def text(self, key: str, default: str | None = None) -> str:
        """Give a text; without a default it must be there."""
        value = self._get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or (default is None and not value.strip()):
            raise self.wrong(key, "is missing" if value is None else f"is {value!r}, but must be a text")
        return value

    def number(self, key: str, least: int, most: int, default: int) -> int:
        """Give a whole number within bounds."""
        value = self._get(key)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong(key, f"is {value!r}, but must be a whole number from {least} to {most}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Give a list of texts in lower case, empty where there is none."""
        value = self._get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
            raise self.wrong(key, "must be a list of texts")
        return tuple(one.strip().lower() for one in value)

    def names(self) -> tuple[str, ...]:
        """Give the keys of a table whose keys are the administrator's own."""
        return tuple(self._values)

    def choice(self, key: str, choices: tuple[str, ...], default: str) -> str:
        """Give one of several words."""
        value = self.text(key, default)
        if value not in choices:
            raise self.wrong(key, f"is {value!r}, but must be one of {', '.join(choices)}")
        return value

    def secret(self, key: str, default: str | None = None) -> str:
        """Give a secret: the key's own value, or that of the file ``key_file`` or of the variable ``key_env`` names."""
        ways = [f"{key}{way}" for way in ("", "_file", "_env") if self._get(f"{key}{way}") is not None]
        if len(ways) > 1:
            raise self.wrong(ways[0], f"and {ways[1]} are both given; give one")
        if not ways:
            if default is None:
                raise self.wrong(key, f"is missing (or give {key}_file or {key}_env)")
            return default
        way, value = ways[0], self.text(ways[0])
        if way == f"{key}_file":
            return self._from_file(way, self.beside(value))
        if way == f"{key}_env":
            if not os.environ.get(value):
                raise self.wrong(way, f"names the environment variable {value}, which is not set")
            return os.environ[value]
        if key in ("password", "client_secret") and _readable_by_all(self.path):
            self.warn(key, f"can be read by everyone on this machine; say chmod 600 {self.path}")
        return value

    def table(self, key: str) -> Settings | None:
        """Give a table within this one; None where it is not there."""
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(key, "must be a table")
        return self._within(key, value)

    def tables(self, key: str) -> list[Settings]:
        """Give the tables of a list of tables."""
        values = self._get(key)
        if values is None:
            return []
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            raise self.wrong(key, f"must be a list of tables, each begun with [[{self._called(key)}]]")
        return [self._within(f"{key}[{i}]", value) for i, value in enumerate(values, 1)]

    def all_known(self) -> None:
        """Refuse keys that nobody has asked for: they are misspelt, and would be missed where it matters."""
        for key in self._values:
            if key not in self._asked:
                raise self.wrong(key, f"is not known; known here are {', '.join(sorted(self._asked))}")
        for inner in self._inner:
            inner.all_known()

    def _get(self, key: str) -> Any:
        self._asked.add(key)
        return self._values.get(key)

    def _within(self, key: str, values: dict[str, Any]) -> Settings:
        self._inner.append(Settings(self.path, self._called(key), values, self.warnings))
        return self._inner[-1]

    def _called(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def _from_file(self, key: str, path: Path) -> str:
        try:
            with path.open(encoding="utf-8") as file:
                value = file.read(_LARGEST).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise self.wrong(key, f"names {path}, which cannot be read: {reason}") from error
        if not value:
            raise self.wrong(key, f"names {path}, which is empty")
        if _readable_by_all(path):
            self.warn(key, f"names {path}, which everyone on this machine can read; say chmod 600 {path}")
        return value


def _readable_by_all(path: Path) -> bool:
    return os.name == "posix" and bool(path.stat().st_mode & stat.S_IROTH)
