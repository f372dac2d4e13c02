"""Saved models: one safetensors file, read back without running anything in it.

A file holds arrays and a JSON header with the class name and the parameters of each step. Only
the classes named in `METHODS`, the text vectoriser and kernel features can come out of it, built
by their constructors and checked like any other input; there is no pickle on the way.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

from tacit import baselines, methods
from tacit.basics.files import read_arrays, write_arrays
from tacit.estimators import MultiLabelEstimator
from tacit.features.kernel_features import KernelFeatures
from tacit.models.formats import upgraded

__all__ = ["METHODS", "load", "read_extra", "save"]

METHODS: dict[str, type[MultiLabelEstimator]] = {
    name: getattr(module, name)
    for module in (methods, baselines)
    for name in dir(module)
    if isinstance(getattr(module, name), type)
}
"""Every method and baseline by name: those that `tacit.methods` and `tacit.baselines` list."""

_WRONG = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, re.error)
"""What a header that fits no model may raise."""

_TEXT_PARAMS = [
    "encoding",
    "decode_error",
    "lowercase",
    "strip_accents",
    "stop_words",
    "token_pattern",
    "ngram_range",
    "analyzer",
    "binary",
    "norm",
    "use_idf",
    "smooth_idf",
    "sublinear_tf",
]


def save(model: Any, path: str | os.PathLike, *, extra: dict[str, Any] | None = None) -> None:
    """Write a fitted model to one file, alone or as the last step of a pipeline.

    Before it there may be a `TfidfVectorizer`, a `KernelFeatures`, or both in this order. `extra`
    is whatever else the file should keep, as JSON; `read_extra` gives it back.
    """
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    *before, last = steps
    kinds = [type(step) for step in before]
    if not isinstance(last, MultiLabelEstimator) or kinds != [c for c in _STEPS if c in kinds]:
        raise ValueError(
            f"model must be a tacit estimator or a Pipeline of a TfidfVectorizer, KernelFeatures "
            f"or both, and one; got {model!r}"
        )
    header, arrays = last.contents()
    for step in before:
        name, write, _ = _STEPS[type(step)]
        header[name], parts = write(step)
        arrays |= {f"{name}.{part}": array for part, array in parts.items()}
    write_arrays(path, header if extra is None else {**header, "extra": extra}, arrays)


def read_extra(path: str | os.PathLike) -> dict[str, Any]:
    """What `save` was given as `extra`; empty where it was given nothing."""
    extra = read_arrays(path)[0].get("extra", {})
    if not isinstance(extra, dict):
        raise ValueError(f"{path} keeps an extra that is not a JSON object: {str(extra)[:40]!r}")
    return extra


def load(path: str | os.PathLike) -> Any:
    """The model, or the pipeline that ends in it, that was saved at `path`."""
    header, arrays = read_arrays(path)
    try:
        if header["class"] not in METHODS:
            raise ValueError(f"its class {header['class']!r} is not one of {sorted(METHODS)}")
        before = [
            (name, restore, _taken(arrays, f"{name}."))
            for name, _, restore in _STEPS.values()
            if name in header
        ]
        header, arrays = upgraded(header, arrays)
        model = METHODS[header["class"]](**header["params"]).restore(header, arrays)
        steps = [("model", model)]
        for name, restore, parts in reversed(before):  # each must give what the next one takes
            step = restore(header[name], parts, steps[0][1].n_features_in_)
            steps.insert(0, (name, step))
        return Pipeline(steps) if before else model
    except _WRONG as error:
        raise ValueError(
            f"{path} does not hold a model of this tacit ({type(error).__name__}: {error})"
        ) from None


def _taken(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays of one step, taken out of those of the file."""
    names = [name for name in arrays if name.startswith(prefix)]
    return {name.removeprefix(prefix): arrays.pop(name) for name in names}


def _saved_text(vectoriser: TfidfVectorizer) -> tuple[dict, dict[str, np.ndarray]]:
    params = {name: getattr(vectoriser, name) for name in _TEXT_PARAMS}
    params["dtype"] = "float32" if vectoriser.dtype == np.float32 else "float64"
    if vectoriser.input != "content":
        raise ValueError(
            f"a vectoriser with input={vectoriser.input!r} cannot be saved: a model file must "
            'not open other files; use input="content"'
        )
    for name in ("preprocessor", "tokenizer"):
        if getattr(vectoriser, name) is not None:
            raise ValueError(f"a vectoriser with a {name} of its own cannot be saved: it is code")
    try:
        json.dumps(params)
    except TypeError:
        raise ValueError(
            f"the vectoriser's parameters cannot be written as JSON: {params}"
        ) from None
    words = sorted(vectoriser.vocabulary_, key=vectoriser.vocabulary_.__getitem__)
    encoded = np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)
    idf = vectoriser.idf_ if vectoriser.use_idf else np.ones(len(words))
    return params, {"vocabulary": encoded, "idf": idf}


def _restored_text(params: dict, arrays: dict[str, np.ndarray], n_features: int) -> TfidfVectorizer:
    words, idf = json.loads(arrays["vocabulary"].tobytes()), arrays["idf"]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("its vocabulary is not a list of words")
    if len(words) != n_features or idf.shape != (n_features,) or idf.dtype.kind != "f":
        raise ValueError(f"its vocabulary does not fit the {n_features} features of the model")
    if sorted(params) != sorted([*_TEXT_PARAMS, "dtype"]):
        raise ValueError(f"its vectoriser has the parameters {sorted(params)}")
    if params["dtype"] not in ("float32", "float64"):
        raise ValueError(f"its vectoriser has dtype {params['dtype']!r}")
    params = {
        **params,
        "ngram_range": tuple(params["ngram_range"]),
        "dtype": np.dtype(params["dtype"]).type,
    }
    vectoriser = TfidfVectorizer(vocabulary=words, **params)
    with np.errstate(divide="ignore"):
        vectoriser.fit([""])  # checks the parameters; the idf of this text are replaced
    if vectoriser.use_idf:
        vectoriser.idf_ = idf
    return vectoriser


_STEPS: dict[type, tuple[str, Callable, Callable]] = {
    TfidfVectorizer: ("text", _saved_text, _restored_text),
    KernelFeatures: ("kernel", KernelFeatures.contents, KernelFeatures.restored),
}
"""What may come before a model, in order: its name in the file, how it is written and restored."""
