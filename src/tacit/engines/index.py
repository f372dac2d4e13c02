"""Approximate top k: the labels of largest score, found without scoring all of them.

The score of label j for a row of code u is the inner product uᵀh_j, so its k best labels are the k
label factors of largest inner product with u. A navigable graph (HNSW) over the rows of H finds
most of them in about log n_labels steps instead of n_labels products. The inner product itself
is the graph's measure: the reduction to Euclidean distance by one more coordinate found far fewer
of the best labels on factors whose norms differ as much as those of frequent and rare labels do.

The graph is that of faiss, which has wheels; hnswlib has to be compiled on installation.

    Yu. A. Malkov, D. A. Yashunin. Efficient and robust approximate nearest neighbor search using
    Hierarchical Navigable Small World graphs. IEEE TPAMI 42(4), 2020.
    S. Morozov, A. Babenko. Non-metric Similarity Graphs for Maximum Inner Product Search.
    NeurIPS 2018.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Self

import numpy as np

from tacit.backends.numpy import NumpyBackend
from tacit.backends.sparse import Sparse
from tacit.basics.params import an_int
from tacit.labels import TopK

__all__ = ["LabelIndex", "check_index"]

# More links a label recall more, and take longer to build and to search.
_LINKS, _CANDIDATES_WHILE_BUILDING = 32, 80


@dataclass(frozen=True, eq=False)
class LabelIndex:
    """A graph over label factors; make one by `of`, or by the `build_index` of a fitted model.

    Attributes
    ----------
    H : ndarray of shape (n_labels, rank)
        The label factors.

    Examples
    --------
    >>> import numpy as np
    >>> index = LabelIndex.of(np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]]))
    >>> index.search(np.array([[1.0, -0.5]]), k=2)
    TopK(indices=array([[0, 2]]), scores=array([[1., 1.]]))
    """

    H: np.ndarray
    _graph: Any = field(repr=False)

    @classmethod
    def of(cls, H: np.ndarray, *, accuracy: int = 64) -> Self:
        """Index the rows of H.

        Parameters
        ----------
        H : ndarray of shape (n_labels, rank)
            The label factors, in float32 or float64.
        accuracy : int, default=64
            Candidates that a search keeps. More of them find more of the true top k, in a time
            that grows about in proportion.
        """
        _check_count("accuracy", accuracy)
        faiss = _faiss()
        graph = faiss.IndexHNSWFlat(H.shape[1], _LINKS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = _CANDIDATES_WHILE_BUILDING
        graph.hnsw.efSearch = int(accuracy)
        graph.add(np.ascontiguousarray(H, np.float32))
        return cls(H, graph)

    def search(self, codes: np.ndarray, k: int) -> TopK:
        """The k labels of largest score for each code, best first, as far as the graph finds them.

        Scores are exact, and of equal ones found the lower label comes first. A row for which the
        graph reaches fewer than k labels is answered exactly.
        """
        _check_count("k", k)
        if codes.ndim != 2 or codes.shape[1] != self.H.shape[1]:
            raise ValueError(
                f"codes have shape {codes.shape}; give one row of length {self.H.shape[1]}, "
                "the rank of the label factors, for each sample"
            )
        codes = np.ascontiguousarray(codes, self.H.dtype)
        _, found = self._graph.search(codes.astype(np.float32, copy=False), min(k, len(self.H)))
        short = (found < 0).any(axis=1)
        best = self._ranked(codes, np.maximum(found, 0))
        if short.any():
            exact = NumpyBackend().top_k(codes[short], self.H, found.shape[1])
            best.indices[short], best.scores[short] = exact
        return best

    def _ranked(self, codes: np.ndarray, found: np.ndarray) -> TopK:
        """Those labels of each row with their scores, which the graph knows in float32 only."""
        n, k = found.shape
        pattern = Sparse(
            (n, len(self.H)), k * np.arange(n + 1), found.ravel().astype(np.int32), None, None
        )
        scores = NumpyBackend().sddmm(pattern, codes, self.H).reshape(n, k)
        order = np.lexsort((found, -scores), axis=-1)
        return TopK(
            np.take_along_axis(found, order, axis=1), np.take_along_axis(scores, order, axis=1)
        )


def check_index(index: Any, H: np.ndarray | None) -> None:
    """Refuse whatever is not an index of the label factors H."""
    if not isinstance(index, LabelIndex):
        raise ValueError(f"index must be None or come from build_index(); got {index!r}")
    if H is None or not (H is index.H or np.array_equal(H, index.H)):
        raise ValueError(
            f"index was built from label factors of shape {index.H.shape}, not from this model's "
            f"({'it has none' if H is None else f'of shape {H.shape}'}); make one by build_index() "
            "after the fit, or leave index out"
        )


def _faiss() -> ModuleType:
    try:
        import faiss
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            'an index of labels needs faiss, which is not installed; pip install "tacit[search]", '
            "or use top_k without an index, which is exact"
        ) from None
    return faiss


def _check_count(name: str, value: Any) -> None:
    holds, wanted = an_int(at_least=1)
    if not holds(value):
        raise ValueError(f"{name} must be {wanted}; got {value!r}")
