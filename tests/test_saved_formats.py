"""Model files of earlier versions: every one of them still loads, and ranks as it did.

`saved_models/format_1` holds one small model of each method and, for the methods that keep several
kinds of model, one of each kind, saved by version 0.1.0 before a model became a value of its own,
with the scores, probabilities and completions that it gave there. `saved_models/format_2` holds the
same of methods that came later, as their first version saved them. The rows are made, not real.
"""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import Pipeline

from tacit import Labels, load
from tacit.saved import METHODS, save
from tacit.testing import problem

FOLDER = Path(__file__).parent / "saved_models"
FILES = sorted(FOLDER.glob("format_*/*.tacit"))
KEPT = 40  # rows, the first, of which the figures are kept
KINDS = {
    "positive-only": ("positive_only", "Elkan08", "GenEML", "MPU", "WELL"),
    "masked": ("BinaryRelevance", "NNML", "Neighbours_masked"),
}
TEXTS = [
    "the cat sat on the naïve café mat",
    "a dog ran over the bridge",
    "наука и жизнь of the cat",
    "the dog and the 東京 bridge",
    "über cat ran",
    "bridge over the river",
] * 3
TAGS = [["animal", "café"], ["animal"], ["наука"], ["東京", "animal"], ["animal"], []] * 3


def rows_of(name):
    """The rows that the file was fitted on, and the labels that its completions are for."""
    if name == "LEML_pipeline_text":
        return TEXTS, Labels.from_sets(TAGS, kind="complete")
    if not name.startswith("Tacit"):
        kinds = [kind for kind, names in KINDS.items() if any(part in name for part in names)]
        return problem(kinds[0] if kinds else "complete")
    kept = np.load(FOLDER / "format_1" / "rows.npz")
    if name in ("Tacit_products", "Tacit_fourier"):
        which = name.removeprefix("Tacit_")
        X, Y = kept[f"{which}_X"], Labels.complete(kept[which])
        return (sp.csr_array(X) if which == "products" else X), Y
    if name == "Tacit_standard":
        return kept["complete_X"], Labels.complete(kept["complete"])
    if name in ("Tacit_masked", "Tacit_low_rank"):
        X = kept["masked_X"]
        Y = Labels.from_array(kept["masked"])
        return (sp.csr_array(X) if name == "Tacit_masked" else X), Y
    return sp.csr_array(kept["positive_only_X"]), Labels.positive_only(kept["positive"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_model_file_of_an_earlier_version_ranks_as_it_did(path, tmp_path):
    X, Y = rows_of(path.stem)
    wanted = np.load(path.with_suffix(".npz"))
    again = tmp_path / "again.tacit"
    save(load(path), again)
    for model in (load(path), load(again)):  # and once it is written as files are today
        estimator = model[-1] if isinstance(model, Pipeline) else model
        Z = model[:-1].transform(X) if isinstance(model, Pipeline) else X
        Z, labels = Z[:KEPT], Y[:KEPT]
        scores = estimator.decision_function(Z)
        scale = np.abs(wanted["scores"]).max()
        tol = 1e-4 if scores.dtype == np.float32 else 1e-6  # BLAS rounds by the number of threads
        assert scores.dtype == wanted["scores"].dtype
        assert_allclose(scores, wanted["scores"], rtol=tol, atol=tol * scale)
        assert_allclose(estimator.predict_proba(Z), wanted["probability"], atol=tol)
        assert_array_equal(estimator.top_k(Z, 4).indices, wanted["top"])
        if "codes" in wanted:
            codes = wanted["codes"]
            assert_allclose(estimator.transform(Z), codes, atol=tol * np.abs(codes).max())
        if "row" in wanted and path.stem != "Elkan08":  # whose completions now know of silence
            found = estimator.complete(Z, labels, 3)
            assert_allclose(found.probability, wanted["completion"], atol=tol)
            assert set(zip(found.row, found.label)) == set(zip(wanted["row"], wanted["label"]))


def test_every_method_has_a_file():
    assert {path.stem.split("_")[0] for path in FILES} == set(METHODS)
