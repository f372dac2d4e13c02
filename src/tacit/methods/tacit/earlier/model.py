"""The model of 0.1.0: scaled features, weights, a second look, and maps to probabilities.

No fit makes it any more; files that hold it are read, and score as they did.

The scores of a row are those of its scaled features; the second look then reorders the labels that
are in question in it. `completion` adds the links of what else was said of the row, where they find
more than the second look does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device, to_device

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.params import a_float
from tacit.features.scaling import Scaling
from tacit.labels import TopK
from tacit.methods.tacit.earlier.look import EarlierLook
from tacit.methods.tacit.report import Report
from tacit.methods.tacit.saved import look_of, scaling_of
from tacit.methods.tacit.second_look import without_constant
from tacit.methods.tacit.shortlists import listed
from tacit.models.model import Model, check_shape, said
from tacit.models.sparse import sparse_of

__all__ = ["TacitModel"]

_share, _ = a_float(above=0, at_most=1)


@dataclass(frozen=True, eq=False)
class TacitModel(Model):
    """Weights of scaled features, and what was kept beside them.

    Attributes
    ----------
    scaling : Scaling
        How features are scaled.
    W, H : ndarray or csr_array, ndarray or None
        The weights, of low rank where there is an H.
    calibration, completion : ndarray of shape (2, n_knots)
        The maps from scores to P(true): of the model, and of its completions with links.
    exposure : float
        The share of true labels that were said.
    look : EarlierLook or None
        What reorders the shortlist of a row.
    links : ndarray of shape (n_labels, n_labels) or None
        How the labels that were said of a row predict each other label.
    report : Report
        What was tried and kept.
    """

    scaling: Scaling
    W: Any
    calibration: np.ndarray
    completion_map: np.ndarray
    exposure: float
    report: Report
    H: Any = None
    look: EarlierLook | None = None
    links: np.ndarray | None = None

    @property
    def folds_in(self) -> bool:  # type: ignore[override]
        return self.links is not None

    @property
    def n_labels(self) -> int:
        return self.W.shape[1] if self.H is None else len(self.H)

    @property
    def n_codes(self) -> int:
        return self.W.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.W.dtype

    @property
    def completion_width(self) -> int:
        return self.width if self.links is None else self.n_labels

    @property
    def said_rates(self) -> np.ndarray:
        return np.full(self.n_labels, self.exposure)

    def codes(self, block: Block) -> Array:
        """The scaled features times W."""
        place = block.backend.sparse if sp.issparse(self.W) else block.backend.kept
        return self.scaling(block).project(place(self.W))

    def factors(self, block: Block) -> tuple[Array, Array | None]:
        """Those of the first scores, before the second look."""
        return self.codes(block), None if self.H is None else block.backend.kept(self.H)

    def scores(self, block: Block) -> np.ndarray:
        scores = super().scores(block)
        if self.look is None:
            return scores
        top = block.backend.top_k(block.backend.asarray(scores), None, listed(self.n_labels), None)
        return self.look.rescored(without_constant(self.scaling(block).X), scores, top)

    def top_k(self, block: Block, k: int) -> TopK:
        return self._reranked(block, k, None)

    def completion(self, block: Block, k: int, fold_in: bool) -> TopK:
        if not fold_in or self.links is None:
            return self._reranked(block, k, said(block))
        U, H = self.factors(block)
        scores = U if H is None else U @ H.T
        scores = scores + block.backend.spmm(block.Y, block.backend.kept(self.links))
        return block.backend.top_k(scores, None, k, said(block))

    def _reranked(self, block: Block, k: int, skip: Any) -> TopK:
        """The best by the first scores, the shortlist in the order of the second look."""
        U, H = self.factors(block)
        if self.look is None:
            return block.backend.top_k(U, H, k, skip)
        most = listed(self.n_labels)
        found = block.backend.top_k(U, H, k + most, skip)  # beyond the shortlist the order stays
        ranked = self.look.ranked(without_constant(self.scaling(block).X), found, most)
        return TopK(ranked.indices[:, :k], ranked.scores[:, :k])

    def probability(self, scores: Any) -> Any:
        return _mapped(self.calibration, scores)

    def unsaid_probability(self, scores: np.ndarray, fold_in: bool) -> np.ndarray:
        """P(true | unsaid) = (1 - c) p / (1 - c p) for p = P(true)."""
        linked = fold_in and self.links is not None
        knots = self.completion_map if linked else self.calibration
        p, c = _mapped(knots, scores), self.exposure
        return np.clip((1 - c) * p / (1 - c * p), 0, 1) if c < 1 else p

    # Files

    def numbers(self) -> dict[str, Any]:
        look = None if self.look is None else [self.look.share, bool(self.look.presence)]
        return {
            "scaling": self.scaling.kind,
            "exposure": self.exposure,
            "look": look,
            "report": self.report.as_dict(),
        }

    def arrays(self) -> dict[str, np.ndarray | None]:
        s, look, W = self.scaling, self.look, self.W
        arrays = {
            "calibration": self.calibration,
            "completion": self.completion_map,
            "links": self.links,
            "H": self.H,
            "weight": s.weight,
            "shift": s.shift,
            "draws": s.draws,
            "phase": s.phase,
            "directions": s.directions,
        }
        if sp.issparse(W):
            arrays |= {"W_values": W.data, "W_labels": W.indices, "W_pointer": W.indptr}
        else:
            arrays["W"] = W
        if look is not None:
            arrays |= look.arrays(self.dtype)
        return arrays

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        exposure = numbers["exposure"]
        if not _share(exposure):
            raise ValueError(f"its exposure is {exposure!r}")
        scaling = scaling_of(str(numbers["scaling"]), n_weights - 1, arrays)
        n_scaled, H = scaling.n_features(n_weights), arrays.get("H")
        if "W_pointer" in arrays:
            W = sparse_of("W_values", "W_labels", "W_pointer", (n_scaled, n_labels), arrays)
        else:
            W = check_shape("W", arrays.get("W"), n_scaled, n_labels if H is None else None)
        if H is not None:
            check_shape("H", H, n_labels, W.shape[1])
        links = arrays.get("links")
        if links is not None:
            check_shape("links", links, n_labels, n_labels)
        look = None
        if numbers["look"] is not None:
            n_seen = n_weights - 1 if scaling.phase is None else len(scaling.phase)
            look = EarlierLook.of(numbers["look"], look_of(n_seen, n_labels, arrays))
        return cls(
            scaling,
            W,
            _knots("calibration", arrays),
            _knots("completion", arrays),
            float(exposure),
            Report.from_dict(numbers["report"]),
            H,
            look,
            links,
        )


def _mapped(knots: np.ndarray, z: Any) -> Any:
    """P(true | score) at each score, by a piecewise linear map, as an array of their kind."""
    at = np.asarray(to_device(z, "cpu"))
    p = np.interp(at, *knots).clip(0, 1)  # rounding may pass the last knot
    p = p.astype(np.result_type(at, np.float32), copy=False)  # float32 stays float32
    return array_namespace(z).asarray(p, device=device(z))


def _knots(name: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    return check_shape(name, arrays.get(name), 2, None)
