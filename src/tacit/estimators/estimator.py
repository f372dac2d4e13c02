"""What every method shares: validation, placement, the loop of a fit, prediction and saving.

A method is a subclass of `MultiLabelEstimator` that writes its `_checks`, its `__init__` and
`_fit`, the paper's algorithm box. `_fit` sees a `Problem`: valid data, placed on a backend, in
blocks.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.backends import Array, Backend, get_backend
from tacit.backends.block import Block, Placement, place
from tacit.basics.files import write_arrays
from tacit.basics.params import Check, a_bool, a_float, an_int, check_params, one_of
from tacit.blocks import Blocks, MemoryBlocks, Rows, StreamedBlocks
from tacit.blocks.facts import Facts, facts
from tacit.blocks.rows import rows_of_fold
from tacit.engines.descend import Checkpoint, descend
from tacit.engines.index import LabelIndex, check_index
from tacit.engines.losses import Probability
from tacit.engines.problem import Problem
from tacit.labels import Kind, Labels, TopK, as_labels, check_dense
from tacit.metrics import ndcg_at_k
from tacit.models import Completion, LowRank

__all__ = ["MultiLabelEstimator", "checked_k", "shared_checks"]

_FLOATS = [np.float64, np.float32]
_PREDICTED_ROWS = 2**16  # rows of a block in prediction, at most
_BLOCK_ENTRIES = 2**23  # numbers laid out at a time in prediction


class MultiLabelEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Base of all methods. A subclass writes `_checks`, `__init__` and `_fit`, and nothing else."""

    _checks: ClassVar[dict[str, Check]] = {}
    _kinds: ClassVar[tuple[Kind, ...]] = ("complete",)  # that it takes; a 0/1 matrix is the first
    # What prediction needs beside the model: numbers, and arrays (or None) by their shape, in which
    # "d" is the number of weights a code has, "L" that of labels, and "*" any number.
    _learned: ClassVar[tuple[str, ...]] = ()
    _arrays: ClassVar[dict[str, tuple[str | int, ...]]] = {}
    _integers: ClassVar[tuple[str, ...]] = ()  # those of `_arrays` that count or point

    @property
    def _in_batches(self) -> bool:
        """Whether `fit` goes by mini-batches, and so by blocks."""
        return False

    @property
    def _in_folds(self) -> bool:
        """Whether `fit` deals rows into folds, so that their order matters."""
        return False

    @property
    @abstractmethod
    def _loss(self) -> Probability:
        """What turns scores into probabilities, as a rule the loss."""

    @abstractmethod
    def _fit(self, problem: Problem) -> LowRank:
        """Return the fitted model."""

    def fit(self, X: Any, Y: Any = None, *, checkpoint: str | os.PathLike | None = None) -> Self:
        """Learn from features X and labels Y.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or Blocks
            The features. Blocks (`tacit.blocks`: shards on disk, rows on a cluster) bring their own
            labels, and Y stays None.
        Y : Labels, or array, sparse matrix or data frame of 0, 1 and NaN (unsaid)
            The labels. A plain 0/1 matrix is read under the method's own assumption.
        checkpoint : path, default=None
            A file to keep the state of the fit in. If it exists, the fit goes on from there, and
            ends in the same model as if it had never stopped (on a GPU, the same to rounding).
        """
        check_params(self)
        blocks, known = self._rows(X, Y)
        resume = Checkpoint(checkpoint, self, known) if checkpoint is not None else None
        self.history_: list[float] = []
        return self._fitted(self._fit(self._problem(blocks, known, resume)), known)

    def _problem(self, blocks: Blocks, known: Facts, resume: Checkpoint | None = None) -> Problem:
        """Those rows, placed on the backend."""
        if known.kind not in self._kinds:
            raise ValueError(_wrong_kind(type(self).__name__, known.kind, self._kinds))
        placement = self._placement(known.dtype)
        self._check_room(blocks, known, placement.backend)
        placed = blocks.map(place, placement)
        return Problem(
            blocks=placed,
            kind=known.kind,
            n_samples=known.n_samples,
            n_features=known.n_features + self.fit_intercept,
            n_labels=known.n_labels,
            backend=placement.backend,
            rng=check_random_state(self.random_state),
            dtype=np.dtype(known.dtype),
            resumable=resume is not None,
            _descend=lambda start, step, until: descend(
                self, placement.backend, start, step, resume, until
            ),
            _fold=lambda *which: blocks.map(rows_of_fold, *which).map(place, placement),
            _batches=lambda size, seed: placed.batches(size, np.random.default_rng(seed)),
        )

    def _working_set(self, known: Facts) -> int:
        """How many numbers a fit holds at most beside the data: some factors, and codes.

        Without a rank it is weights of every label, and no codes: scores go by some rows at a time.
        """
        rank = getattr(self, "rank", None)
        if not isinstance(rank, int):  # none, or "auto"
            return 10 * known.n_features * known.n_labels
        rank = min(rank, known.n_labels)
        return rank * (10 * known.n_features + 6 * known.n_labels + 3 * known.n_samples)

    def _check_room(self, blocks: Blocks, known: Facts, backend: Backend) -> None:
        """Plan the memory of the device, say so where `verbose`, and refuse what will not fit."""
        room = backend.room()
        if room is None:
            return
        held = known.n_blocks if isinstance(blocks, StreamedBlocks) else 1  # one of them at a time
        size = np.dtype(known.dtype).itemsize
        data = known.n_entries * (16 + 4 * size) / held  # with its transpose, both dealt out
        work = self._working_set(known) * size
        told = (
            f"a fit needs about {_gib(data + work)} on {self.device} ({_gib(data)} for the data, "
            f"{_gib(work)} for factors and work), and {_gib(room)} are free"
        )
        if data + work > room:
            raise MemoryError(
                f'{type(self).__name__}: {told}; give a smaller rank, device="cpu", or '
                "tacit.blocks.StreamedBlocks.from_rows(Rows(X, labels), n_blocks) in place of X, "
                "which go there one at a time"
            )
        if self.verbose:
            print(f"{type(self).__name__}: {told}", file=sys.stderr)

    def _fitted(self, model: LowRank, known: Facts) -> Self:
        # Row-major, as a saved model comes back: BLAS rounds by the layout.
        tidy = lambda factor: (
            factor.astype(known.dtype)
            if sp.issparse(factor)
            else np.ascontiguousarray(factor, dtype=known.dtype)
        )
        self.model_ = LowRank(tidy(model.W), None if model.H is None else tidy(model.H))
        self.n_iter_ = len(self.history_)
        self.classes_ = np.arange(known.n_labels) if known.classes is None else known.classes
        return self

    def _rows(self, X: Any, Y: Any) -> tuple[Blocks, Facts]:
        if hasattr(X, "map") and hasattr(X, "batches"):
            if Y is not None:
                raise ValueError("Y must be left out when X is Blocks, which bring their labels")
            known = X.sum(facts)
            self.n_features_in_ = known.n_features
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_  # blocks name no features; an earlier fit may have
            return X, known
        X = validate_data(self, X, accept_sparse="csr", dtype=_FLOATS)
        if Y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; "
                "give the labels of the rows of X"
            )
        labels = as_labels(Y, self._kinds[0])
        if len(labels) != X.shape[0]:
            raise ValueError(
                f"X and Y have inconsistent numbers of rows: {X.shape[0]} and {len(labels)}; "
                "give one row of labels for each row of features"
            )
        rows = Rows(sp.csr_array(X) if sp.issparse(X) else X, labels)
        n_blocks = max(1, -(-len(rows) // get_backend(self.device).block_rows))
        return MemoryBlocks.from_rows(rows, n_blocks), facts(rows)

    def _rows_again(self, X: Any, Y: Any, first: Facts) -> tuple[Blocks, Facts]:
        """A batch that is to go on from one whose facts were `first`."""
        self._features(X)  # as wide as the first batch
        blocks, known = self._rows(X, Y)
        if (known.n_labels, known.kind) != (first.n_labels, first.kind):
            raise ValueError(
                f"this batch has {known.n_labels} {known.kind} labels, the first had "
                f"{first.n_labels} {first.kind} ones; give the same in every batch"
            )
        return blocks, known

    def _placement(self, dtype: str) -> Placement:
        return Placement(get_backend(self.device), dtype, self.normalize, self.fit_intercept)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of shape (n_samples, n_labels); larger is more likely."""
        X = self._features(X)
        shape = (X.shape[0], len(self.classes_))
        check_dense(shape, f"{type(self).__name__}.decision_function", "top_k")
        return np.concatenate([self._scores(block) for block in self._blocks(X, shape[1])])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability that each label is true, as well as the method can know it."""
        scores = self.decision_function(X)
        return self._loss.probability(scores)

    def predict(self, X: Any) -> sp.csr_array:
        """CSR indicator: the `k` best labels of a row, or all of probability above `threshold`."""
        X = self._features(X)
        shape = (X.shape[0], len(self.classes_))
        if self.k is not None:
            best = self._top_k(X, self.k, None).indices
            pointer = np.arange(best.shape[0] + 1) * best.shape[1]
            found = sp.csr_array((np.ones(best.size, np.int8), best.ravel(), pointer), shape=shape)
            found.sort_indices()
            return found
        above = [
            sp.csr_array(self._loss.probability(self._scores(block)) > self._cut)
            for block in self._blocks(X, shape[1])
        ]
        return sp.csr_array(sp.vstack(above, format="csr"), dtype=np.int8)

    @property
    def _cut(self) -> float:
        """The probability above which `predict` says yes."""
        return self.threshold

    def top_k(self, X: Any, k: int = 5, *, index: LabelIndex | None = None) -> TopK:
        """The k best labels of each row, best first, without ever building n_samples × n_labels.

        Exact, unless an `index` from `build_index` is given.
        """
        X, k = self._features(X), checked_k(k)
        if index is None:
            return self._top_k(X, k, None)
        check_index(index, self.model_.H)
        blocks = self._blocks(X, self._code_width(self.model_.W))
        parts = [index.search(b.backend.to_numpy(self._codes(b)), k) for b in blocks]
        return TopK(*(np.concatenate(arrays) for arrays in zip(*parts)))

    def build_index(self, *, accuracy: int = 64) -> LabelIndex:
        """An index of the label factors for `top_k(X, k, index=…)`; `tacit.engines.index` says how.

        Approximate: worthwhile from about 20,000 labels, measured in benchmarks/search.py. On
        random factors of rank 100, many rows at once and two busy cores, it was 0.3 times as fast
        as the exact top 5 for 4,000 labels, 1.2 times for 20,000, 2.8 for 100,000 and 11.5 for
        400,000, at recalls of 0.999 down to 0.989; some 50,000 rows or more repay the building.
        """
        check_is_fitted(self, "model_")
        if self.model_.H is None:
            raise ValueError(
                f"{type(self).__name__} has full rank and so no label factors to index; "
                "use top_k without index, which is exact"
            )
        return LabelIndex.of(self.model_.H, accuracy=accuracy)

    def complete(self, X: Any, Y: Any, k: int = 10) -> Completion:
        """The entries of Y not said yet that are most likely true.

        Of each row the k best are taken, and all of them are sorted by probability. Candidates
        are the entries that were not observed (masked labels) or not said yes (any other labels).
        """
        X, labels = self._to_complete(X, Y)
        return self._completion(X, labels, k, self._codes)

    def _to_complete(self, X: Any, Y: Any) -> tuple[Any, Labels]:
        X, labels = self._features(X), as_labels(Y)
        if labels.shape != (X.shape[0], len(self.classes_)):
            raise ValueError(
                f"Y has shape {labels.shape}; for this X and model it must be "
                f"{(X.shape[0], len(self.classes_))}"
            )
        return X, labels

    def _completion(
        self, X: Any, labels: Labels, k: int, codes: Callable[[Block], Array]
    ) -> Completion:
        return self._sorted(self._top_k(X, checked_k(k), labels, codes))

    def _sorted(self, found: TopK) -> Completion:
        row, place_ = np.nonzero(found.indices >= 0)
        probability = self._loss.probability(found.scores[row, place_])
        order = np.argsort(-found.scores[row, place_], kind="stable")
        return Completion(row[order], found.indices[row, place_][order], probability[order])

    def transform(self, X: Any) -> np.ndarray:
        """The latent code of each row, of shape (n_samples, rank)."""
        X = self._features(X)
        blocks = self._blocks(X, self.model_.W.shape[1])
        return np.concatenate([b.backend.to_numpy(self._latent(b)) for b in blocks])

    @property
    def _n_features_out(self) -> int:
        return self.model_.W.shape[1]

    def score(self, X: Any, Y: Any) -> float:
        """nDCG@5 of the ranking, on what Y says; see `tacit.metrics` for others."""
        return float(ndcg_at_k(as_labels(Y, self._kinds[0]), self.top_k(X, 5), 5))

    def save(self, path: str | os.PathLike) -> None:
        """Write the fitted model to one file; `tacit.load` reads it and runs no code from it."""
        header, arrays = self._saved()
        write_arrays(path, header, arrays)

    def _saved(self) -> tuple[dict, dict[str, np.ndarray]]:
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
            "history": self.history_,
            "learned": {name: np.asarray(getattr(self, name)).item() for name in self._learned},
            "names": names,
        }
        arrays = {"W": self.model_.W, "H": self.model_.H}
        arrays |= {name: getattr(self, name) for name in self._arrays}
        return header, {name: array for name, array in arrays.items() if array is not None}

    def _restore(self, header: dict, arrays: dict[str, np.ndarray]) -> Self:
        """Take the state that `_saved` gave; whatever does not fit together is a ValueError."""
        check_params(self)
        W, H = arrays["W"], arrays.get("H")
        n_features, n_labels = header["n_features"], header["n_labels"]
        if not all(an_int(at_least=1)[0](size) for size in (n_features, n_labels, W.size)):
            raise ValueError(f"it is of {n_features!r} features and {n_labels!r} labels")
        for name, each in arrays.items():
            fits = each.dtype.kind == "i" if name in self._integers else each.dtype in _FLOATS
            if not fits:
                raise ValueError(f"its {name} is of {each.dtype}")
        for name, shape in self._arrays.items():
            array, sizes = arrays.get(name), {"d": W.shape[0], "L": n_labels, "*": None}
            expected = [sizes[size] if isinstance(size, str) else size for size in shape]
            if array is not None and not _fits(array.shape, expected):
                raise ValueError(f"its {name} has shape {array.shape}")
            setattr(self, name, array)
        wanted = (self._n_weights(n_features), n_labels if H is None else W.shape[-1])
        if W.shape != wanted or (H is not None and H.shape != (n_labels, self._code_width(W))):
            raise ValueError(f"its arrays do not fit {n_features} features and {n_labels} labels")
        names = {name: np.array(header["names"][name], dtype=object) for name in header["names"]}
        for name, length in (("classes_", n_labels), ("feature_names_in_", n_features)):
            if name in names:
                if len(names[name]) != length or not all(isinstance(v, str) for v in names[name]):
                    raise ValueError(f"its {name} are not {length} names")
                setattr(self, name, names[name].astype(str) if name == "classes_" else names[name])
        self.n_features_in_, self.model_ = n_features, LowRank(W, H)
        self.classes_ = getattr(self, "classes_", np.arange(n_labels))
        for name in self._learned:
            value = header["learned"][name]
            if not isinstance(value, int | float):
                raise ValueError(f"its {name} is not a number")
            setattr(self, name, value)
        self.history_ = [float(value) for value in header["history"]]
        self.n_iter_ = len(self.history_)
        return self

    def _features(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        return validate_data(self, X, accept_sparse="csr", dtype=_FLOATS, reset=False)

    def _blocks(self, X: Any, width: int, labels: Labels | None = None) -> Iterator[Block]:
        """X in blocks of rows, so many that `width` numbers a row stay within bounds."""
        placement = self._placement(str(self.model_.W.dtype))
        size = min(_PREDICTED_ROWS, max(1, _BLOCK_ENTRIES // width))
        for start in range(0, X.shape[0], size):
            rows = slice(start, start + size)
            said = _no_labels(X[rows].shape[0], 0) if labels is None else labels[rows]
            yield place(Rows(X[rows], said), placement)

    def _latent(self, block: Block) -> Array:
        """What `transform` gives: the code X W of each row."""
        return self.model_.codes(block)

    def _codes(self, block: Block) -> Array:
        """What scores are linear in: the scores are codes · Hᵀ."""
        return self._latent(block)

    def _n_weights(self, n_features: int) -> int:
        """How many rows W has."""
        return n_features + self.fit_intercept

    def _code_width(self, W: np.ndarray) -> int:
        return W.shape[1]

    def _scores(self, block: Block) -> np.ndarray:
        codes, H = self._codes(block), self.model_.decoder(block.backend)
        return block.backend.to_numpy(codes if H is None else codes @ H.T)

    def _top_k(
        self, X: Any, k: int, labels: Labels | None, codes: Callable[[Block], Array] | None = None
    ) -> TopK:
        """The k best labels of each row, of those not said already where `labels` are given."""
        parts = []
        for block in self._blocks(X, self._code_width(self.model_.W), labels):
            U, H = (codes or self._codes)(block), self.model_.decoder(block.backend)
            said = block.Y if block.omega is None else block.omega
            parts.append(block.backend.top_k(U, H, k, None if labels is None else said))
        return TopK(*(np.concatenate(arrays) for arrays in zip(*parts)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.target_tags.two_d_labels = True
        return tags


def shared_checks() -> dict[str, Check]:
    """The checks of the parameters that every linear method has."""
    return {
        "normalize": one_of("l2", None),
        "fit_intercept": a_bool(),
        "threshold": a_float(at_least=0),
        "k": (lambda v: v is None or an_int(at_least=1)[0](v), "None or an int of at least 1"),
        "device": (lambda v: isinstance(v, str), 'a string such as "cpu" or "cuda"'),
        "verbose": (lambda v: isinstance(v, int | bool), "True, False or an int"),
    }


def _wrong_kind(name: str, kind: str, kinds: tuple[Kind, ...]) -> str:
    # Found by name, since this layer may not import the methods: it needs them for a sentence only.
    modules = [import_module(f"tacit.{layer}") for layer in ("methods", "baselines")]
    classes = [value for module in modules for value in vars(module).values()]
    able = sorted({c.__name__ for c in classes if kind in getattr(c, "_kinds", ())})
    return (
        f"{name} cannot use {kind} labels, only {' or '.join(kinds)}; {' and '.join(able)} can, "
        "and Y.as_complete() declares whatever was not said to be a no"
    )


def checked_k(k: Any) -> int:
    """k as an int of at least 1."""
    if not (an_int(at_least=1)[0](k)):
        raise ValueError(f"k must be an int of at least 1; got {k!r}")
    return int(k)


def _fits(shape: tuple[int, ...], wanted: list[int | None]) -> bool:
    return len(shape) == len(wanted) and all(w in (None, s) for s, w in zip(shape, wanted))


def _gib(n_bytes: float) -> str:
    return f"{n_bytes / 2**30:.1f} GiB"


def _is_json(value: Any) -> bool:
    """Whether a parameter can be written; a RandomState, used up by the fit, cannot."""
    return value is None or isinstance(value, bool | int | float | str | np.number)


def _no_labels(n: int, n_labels: int) -> Labels:
    return Labels("complete", sp.csr_array((n, n_labels), dtype=bool))
