"""Model files of earlier formats, brought to that of today.

Format 1 (0.1.0) had no model of its own: the estimator's fitted attributes lay in the file under
their names, "c_" and "links_", and prediction took what it needed from there and the parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["upgraded"]

Contents = tuple[dict[str, Any], dict[str, np.ndarray]]


def upgraded(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Contents:
    """The header and arrays as the newest format has them."""
    return _from_1(header, arrays) if header["format"] == 1 else (header, arrays)


def _from_1(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Contents:
    """Format 1: the kind of model follows from the class, its parameters and what was there."""
    params, learned, name = header["params"], header["learned"], header["class"]
    arrays = {array.removesuffix("_"): value for array, value in arrays.items()}
    kept = ("rank_", "reg_", "unsaid_weight_", "threshold_")
    chosen = {key: learned[key] for key in kept if key in learned}
    if name == "Tacit":  # whose levels are no longer a parameter
        params = {key: value for key, value in params.items() if key != "levels"}
    return header | {
        "params": params,
        "labels": None,
        "chosen": chosen,
        "model": _MODELS[name](header, params, learned, arrays) if name in _MODELS else _LINEAR,
    }, arrays


_LINEAR = {"kind": "LowRank", "link": "squared", "unsaid_weight": None}


def _of_loss(header: dict, params: dict, learned: dict, arrays: dict) -> dict[str, Any]:
    silence = learned.get("unsaid_weight_")
    return {"kind": "LowRank", "link": params["loss"], "unsaid_weight": silence}


def _of_geneml(header: dict, params: dict, learned: dict, arrays: dict) -> dict[str, Any]:
    if learned["n_draws_"]:
        return {"kind": "Sampled", "n_draws": int(learned["n_draws_"])}
    reg_u, intercept = params["reg_u"], params["fit_intercept"]
    return {"kind": "ExposedLowRank", "reg_u": reg_u, "intercept": intercept}


def _of_sem(header: dict, params: dict, learned: dict, arrays: dict) -> dict[str, Any]:
    kind = "KernelHead" if "phases" in arrays else "Softmax"
    return {"kind": kind, "label_count": learned["label_count_"]}


def _of_reduction(header: dict, params: dict, learned: dict, arrays: dict) -> dict[str, Any]:
    settings = {"cs": ("sparsity", "decoder"), "bmad": ("tau",)}  # of those that decode
    codec = params["codec"]
    if codec not in settings:
        return _LINEAR
    return {"kind": "Decoded", "codec": codec, **{name: params[name] for name in settings[codec]}}


def _of_tacit(header: dict, params: dict, learned: dict, arrays: dict) -> dict[str, Any]:
    look = None
    if "look_weights" in arrays:
        look = [learned["look_share_"], bool(learned["look_presence_"])]
    return {
        "kind": "TacitModel",
        "scaling": header["scaling"],
        "exposure": learned["exposure_"],
        "look": look,
        "report": header["report"],
    }


_MODELS = {
    "LEML": _of_loss,
    "BinaryRelevance": _of_loss,
    "M3L": lambda *_: _LINEAR | {"link": "margin"},
    "Elkan08": lambda header, params, *_: {
        "kind": "LogRatio",
        "divided": params["variant"] == "ratio",
    },
    "MPU": lambda header, params, *_: {
        "kind": "Stacked",
        "top": params["top"],
        "how": "read with the model",
    },
    "NNML": lambda *_: {"kind": "HiddenLayer"},
    "SEM": _of_sem,
    "GenEML": _of_geneml,
    "LabelSpaceReduction": _of_reduction,
    "Tacit": _of_tacit,
}
