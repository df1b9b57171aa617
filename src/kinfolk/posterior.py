"""Saving what a fit leaves behind, and loading it again without executing anything.

A saved model is one zip file of plain, uncompressed ``.npy`` arrays and a ``model.json``. Nothing in it is pickled, and
since nothing is compressed it can never unpack to more than its own size. Reading imports numpy alone.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.files import whole_file
from kinfolk.parameters import check_choice
from kinfolk.tasks.answering import NEW_TASKS, Known
from kinfolk.tasks.columns import as_ids
from kinfolk.tasks.design import Design, Term
from kinfolk.tasks.schema import FAMILIES, Column, Number, Schema

FORMAT_VERSION = 1
_MODEL_FILE = "model.json"
# Lists in lists in the description of a model; those of averages of averages have some ten.
_MOST_LEVELS = 100
# Rows that an array without cells may have.
_MOST_EMPTY_ROWS = 1 << 20
# Who can make a predictor of a family of models, and which estimators a file may name.
_PREDICTORS = {
    "averaged": ("kinfolk.transfer.predictor", "AveragedPredictor"),
    "averaged numbers": ("kinfolk.transfer.predictor", "AveragedRegressionPredictor"),
    "naive_bayes": ("kinfolk.naive_bayes.answers.predictor", "NaiveBayesPredictor"),
    "networks": ("kinfolk.networks.answers.predictor", "NetworksPredictor"),
    "multinet": ("kinfolk.networks.answers.predictor", "MultinetPredictor"),
    "lica": ("kinfolk.lica.answers.predictor", "LICAPredictor"),
    "linear": ("kinfolk.linear.answers.hierarchical", "HierarchicalPredictor"),
    "linear_regression": ("kinfolk.linear.answers.hierarchical", "HierarchicalRegressionPredictor"),
    "sequences": ("kinfolk.sequences.answers.predictor", "SequencesPredictor"),
    "decisions": ("kinfolk.decisions.predictor", "DecisionPredictor"),
}
_ESTIMATORS = (
    "AveragedNB",
    "NoSharingNB",
    "CompleteSharingNB",
    "ClusteredNB",
    "PrototypeNB",
    "BayesNets",
    "BayesMultinet",
    "ClusteredClassifier",
    "HierarchicalClassifier",
    "HierarchicalRegressor",
    "LICAClassifier",
    "LICARegressor",
    "AveragedIHMM",
    "NestedIHMM",
    "SharedIHMM",
    "FeatureIHMM",
    "SingleIHMM",
    "DecisionClassifier",
    "TransferClassifier",
    "TransferRegressor",
)


class Archive(NamedTuple):
    """A model as plain data: ``about`` fits into JSON, ``arrays`` into npy files."""

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def array(self, name: str, kind: str, shape: tuple[int | None, ...], missing: bool = False) -> NDArray[Any]:
        """One array, of a kind ("i" or "f") and a shape, in which None stands for any length; NaN where it may be.

        Only what a user's rows hold may be ``missing``.
        """
        array = self.arrays.get(name)
        if array is None:
            raise ValueError(f"its array {name!r} is missing")
        if array.dtype.kind not in ("iu" if kind == "i" else "iuf"):
            raise ValueError(f"its array {name!r} holds {array.dtype}, not numbers of the right kind")
        fits = len(shape) == array.ndim and all(
            want is None or want == have for want, have in zip(shape, array.shape, strict=True)
        )
        if not fits:
            raise ValueError(f"its array {name!r} has shape {array.shape}, not {shape}")
        if array.dtype.kind == "f" and not (np.isfinite(array) | (missing & np.isnan(array))).all():
            raise ValueError(f"its array {name!r} holds NaN or infinity")
        return array


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted model to one file, whole or not at all.

    Parameters
    ----------
    model : fitted kinfolk estimator
    path : str or path
        Where to write; a file that is there already is replaced only once the new one is complete.

    Examples
    --------
    >>> import tempfile, pathlib, kinfolk
    >>> model = kinfolk.NoSharingNB().fit([["a"], ["b"]], [0, 1])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.kin"
    >>> kinfolk.save(model, path)
    >>> kinfolk.load(path).predict([["b"]]).tolist()
    [1]
    """
    if not hasattr(model, "_to_archive"):
        raise TypeError(f"{type(model).__name__} is not a kinfolk model that can be saved")
    archive: Archive = model._to_archive()
    text = json.dumps({"format": "kinfolk", "version": FORMAT_VERSION, **archive.about}, allow_nan=False)
    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as packed:
        packed.writestr(_member(_MODEL_FILE), text)
        for name, array in archive.arrays.items():
            with packed.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def _member(name: str) -> zipfile.ZipInfo:
    """A part of an archive, without the time of day: equal models are equal files."""
    found = zipfile.ZipInfo(name)
    found.external_attr = 0o600 << 16
    return found


def load(path: str | os.PathLike[str], estimator: bool = False, *, new_tasks: str | None = None) -> Any:
    """Load a saved model.

    Parameters
    ----------
    path : str or path
    estimator : bool, default=False
        False gives a predictor, which needs numpy alone; True the estimator as it was after ``fit``, to look into, to
        explain with, or to fit further.
    new_tasks : {"warn", "expected"}, optional
        Whether to warn where most rows are of tasks never seen; as the model was told by default.

    Returns
    -------
    predictor or estimator
    """
    archive = read_archive(path)
    if new_tasks is not None:
        check_choice("new_tasks", new_tasks, NEW_TASKS)
    try:
        if new_tasks is not None:
            _set_new_tasks(archive.about, new_tasks)
        return estimator_from(archive) if estimator else predictor_from(archive)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{os.fspath(path)} is damaged: {_sentence(error)}") from None


def predictor_from(archive: Archive) -> Any:
    """The predictor of a saved model, of whatever family."""
    module, name = _PREDICTORS[_named(archive, "family", _PREDICTORS)]
    return getattr(import_module(module), name).from_archive(archive)


def estimator_from(archive: Archive) -> Any:
    """The estimator of a saved model as it was after ``fit``."""
    _named(archive, "family", _PREDICTORS)
    return getattr(import_module("kinfolk"), _named(archive, "estimator", _ESTIMATORS))._from_archive(archive)


def _set_new_tasks(about: dict[str, Any], new_tasks: str) -> None:
    """Tell a saved model, and the models inside it, of which some know no tasks."""
    for inner in (*about.get("members", ()), *([about["model"]] if "model" in about else [])):
        _set_new_tasks(inner, new_tasks)
    if "params" in about and about["family"] not in ("multinet", "decisions"):
        about["params"]["new_tasks"] = new_tasks


def _named(archive: Archive, key: str, known: Any) -> str:
    name = archive.about.get(key)
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"its {key} {name!r} is not one that this version knows")
    return name


def _sentence(error: Exception) -> str:
    return f"its part {error} is missing" if isinstance(error, KeyError) else str(error)


def read_archive(path: str | os.PathLike[str]) -> Archive:
    """Read a model file into plain data, refusing anything that :func:`save` would not have written."""
    where = os.fspath(path)
    try:
        with zipfile.ZipFile(where) as packed:
            members = packed.infolist()
            size = os.path.getsize(where)
            if sum(member.file_size for member in members) > size:
                raise ValueError(f"{where} is not a kinfolk model: its parts claim to be larger than the file")
            for member in members:
                if member.compress_type != zipfile.ZIP_STORED:
                    raise ValueError(f"{where} is not a kinfolk model: its part {member.filename!r} is compressed")
            names = [member.filename for member in members]
            if _MODEL_FILE not in names or len(set(names)) != len(names):
                raise ValueError(f"{where} is not a kinfolk model: {_MODEL_FILE} is not in it")
            about = _about(packed.read(_MODEL_FILE), where)
            arrays = {}
            for name in names:
                if name != _MODEL_FILE:
                    arrays[name.removesuffix(".npy")] = _array(packed.read(name), name, where)
    except FileNotFoundError:
        raise FileNotFoundError(f"{where} does not exist") from None
    except IsADirectoryError:
        raise ValueError(f"{where} is a folder, not a model file") from None
    except PermissionError:
        raise ValueError(f"{where} cannot be read: permission denied") from None
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OverflowError, OSError) as error:
        raise ValueError(f"{where} is not a kinfolk model, or was cut short ({error})") from None
    return Archive(about, arrays)


def _about(text: bytes, where: str) -> dict[str, Any]:
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{where} is damaged: its {_MODEL_FILE} is not JSON") from None
    if not isinstance(about, dict) or about.get("format") != "kinfolk":
        raise ValueError(f"{where} is not a kinfolk model: {_MODEL_FILE} does not say so")
    # Not left to RecursionError, which comes at other depths in other versions of Python, or not at all.
    inside: list[Any] = [about]
    for _ in range(_MOST_LEVELS):
        inside = [part for one in inside for part in (one.values() if isinstance(one, dict) else one) if _holds(part)]
    if inside:
        raise ValueError(f"{where} is damaged: its {_MODEL_FILE} is nested more than {_MOST_LEVELS} levels deep")
    if about.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"{where} has format version {about.get('version')!r}; this kinfolk reads version {FORMAT_VERSION}"
        )
    return about


def _holds(part: Any) -> bool:
    return isinstance(part, dict | list)


def _array(data: bytes, name: str, where: str) -> NDArray[Any]:
    """Parse an npy file by its header, and only if the header keeps its promises about the bytes that follow."""
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read_header(stream)
    except Exception:  # a header is parsed as a literal, which can fail in many ways
        raise ValueError(f"{where} is damaged: its part {name!r} is not an array") from None
    if dtype.kind not in "biuf" or dtype.hasobject:
        raise ValueError(f"{where} is refused: its part {name!r} holds {dtype} instead of plain numbers")
    body = data[stream.tell() :]
    expected = dtype.itemsize
    for length in shape:
        expected *= length
    # An array without cells may have many rows: of draws of numbers, none of which counts codes.
    most = len(data) if expected else _MOST_EMPTY_ROWS
    if expected != len(body) or any(length < 0 or length > most for length in shape):
        raise ValueError(f"{where} is damaged: its part {name!r} has {len(body)} bytes, its header says {expected}")
    return np.frombuffer(body, dtype=dtype).reshape(shape, order="F" if fortran else "C")


def plain(value: Any, what: str) -> Any:
    """A value as JSON holds it: numpy scalars and arrays as numbers and lists, mappings as lists of pairs."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.bool_ | np.integer | np.floating | np.str_):
        return plain(value.item(), what)
    if isinstance(value, float) and np.isfinite(value):
        return value
    if isinstance(value, Mapping):
        return {"pairs": [[plain(k, what), plain(v, what)] for k, v in value.items()]}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(item, what) for item in value]
    raise ValueError(f"{what} is {value!r}, which cannot be saved: text, numbers and booleans can")


def plain_names(values: Any, what: str) -> list[Any]:
    """Labels, tasks or categories as JSON holds them; a nested one would not come back as it was."""
    named = list(values.tolist() if isinstance(values, np.ndarray) else values)
    for value in named:
        if isinstance(value, list | tuple | dict):
            raise ValueError(f"{what} is {value!r}, which cannot be saved: text, numbers and booleans can")
    return [plain(value, what) for value in named]


def unplain(value: Any) -> Any:
    """The inverse of :func:`plain`, up to lists for arrays."""
    if isinstance(value, dict):
        return {k: unplain(v) for k, v in value["pairs"]}
    if isinstance(value, list):
        return [unplain(item) for item in value]
    return value


def names_from(values: Any, what: str) -> list[Any]:
    """Labels, tasks or categories of a saved model: different from each other, and none of them nested."""
    if not isinstance(values, list) or not all(isinstance(value, bool | int | float | str) for value in values):
        raise ValueError(f"its {what} are not a list of text, numbers and booleans")
    if len(set(values)) < len(values):
        raise ValueError(f"one of its {what} stands there twice")
    return values


def known_about(known: Known) -> dict[str, Any]:
    """What a model remembers of tables and tasks, as JSON holds it; columns of tasks and sequences are parameters."""
    return {
        "estimator": known.model,
        "tasks": plain_names(known.tasks, "a task"),
        "n_features_in": int(known.n_columns),
        "feature_names_in": None if known.columns is None else list(known.columns),
    }


def known_from(archive: Archive) -> Known:
    """What a saved model remembers of tables and tasks, if it can be."""
    about = archive.about
    tasks, names, width = names_from(about["tasks"], "tasks"), about.get("feature_names_in"), about["n_features_in"]
    if not tasks:
        raise ValueError("it has no tasks")
    if not isinstance(width, int) or width < 1:
        raise ValueError(f"its number of columns is {width!r}")
    if names is not None and (len(names) != width or not all(isinstance(name, str) for name in names)):
        raise ValueError("the names of its columns are not text, or not one for each")
    if not about["params"]:
        raise ValueError("its parameters are missing")
    column, new_tasks = about["params"].get("task_column"), about["params"].get("new_tasks", "warn")
    columns = None if names is None else tuple(names)
    of_sequences = (about["params"].get(name) for name in ("sequence_column", "order_column"))
    model = _named(archive, "estimator", _ESTIMATORS)
    return Known(model, columns, width, column, as_ids(tasks), new_tasks, *of_sequences)


def schema_about(schema: Schema) -> list[dict[str, Any]]:
    """A schema as JSON holds it."""
    return [
        {
            "name": column.name,
            "categories": None
            if column.categories is None
            else plain_names(column.categories, f"column {column.name!r}"),
            "edges": None if column.edges is None else plain(column.edges, f"column {column.name!r}"),
            **({} if column.number is None else {"number": list(column.number)}),
        }
        for column in schema.columns
    ]


def schema_from(archive: Archive) -> Schema:
    """The columns of a saved model."""
    columns = []
    for about in archive.about["schema"]:
        name, categories, edges = about["name"], about["categories"], about["edges"]
        # Files that know nothing of numbers are read like those that have none.
        number = about.get("number")
        if not isinstance(name, str) or sum(part is not None for part in (categories, edges, number)) != 1:
            raise ValueError(f"its column {name!r} has no name, or not just one of categories, bins and units")
        known = None if categories is None else tuple(names_from(categories, f"values of column {name!r}"))
        bounds = None if edges is None else np.asarray(edges, dtype=np.float64)
        if bounds is not None and not (bounds.ndim == 1 and np.isfinite(bounds).all() and (np.diff(bounds) > 0).all()):
            raise ValueError(f"the bins of its column {name!r} do not rise")
        columns.append(Column(name, known, bounds, None if number is None else _number_from(number, name)))
    return Schema(tuple(columns))


def _number_from(about: Any, name: str) -> Number:
    family, centre, scale = about
    if family not in FAMILIES or not (np.isfinite(centre) and np.isfinite(scale) and scale > 0.0):
        raise ValueError(f"the units of its column {name!r} are not a family, a centre and a scale above zero")
    return Number(family, float(centre), float(scale))


def design_about(design: Design) -> list[dict[str, Any]]:
    """The columns of a design matrix as JSON holds them."""
    return [
        {
            "name": term.name,
            "number": None if term.number is None else list(term.number),
            "levels": plain_names(term.levels, f"column {term.name!r}"),
            "shares": list(term.shares),
            "missing": term.missing,
        }
        | ({"rare": plain_names(term.rare, f"column {term.name!r}")} if term.rare else {})
        for term in design.terms
    ]


def design_from(archive: Archive) -> Design:
    """The columns of a saved model's design matrix."""
    terms = []
    for about in archive.about["design"]:
        name, number, missing = about["name"], about["number"], about["missing"]
        levels = tuple(names_from(about["levels"], f"values of column {name!r}"))
        shares = np.asarray(about["shares"], dtype=np.float64)
        rates = np.append(shares, missing)
        if not isinstance(name, str) or len(levels) == 1 or shares.shape != (len(levels),):
            raise ValueError(f"its column {name!r} has no name, or not a share for each of its values")
        if rates.dtype.kind != "f" or not ((rates >= 0.0) & (rates <= 1.0)).all():
            raise ValueError(f"the shares of values in its column {name!r} are not between 0 and 1")
        unit = None if number is None else _number_from(number, name)
        rare = tuple(names_from([*levels, *about.get("rare", [])], f"values of column {name!r}")[len(levels) :])
        terms.append(Term(name, unit, levels, tuple(shares.tolist()), float(missing), rare))
    return Design(tuple(terms))
