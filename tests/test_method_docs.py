"""Every public method of every public estimator says what it takes, what it gives and what stands beside it."""

import inspect
import re

from sklearn.base import BaseEstimator

import kinfolk

ESTIMATORS = [
    value
    for value in (getattr(kinfolk, name) for name in kinfolk.__all__)
    if inspect.isclass(value) and issubclass(value, BaseEstimator)
]


def public_methods(estimator):
    """Methods of ours, with the class whose text is shown; scikit-learn documents its own."""
    for name, method in inspect.getmembers(estimator, inspect.isfunction):
        function = inspect.unwrap(method)
        if not name.startswith("_") and function.__module__.startswith("kinfolk"):
            yield name, function


def wanted(function):
    """Sections that a method needs: Parameters if it takes any, Returns if it gives anything."""
    signature = inspect.signature(function)
    if len(signature.parameters) > 1:
        yield "Parameters"
    if signature.return_annotation not in (None, "None", inspect.Signature.empty):
        yield "Returns"
    yield "See Also"


def sections(function):
    """Headings of a docstring, as numpydoc reads them."""
    return re.findall(r"^ *([A-Z][A-Za-z ]+)\n *-+$", inspect.getdoc(function) or "", flags=re.MULTILINE)


def missing():
    for estimator in ESTIMATORS:
        for _, function in public_methods(estimator):
            for section in wanted(function):
                if section not in sections(function):
                    yield f"{function.__qualname__}: {section}"


def test_methods_have_parameters_returns_and_see_also():
    assert sorted(set(missing())) == []


def parameters_said(function):
    """Names in the section of parameters."""
    found = re.search(
        r"^Parameters\n-+\n(.*?)(?=^[A-Z][A-Za-z ]+\n-+$|\Z)", inspect.getdoc(function) or "", re.M | re.S
    )
    lines = re.findall(r"^(\S[^:\n]*?)(?: :.*)?$", found.group(1), re.M) if found else []
    return {name.strip(" *") for line in lines for name in line.split(",")}


def test_the_parameters_that_are_named_are_those_there_are():
    wrong = {}
    for estimator in ESTIMATORS:
        for _, function in public_methods(estimator):
            there = set(inspect.signature(function).parameters) - {"self"}
            said = parameters_said(function)
            if said and said != there:
                wrong[function.__qualname__] = said ^ there
    assert wrong == {}
