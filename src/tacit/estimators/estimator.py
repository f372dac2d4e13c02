"""What every method shares: validation, placement, prediction and saving, once for all.

A method is a subclass of `MultiLabelEstimator` that writes its `_checks`, its `__init__` and its
`_fit`, the paper's algorithm box. `_fit` sees a `Problem`: valid data, placed on a backend, in
blocks. It gives back a `Fit`: a `Model`, and how it came about. All else forwards to that model.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.backends import get_backend
from tacit.backends.block import Block, Placement, place
from tacit.basics.files import write_arrays
from tacit.basics.params import Check, a_bool, a_float, an_int, check_params, one_of
from tacit.blocks import Blocks, Rows
from tacit.blocks.facts import Facts, facts
from tacit.engines.descend import Checkpoint, State
from tacit.engines.index import LabelIndex, check_index
from tacit.engines.problem import Problem
from tacit.estimators.fit import Fit
from tacit.estimators.names import labels_of, places_of
from tacit.estimators.placing import (
    are_blocks,
    check_kind,
    check_room,
    check_said,
    place_problem,
    rows_in_memory,
    scaling_arrays,
    scaling_from_arrays,
    scaling_of_columns,
)
from tacit.features.scaling import Scaling
from tacit.labels import Kind, Labels, TopK, check_dense
from tacit.metrics import ndcg_at_k
from tacit.missing import Rates
from tacit.missing.rates import no_rates
from tacit.models import Completion, Explanation, LowRank, Model
from tacit.models.explanation import explanations

__all__ = ["MultiLabelEstimator", "checked_k", "shared_checks"]

_FLOATS = [np.float64, np.float32]
_PREDICTED_ROWS = 2**16  # rows of a block in prediction, at most
_BLOCK_ENTRIES = 2**23  # numbers laid out at a time in prediction


class MultiLabelEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Base of all methods. A subclass writes `_checks`, `__init__` and `_fit`.

    Attributes
    ----------
    label_kinds : tuple of str
        The kinds of labels that the method takes; a plain 0/1 matrix is read as the first.
    model_kinds : tuple of types
        The kinds of model that its `_fit` may give back, and its files may hold.
    chosen : tuple of str
        The fitted numbers beside the model that `_fit` decides, and files keep.
    deals_rows : {"", "batches", "folds"}
        Whether `fit` goes by mini-batches, so that it matters which rows share a block, or deals
        rows into folds, so that their order matters too.
    behind_ridge : str
        Why its defaults may rank worse than tuned ridge, or take much longer, in words; empty for a
        method that is held to `tacit.testing.check_beside_tuned_ridge`.
    """

    label_kinds: ClassVar[tuple[Kind, ...]] = ("complete",)
    model_kinds: ClassVar[tuple[type[Model], ...]] = (LowRank,)
    chosen: ClassVar[tuple[str, ...]] = ()
    deals_rows: Any = ""
    behind_ridge: ClassVar[str] = ""
    _checks: ClassVar[dict[str, Check]] = {}
    model_: Any  # of one of `model_kinds`

    @abstractmethod
    def _fit(self, problem: Problem) -> Fit:
        """Return the fitted model, and how it came about."""

    # Fitting

    def fit(self, X: Any, Y: Any = None, *, checkpoint: str | os.PathLike | None = None) -> Self:
        """Learn from features X and labels Y.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or Blocks
            The features. Blocks (`tacit.blocks`: shards on disk, rows on a cluster) bring their own
            labels, and Y stays None.
        Y : Labels; matrix or data frame of 0, 1 and NaN (unsaid); or names for each row
            The labels. Names are a list or Series of lists or sets, of strings such as ``"a|b"``,
            or of class numbers. What a plain 0/1 matrix or names do not say is read under the
            method's own assumption.
        checkpoint : path, default=None
            A file to keep the state of the fit in. If it exists, the fit goes on from there, and
            ends in the same model as if it had never stopped (on a GPU, the same to rounding).
        """
        return self._learn(X, Y, checkpoint, {})

    def _learn(
        self,
        X: Any,
        Y: Any,
        checkpoint: str | os.PathLike | None,
        side: Mapping[str, np.ndarray],
    ) -> Self:
        """`fit`, with what the method learns from beside the rows."""
        check_params(self)
        blocks, known = self._rows(X, Y)
        check_said(type(self).__name__, known)
        resume = None
        if checkpoint is not None:
            params, more = self.get_params(deep=False), 0
            for array in side.values():  # a checkpoint must know it too
                more ^= crc32(array.tobytes())
            resume = Checkpoint(checkpoint, type(self).__name__, params, known, more)
        problem = self._problem(blocks, known, checkpoint=resume, side=dict(side))
        return self.adopt(self._fit(problem), known)

    def _rows(self, X: Any, Y: Any, first: Facts | None = None) -> tuple[Blocks, Facts]:
        """The rows in blocks, and what must be known of them; `first` are rows that came before."""
        blocks, known = self._valid(X, Y)
        if first is not None:
            return blocks, replace(known, scaling=first.scaling)
        if self.normalize == "auto" and known.dense:
            known = replace(known, scaling=scaling_of_columns(blocks, known, self.device))
        return blocks, known

    def _valid(self, X: Any, Y: Any) -> tuple[Blocks, Facts]:
        if are_blocks(X):
            if Y is not None:
                raise ValueError("Y must be left out when X is Blocks, which bring their labels")
            known = X.sum(facts)
            self.n_features_in_ = known.n_features
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_  # blocks name no features; an earlier fit may have
            return X, known
        X = validate_data(self, X, accept_sparse="csr", dtype=_FLOATS)
        return rows_in_memory(type(self).__name__, X, Y, self.label_kinds, self.device)

    def _problem(self, blocks: Blocks, known: Facts, **how: Any) -> Problem:
        """Those rows, placed on the backend."""
        check_kind(type(self).__name__, self.label_kinds, known, _able(known.kind))
        placement = self._placement(known.dtype, known.scaling)
        check_room(self, blocks, known, placement.backend, self._working_set(known))
        return place_problem(self, blocks, known, placement, **how)

    def _working_set(self, known: Facts) -> int:
        """How many numbers a fit holds at most beside the data: some factors, and codes.

        Without a rank it is weights of every label, and no codes: scores go by some rows at a time.
        """
        rank = getattr(self, "rank", None)
        if not isinstance(rank, int):  # none, or "auto"
            return 10 * known.n_features * known.n_labels
        rank = min(rank, known.n_labels)
        return rank * (10 * known.n_features + 6 * known.n_labels + 3 * known.n_samples)

    def adopt(self, fit: Fit, known: Facts) -> Self:
        """Take a fit to such rows for one's own: its model, its history, and what it chose."""
        self.model_, self.history_ = fit.model, fit.history
        self.n_iter_ = len(fit.history)
        self.classes_ = np.arange(known.n_labels) if known.classes is None else known.classes
        self.labels_kind_: str | None = known.kind
        self.scaling_: Scaling | None = known.scaling
        self._stream: tuple[State, Facts] | None = (
            None if fit.online is None else (fit.online, known)
        )
        for name, value in fit.chosen.items():
            setattr(self, name, value)
        return self

    def _placement(self, dtype: str, scaling: Scaling | None) -> Placement:
        rows = None if self.normalize is None else "l2"
        return Placement(get_backend(self.device), dtype, rows, self.fit_intercept, scaling)

    # Prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of shape (n_samples, n_labels); larger is more likely."""
        X = self._dense(X, "decision_function")
        return np.concatenate([self.model_.scores(b) for b in self._blocks(X, len(self.classes_))])

    def predict_proba(self, X: Any, *, what: Literal["true", "said"] = "true") -> np.ndarray:
        """Probabilities of shape (n_samples, n_labels), as well as the method can know them.

        Parameters
        ----------
        what : {"true", "said"}, default="true"
            That the label is true; or that it is true and was said, which only a method can tell
            that knows how often true labels are said (`said_rates_`).
        """
        if what not in ("true", "said"):
            raise ValueError(f'what must be "true" or "said"; got {what!r}')
        X, parts = self._dense(X, "predict_proba"), []
        for block in self._blocks(X, len(self.classes_)):
            probability = self.model_.probabilities(block)
            if what == "true":
                parts.append(probability)
                continue
            rates = self.model_.rates_of(block)
            if rates is None and self.said_rates_ is not None:
                rates = self.said_rates_[None, :]
            if rates is None:
                raise ValueError(
                    f"{type(self).__name__} has not learned how often true labels are said; use "
                    'what="true", or MPU, GenEML, Elkan08 or Tacit'
                )
            parts.append(probability * rates.astype(probability.dtype))
        return np.concatenate(parts)

    @property
    def said_rates_(self) -> np.ndarray | None:
        """How often each label is said where it is true: 1 where labels were complete or masked.

        None where the method has not learned it from positive-only labels.
        """
        check_is_fitted(self, "model_")
        if self.model_.said_rates is None and self.labels_kind_ in ("complete", "masked"):
            return np.ones(len(self.classes_))
        return self.model_.said_rates

    def rates(self, X: Any, Y: Any) -> Rates:
        """How often each label is said where it is true, with intervals; see `missing.estimate`."""
        X, labels = self._to_complete(X, Y)
        if self.model_.said_rates is None:
            raise ValueError(no_rates(type(self).__name__))
        n_said = np.bincount(labels.positives.indices, minlength=labels.n_labels)
        return self.model_.rates(lambda: self._blocks(X, labels.n_labels), n_said)

    def predict(self, X: Any) -> sp.csr_array:
        """CSR indicator: the `k` best labels of a row, or all of probability above `threshold`."""
        check_is_fitted(self, "model_")
        n_labels = len(self.classes_)
        if self.k is not None:
            best = self.top_k(X, self.k).indices
            pointer, shape = np.arange(len(best) + 1) * best.shape[1], (len(best), n_labels)
            found = sp.csr_array((np.ones(best.size, np.int8), best.ravel(), pointer), shape=shape)
            found.sort_indices()
            return found
        cut = self.threshold_ if isinstance(self.threshold, str) else self.threshold
        above = [
            sp.csr_array(self.model_.probabilities(block) > cut)
            for block in self._blocks(self._features(X), n_labels)
        ]
        return sp.csr_array(sp.vstack(above, format="csr"), dtype=np.int8)

    def top_k(
        self,
        X: Any,
        k: int = 5,
        *,
        index: LabelIndex | None = None,
        probability: bool = False,
    ) -> TopK:
        """The k best labels of each row, best first, without ever building n_samples × n_labels.

        Exact, unless an `index` from `build_index` is given. With `probability` the scores that are
        told are those of `predict_proba`.
        """
        X, k = self._features(X), checked_k(k)
        if index is not None:
            check_index(index, self.model_.H)
        parts = []
        for block in self._blocks(X, self.model_.width):
            if index is None:
                best = self.model_.top_k(block, k)
            else:
                codes, _ = self.model_.factors(block)
                best = index.search(block.backend.to_numpy(codes), k)
            if probability:
                best = TopK(best.indices, self.model_.probabilities(block, best))
            parts.append(best)
        return _joined(parts)

    def build_index(self, *, accuracy: int = 64) -> LabelIndex:
        """An index of the label factors for `top_k(X, k, index=…)`; `tacit.engines.index` says how.

        Approximate: worthwhile from about 20,000 labels, as `tacit bench study search` measures. On
        random factors of rank 100, many rows at once and two busy cores, it was 0.3 times as fast
        as the exact top 5 for 4,000 labels, 1.2 times for 20,000, 2.8 for 100,000 and 11.5 for
        400,000, at recalls of 0.999 down to 0.989; some 50,000 rows or more repay the building.
        """
        check_is_fitted(self, "model_")
        if self.model_.H is None:
            raise ValueError(
                f"{type(self).__name__} has no label factors to index: it has full rank, or scores "
                "that are no inner products; use top_k without index, which is exact"
            )
        return LabelIndex.of(self.model_.H, accuracy=accuracy)

    def complete(
        self, X: Any, Y: Any, k: int = 10, *, fold_in: bool | Literal["auto"] = "auto"
    ) -> Completion:
        """The entries of Y not said yet that are most likely true.

        Of each row the k best are taken, and all of them are sorted by how likely they are: by the
        probability of being true though nothing was said, where the method has learned how often
        true labels are said.

        Parameters
        ----------
        X, Y
            The rows, and what was said of them. Candidates are the entries that were not observed
            (masked labels) or not said yes (any other labels), but never what was said no to.
        k : int, default=10
            At most so many of one row.
        fold_in : bool or "auto", default="auto"
            Whether what else was said of a row counts too; without, its features alone decide.
            "auto" is what found more of the labels that were really missing.
        """
        X, labels = self._to_complete(X, Y)
        k, fold_in = checked_k(k), self._folding(fold_in)
        blocks = self._blocks(X, self.model_.completion_width, labels)
        parts = [self.model_.completion(block, k, fold_in) for block in blocks]
        best = _joined(parts)
        row, place_ = np.nonzero(best.indices >= 0)
        scores = best.scores[row, place_]
        order = np.argsort(-scores, kind="stable")
        probability = self.model_.unsaid_probability(scores, fold_in)
        return Completion(row[order], best.indices[row, place_][order], probability[order])

    def _folding(self, asked: bool | Literal["auto"]) -> bool:
        can = self.model_.folds_in
        if isinstance(asked, str):
            if asked != "auto":
                raise ValueError(f'fold_in must be True, False or "auto"; got {asked!r}')
            return bool(can)
        if asked and can is None:
            raise ValueError(
                f"this {type(self).__name__} completes a row by its features alone; leave fold_in "
                "out, or use LEML or GenEML"
            )
        return bool(asked)

    def explain(
        self,
        X: Any,
        rows: Any,
        labels: Any,
        k: int = 5,
        *,
        names: Sequence[str] | None = None,
    ) -> list[Explanation]:
        """Why entries have the scores of `decision_function`: what counts most for and against.

        Of linear methods that are features; of `Neighbours` rows of the fit that have the label; of
        `Tacit` its parts, with the features of the first of them as `lead`. With what is not listed
        (`rest`) they add up to the score. What else was said of a row, by which `complete` may also
        go, is not looked at.

        Parameters
        ----------
        X
            The rows.
        rows, labels : int or array of ints; int, str or array of these
            The entries: a row of X, and the number or name of a label. One row stands for each
            label, or one label for each row.
        k : int, default=5
            At most so many features, rows or labels for each entry; of parts there are few.
        names : sequence of str, default=None
            What features are called, as ``pipeline[:-1].get_feature_names_out()`` says; None are
            the columns of the data frame of the fit, or else numbers.
        """
        X, k = self._features(X), checked_k(k)
        rows, at = np.atleast_1d(rows), places_of(labels, self.classes_)
        if len({len(rows), len(at), 1}) > 2:
            raise ValueError(f"give a row for each label; got {len(rows)} rows, {len(at)} labels")
        rows, at = np.broadcast_arrays(rows, at)
        if rows.dtype.kind not in "iu" or ((rows < 0) | (rows >= X.shape[0])).any():
            raise ValueError(f"rows must be numbers of rows of X, 0 to {X.shape[0] - 1}")
        called: Any = getattr(self, "feature_names_in_", range(self.n_features_in_))
        called = called if names is None else names
        if len(called) != self.n_features_in_:
            raise ValueError(
                f"names must be of all {self.n_features_in_} features; got {len(called)}"
            )
        found, start = list[Explanation](), 0
        for block in self._blocks(X[rows], max(self.n_features_in_, self.model_.completion_width)):
            own = at[start : start + block.Y.shape[0]]
            made = self.model_.contributions(block, own)
            if made is None:
                raise ValueError(
                    f"the scores of this {type(self).__name__} are no sums over features or rows, "
                    "so that none can be named; Tacit, Ridge and LEML can say why"
                )
            found += explanations(made, {"feature": called, "label": list(self.classes_)}, k)
            start += len(own)
        return found

    def transform(self, X: Any) -> np.ndarray:
        """The latent code of each row, of shape (n_samples, rank)."""
        X = self._features(X)
        blocks = self._blocks(X, self.model_.n_codes)
        return np.concatenate([b.backend.to_numpy(self.model_.codes(b)) for b in blocks])

    @property
    def _n_features_out(self) -> int:
        return self.model_.n_codes

    def score(self, X: Any, y: Any) -> float:
        """nDCG@5 of the ranking, on what y says; see `tacit.metrics` for others."""
        top = self.top_k(X, 5)  # first, so that what is wrong with X is told before y is read
        labels = labels_of(y, self.label_kinds[0], self.classes_)
        return float(ndcg_at_k(labels, top, 5))

    def _features(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        return validate_data(self, X, accept_sparse="csr", dtype=_FLOATS, reset=False)

    def _dense(self, X: Any, asked: str) -> Any:
        """The features, if an answer for each row and label is not too large."""
        X = self._features(X)
        shape = (X.shape[0], len(self.classes_))
        check_dense(shape, f"{type(self).__name__}.{asked}", "top_k")
        return X

    def _to_complete(self, X: Any, Y: Any) -> tuple[Any, Labels]:
        X, labels = self._features(X), labels_of(Y, "complete", self.classes_)
        if labels.shape != (X.shape[0], len(self.classes_)):
            raise ValueError(
                f"Y has shape {labels.shape}; for this X and model it must be "
                f"{(X.shape[0], len(self.classes_))}"
            )
        return X, labels

    def _blocks(self, X: Any, width: int, labels: Labels | None = None) -> Iterator[Block]:
        """X in blocks of rows, so many that `width` numbers a row stay within bounds."""
        placement = self._placement(str(self.model_.dtype), self.scaling_)
        size = min(_PREDICTED_ROWS, max(1, _BLOCK_ENTRIES // width))
        for start in range(0, X.shape[0], size):
            rows = slice(start, start + size)
            said = _no_labels(X[rows].shape[0], 0) if labels is None else labels[rows]
            yield place(Rows(X[rows], said), placement)

    # Files

    def save(self, path: str | os.PathLike) -> None:
        """Write the fitted model to one file; `tacit.load` reads it and runs no code from it."""
        write_arrays(path, *self.contents())

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file keeps: a JSON header, and the arrays of the model."""
        check_is_fitted(self, "model_")
        names = {
            name: [str(value) for value in getattr(self, name)]
            for name in ("classes_", "feature_names_in_")
            if getattr(self, name, np.empty(0)).dtype.kind in "UO"
        }
        header = {
            "class": type(self).__name__,
            "params": {
                name: value.item() if isinstance(value, np.generic) else value
                for name, value in self.get_params(deep=False).items()
                if _is_json(value)
            },
            "n_features": self.n_features_in_,
            "n_labels": len(self.classes_),
            "labels": self.labels_kind_,
            "history": self.history_,
            "chosen": {
                name: np.asarray(getattr(self, name)).item()
                for name in self.chosen
                if hasattr(self, name)  # not of a file from before it was kept
            },
            "model": {"kind": type(self.model_).__name__, **self.model_.numbers()},
            "names": names,
        }
        arrays = {name: each for name, each in self.model_.arrays().items() if each is not None}
        return header, arrays | scaling_arrays(self.scaling_)

    def restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """Take back what `contents` gave; whatever does not fit together is a ValueError."""
        check_params(self)
        n_features, n_labels = header["n_features"], header["n_labels"]
        if not all(an_int(at_least=1)[0](size) for size in (n_features, n_labels)):
            raise ValueError(f"it is of {n_features!r} features and {n_labels!r} labels")
        kinds = {kind.__name__: kind for kind in self.model_kinds}
        numbers = dict(header["model"])
        kind = numbers.pop("kind")
        if kind not in kinds:
            raise ValueError(f"its model is of kind {kind!r}, not one of {sorted(kinds)}")
        n_weights = n_features + self.fit_intercept
        model = kinds[kind].from_arrays(n_weights, n_labels, numbers, arrays)
        chosen, history = header["chosen"], [float(value) for value in header["history"]]
        for name, value in chosen.items():
            if name not in self.chosen or not (value is None or isinstance(value, int | float)):
                raise ValueError(f"its {name} is {value!r}")
        known = Facts(
            0, n_features, n_labels, header["labels"], str(model.dtype), 0, None,
            scaling=scaling_from_arrays(n_features, arrays),
        )  # fmt: skip
        self.n_features_in_ = n_features
        self.adopt(Fit(model, history, chosen), known)
        for name, length in (("classes_", n_labels), ("feature_names_in_", n_features)):
            if name in header["names"]:
                setattr(self, name, _names(name, header["names"][name], length))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags = ClassifierTags(multi_class=False, multi_label=True)
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.target_tags.two_d_labels = True
        return tags


def shared_checks(*without: str) -> dict[str, Check]:
    """The checks of the parameters that every linear method has, but for those it has not."""
    checks = {
        "normalize": one_of("auto", "l2", None),
        "fit_intercept": a_bool(),
        "threshold": a_float(at_least=0),
        "k": (lambda v: v is None or an_int(at_least=1)[0](v), "None or an int of at least 1"),
        "device": (lambda v: isinstance(v, str), 'a string such as "cpu" or "cuda"'),
        "verbose": (lambda v: isinstance(v, int | bool), "True, False or an int"),
    }
    return {name: check for name, check in checks.items() if name not in without}


def checked_k(k: Any) -> int:
    """k as an int of at least 1."""
    if not (an_int(at_least=1)[0](k)):
        raise ValueError(f"k must be an int of at least 1; got {k!r}")
    return int(k)


def _able(kind: str) -> list[str]:
    """The methods of ours that take labels of this kind, of those imported."""
    waiting: list[type] = [MultiLabelEstimator]
    names = set()
    while waiting:
        each = waiting.pop()
        waiting += each.__subclasses__()
        if each.__module__.startswith("tacit.") and kind in vars(each).get("label_kinds", ()):
            names.add(each.__name__)
    return sorted(names - {"MultiLabelEstimator"})


def _joined(parts: list[TopK]) -> TopK:
    return TopK(*(np.concatenate(arrays) for arrays in zip(*parts)))


def _is_json(value: Any) -> bool:
    """Whether a parameter can be written; a RandomState, used up by the fit, cannot."""
    return value is None or isinstance(value, bool | int | float | str | np.number)


def _names(name: str, names: Any, length: int) -> np.ndarray:
    names = np.array(names, dtype=object)
    if len(names) != length or not all(isinstance(value, str) for value in names):
        raise ValueError(f"its {name} are not {length} names")
    return names.astype(str) if name == "classes_" else names


def _no_labels(n: int, n_labels: int) -> Labels:
    return Labels("complete", sp.csr_array((n, n_labels), dtype=bool))
