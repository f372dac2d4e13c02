"""Model files of `Tacit`: what is written of a model, and how it is checked when it is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.basics.params import a_float, an_int
from tacit.features.scaling import KINDS, Scaling
from tacit.methods.tacit.blend import Blend
from tacit.methods.tacit.ceiling import Ceiling
from tacit.methods.tacit.first.by_feature import SparseWeights
from tacit.methods.tacit.report import Report
from tacit.methods.tacit.second_look import SecondLook
from tacit.methods.tacit.voice import Voice
from tacit.models import LowRank, Model
from tacit.models.hidden_layer import HiddenLayer
from tacit.models.known_rows import KnownRows
from tacit.models.model import check_shape
from tacit.models.nearest_rows import NearestRows
from tacit.models.sparse import sparse_of

__all__ = ["arrays_of", "ceiling_of", "fields_of", "look_of", "numbers_of", "scaling_of"]

_KINDS: dict[str, type[Model]] = {
    kind.__name__: kind for kind in (LowRank, HiddenLayer, KnownRows, NearestRows, SparseWeights)
}
_share, _ = a_float(above=0, at_most=1)
_is_count, _ = an_int(at_least=0)


def numbers_of(model: Any) -> dict[str, Any]:
    """The voices with their own numbers, the blends' names, and the rest."""
    voices = [
        {
            "name": v.name,
            "kind": type(v.model).__name__,
            "numbers": v.model.numbers(),
            "least": v.least,
        }
        for v in model.voices
    ]
    blends = [
        None if b is None else {"names": list(b.names), "bias": b.bias, "exposure": b.exposure}
        for b in (model.blend, model.completion_blend)
    ]
    return {
        "scaling": model.scaling.kind,
        "voices": voices,
        "shortlist": model.shortlist,
        "blends": blends,
        "ceiling": None if model.ceiling is None else list(model.ceiling.overall),
        "looks": model.look is not None,
        "report": model.report.as_dict(),
    }


def arrays_of(model: Any) -> dict[str, np.ndarray | None]:
    """All arrays, those of a voice and of a blend under its number."""
    s = model.scaling
    arrays: dict[str, np.ndarray | None] = {
        "rarity": model.rarity,
        "links": model.links,
        "ceiling": None if model.ceiling is None else model.ceiling.labels,
        "weight": s.weight,
        "shift": s.shift,
        "draws": s.draws,
        "phase": s.phase,
    }
    for i, voice in enumerate(model.voices):
        arrays |= {f"voice{i}_{name}": a for name, a in voice.model.arrays().items()}
    for i, blend in enumerate((model.blend, model.completion_blend)):
        if blend is not None:
            arrays |= {f"blend{i}_weights": blend.weights, f"blend{i}_lead": blend.lead}
    if model.look is not None:
        arrays |= model.look.arrays(model.dtype)
    return arrays


def fields_of(
    n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
) -> dict[str, Any]:
    """What `numbers_of` and `arrays_of` wrote, checked, as the fields of a model."""
    scaling = scaling_of(str(numbers["scaling"]), n_weights - 1, arrays)
    if not _is_count(numbers["shortlist"]):
        raise ValueError(f"its shortlist is {numbers['shortlist']!r}")
    voices = []
    for i, told in enumerate(numbers["voices"]):
        prefix = f"voice{i}_"
        own = {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
        if told["kind"] not in _KINDS:
            raise ValueError(f"its first model {i} is {told!r}")
        width = scaling.n_features(n_weights) if i == 0 else n_weights  # waves are for the lead
        model = _KINDS[told["kind"]].from_arrays(width, n_labels, told["numbers"], own)
        least = None if told["least"] is None else float(told["least"])
        voices.append(Voice(str(told["name"]), model, least))
    if not voices:
        raise ValueError("it has no first model")
    look = look_of(n_weights - 1, n_labels, arrays) if numbers["looks"] else None
    links = arrays.get("links")
    if links is not None:
        check_shape("links", links, n_labels, n_labels)
    blend, completions = (_blend(i, told, arrays) for i, told in enumerate(numbers["blends"]))
    if blend is None:
        raise ValueError("it has no blend")
    return {
        "scaling": scaling,
        "voices": tuple(voices),
        "shortlist": numbers["shortlist"],
        "rarity": check_shape("rarity", arrays.get("rarity"), n_labels),
        "blend": blend,
        "completion_blend": completions,
        "report": Report.from_dict(numbers["report"]),
        "look": look,
        "links": links,
        "ceiling": ceiling_of(n_labels, numbers["ceiling"], arrays),
    }


def scaling_of(kind: str, d: int, arrays: dict[str, np.ndarray]) -> Scaling:
    """The scaling of d features."""
    if kind not in KINDS:
        raise ValueError(f"its scaling is {kind!r}")
    found: dict[str, np.ndarray] = {}
    if kind in ("idf", "standard", "fourier"):
        found["weight"] = check_shape("weight", arrays.get("weight"), d)
    if kind in ("standard", "fourier"):
        found["shift"] = check_shape("shift", arrays.get("shift"), d)
    if kind == "fourier":
        found["phase"] = check_shape("phase", arrays.get("phase"), None)
        found["draws"] = check_shape("draws", arrays.get("draws"), d, len(found["phase"]))
    scaling = Scaling(kind, **found)
    if "directions" not in arrays:
        return scaling
    n = scaling.n_features(d + 1)
    directions = check_shape("directions", arrays["directions"], n, None)
    return Scaling(kind, **found, directions=directions)


def ceiling_of(n_labels: int, overall: Any, arrays: dict[str, np.ndarray]) -> Ceiling:
    """The rates at which so many labels are said, each between the ends of its interval."""
    labels = check_shape("ceiling", arrays.get("ceiling"), 3, n_labels)
    c, low, high = np.column_stack([labels, [float(rate) for rate in overall]])
    if not ((low >= 0) & (low <= c) & (c > 0) & (c <= high) & (high <= 1)).all():
        raise ValueError("its rates at which labels are said are no rates with intervals")
    return Ceiling((float(c[-1]), float(low[-1]), float(high[-1])), labels)


def look_of(n_features: int, n_labels: int, arrays: dict[str, np.ndarray]) -> SecondLook:
    """The second look of so many features and labels."""
    names = "look_weights", "look_features", "look_pointer"
    return SecondLook(
        sparse_of(*names, (n_labels, n_features), arrays),
        check_shape("look_trust", arrays.get("look_trust"), 2, n_labels),
        check_shape("look_pooled", arrays.get("look_pooled"), 2),
    )


def _blend(i: int, told: Any, arrays: dict[str, np.ndarray]) -> Blend | None:
    if told is None:
        return None
    names = tuple(map(str, told["names"]))
    if not _share(told["exposure"]) or not isinstance(told["bias"], float):
        raise ValueError(f"its blend is {told!r}")
    weights = check_shape(f"blend{i}_weights", arrays.get(f"blend{i}_weights"), len(names))
    lead = check_shape(f"blend{i}_lead", arrays.get(f"blend{i}_lead"), 2)
    return Blend(names, weights, told["bias"], told["exposure"], lead)
