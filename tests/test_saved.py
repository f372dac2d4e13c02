"""Saved models: what was written comes back; what is damaged or hostile is one clear sentence."""

import json
import os
import pickle
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from tacit import LEML, KernelFeatures, Labels, load, save
from tacit.baselines import Popularity, Ridge
from tacit.basics.files import FORMAT, read_arrays, write_arrays
from tacit.saved import read_extra
from tacit.testing import problem

TEXTS = [
    "the cat sat on the naïve café mat",
    "a dog ran over the bridge",
    "наука и жизнь of the cat",
    "the dog and the 東京 bridge",
    "über cat ran",
    "bridge over the river",
] * 3
TAGS = Labels.from_sets(
    [["animal", "café"], ["animal"], ["наука"], ["東京", "animal"], ["animal"], []] * 3,
    kind="complete",
)


@pytest.fixture
def model():
    X, Y = problem("complete")
    return LEML(rank=3, max_iter=3, random_state=0).fit(X, Y)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.tacit"


def text_pipeline(**params):
    vectoriser = TfidfVectorizer(**params)
    estimator = LEML(rank=3, reg=0.1, max_iter=3, random_state=0)
    return Pipeline([("words", vectoriser), ("leml", estimator)]).fit(TEXTS, TAGS)


def kernel_pipeline(sparse=False, **params):
    X, Y = problem("complete")
    features = KernelFeatures(**{"gamma": 0.7, "n_components": 20, "random_state": 0, **params})
    estimator = LEML(rank=3, max_iter=3, normalize=None, random_state=0)
    return make_pipeline(features, estimator).fit(X if sparse else X.toarray(), Y)


# ---- what was written comes back


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"ngram_range": (1, 2)},
        {"use_idf": False},
        {"smooth_idf": False, "sublinear_tf": True, "norm": "l1"},
        {"stop_words": ["the", "über"]},
        {"analyzer": "char_wb", "ngram_range": (2, 3), "lowercase": False},
        {"dtype": np.float32},
        {"token_pattern": r"(?u)\b\w+\b", "strip_accents": "unicode", "binary": True},
    ],
    ids=str,
)
def test_a_text_pipeline_gives_the_same_answers_after_a_round_trip(path, params):
    pipeline = text_pipeline(**params)
    save(pipeline, path)
    loaded = load(path)
    fresh = [*TEXTS, "", "cat CAT über 東京", "words never seen"]
    for before, after in zip(pipeline[-1].top_k(pipeline[0].transform(fresh), 3),
                             loaded[-1].top_k(loaded[0].transform(fresh), 3)):  # fmt: skip
        assert_array_equal(after, before)
    assert_array_equal(loaded.predict_proba(fresh), pipeline.predict_proba(fresh))
    assert_array_equal(loaded[-1].classes_, TAGS.classes)


def test_a_vectoriser_that_decodes_bytes_decodes_them_the_same_after_a_round_trip(path):
    encoded = [text.encode("utf-16") for text in TEXTS]
    pipeline = text_pipeline().set_params(words__encoding="utf-16").fit(encoded, TAGS)
    save(pipeline, path)
    assert_array_equal(load(path).predict_proba(encoded), pipeline.predict_proba(encoded))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"penalty": "frobenius"},
        {"approximation": "nystroem"},
        {"approximation": "nystroem", "penalty": "frobenius"},
        {"approximation": "fourier"},
        {"kernel": "laplacian", "gamma": None},
        {"kernel": "polynomial", "degree": np.int64(2), "coef0": np.float32(0.5)},
        {"random_state": np.random.RandomState(0), "approximation": "nystroem"},
    ],
    ids=str,
)
def test_a_kernel_pipeline_gives_the_same_answers_after_a_round_trip(path, params, sparse):
    pipeline = kernel_pipeline(sparse, **params)
    save(pipeline, path)
    loaded = load(path)
    fresh = problem("complete", seed=1)[0]
    for X in (fresh, fresh.toarray()):
        assert_array_equal(loaded.predict_proba(X), pipeline.predict_proba(X))
    assert_array_equal(loaded[:-1].get_feature_names_out(), pipeline[:-1].get_feature_names_out())
    assert type(loaded[0].landmarks_) is type(pipeline[0].landmarks_)
    kept = {name: value for name, value in pipeline[0].get_params().items() if value is not None}
    if not isinstance(pipeline[0].random_state, int):
        del kept["random_state"]
    assert {name: loaded[0].get_params()[name] for name in kept} == kept
    assert loaded[0].approximation_ == pipeline[0].approximation_


def test_a_chi2_kernel_and_float32_come_back(path):
    X, Y = problem("complete")
    X = X.toarray().astype(np.float32)
    pipeline = make_pipeline(KernelFeatures("chi2"), Ridge()).fit(X, Y)
    save(pipeline, path)
    assert load(path)[0].transform(X).dtype == np.float32
    assert_array_equal(load(path).decision_function(X), pipeline.decision_function(X))


def test_a_pipeline_of_text_and_kernel_gives_the_same_answers_after_a_round_trip(path):
    pipeline = make_pipeline(TfidfVectorizer(), KernelFeatures(), Ridge()).fit(TEXTS, TAGS)
    save(pipeline, path)
    loaded = load(path)
    fresh = [*TEXTS, "", "cat CAT über 東京"]
    assert_array_equal(loaded.predict_proba(fresh), pipeline.predict_proba(fresh))
    assert [type(step) for _, step in loaded.steps] == [TfidfVectorizer, KernelFeatures, Ridge]


def test_the_names_of_features_before_a_kernel_come_back(path):
    pd = pytest.importorskip("pandas")
    X, Y = problem("complete")
    frame = pd.DataFrame(X.toarray(), columns=[f"größe {j}" for j in range(X.shape[1])])
    pipeline = make_pipeline(KernelFeatures(), Ridge()).fit(frame, Y)
    save(pipeline, path)
    assert_array_equal(load(path).decision_function(frame), pipeline.decision_function(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        load(path).predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize("rank", [np.int64(3), np.int32(3), 3])
def test_parameters_that_are_numpy_scalars_come_back(path, rank):
    X, Y = problem("complete")
    LEML(rank=rank, reg=np.float32(0.5), tol=np.float64(0), max_iter=2).fit(X, Y).save(path)
    params = load(path).get_params()
    assert (params["rank"], params["reg"], params["tol"]) == (3, 0.5, 0)


def test_a_random_state_that_is_no_number_is_left_out(path):
    X, Y = problem("complete")
    LEML(rank=2, max_iter=2, random_state=np.random.RandomState(0)).fit(X, Y).save(path)
    assert load(path).random_state is None


def test_the_history_and_the_names_of_features_come_back(path):
    pd = pytest.importorskip("pandas")
    X, Y = problem("masked")
    frame = pd.DataFrame(X.toarray(), columns=[f"größe {j}" for j in range(X.shape[1])])
    model = LEML(rank=2, max_iter=3, tol=0).fit(frame, Y)
    model.save(path)
    loaded = load(path)
    assert loaded.history_ == model.history_
    assert loaded.n_iter_ == model.n_iter_ == 3
    assert_array_equal(loaded.feature_names_in_, frame.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[frame.columns[::-1]])
    assert_array_equal(loaded.decision_function(frame), model.decision_function(frame))


def test_a_loaded_model_can_be_fitted_and_saved_again(path, model):
    X, Y = problem("complete")
    model.save(path)
    load(path).fit(X, Y).save(path)
    assert_array_equal(load(path).decision_function(X), model.decision_function(X))


def test_extra_comes_back_and_is_empty_where_none_was_given(path, model):
    save(model, path, extra={"text": "größe", "n": [1, None]})
    assert read_extra(path) == {"text": "größe", "n": [1, None]}
    save(model, path)
    assert read_extra(path) == {}


# ---- what cannot be saved


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"tokenizer": str.split, "token_pattern": None}, "a tokenizer of its own"),
        ({"preprocessor": str.lower}, "a preprocessor of its own"),
        ({"analyzer": str.split}, "cannot be written as JSON"),
    ],
)
def test_a_vectoriser_that_holds_code_cannot_be_saved(path, params, message):
    with pytest.raises(ValueError, match=message):
        save(text_pipeline(**params), path)
    assert not path.exists()


def test_a_vectoriser_that_opens_files_cannot_be_saved(path):
    pipeline = text_pipeline().set_params(words__input="filename")
    with pytest.raises(ValueError, match='input="content"'):
        save(pipeline, path)


class OtherVectorizer(TfidfVectorizer):
    def build_analyzer(self):
        return str.split


@pytest.mark.parametrize(
    "other",
    [
        LogisticRegression(),
        Pipeline([("words", OtherVectorizer()), ("leml", LEML())]),
        Pipeline([("a", TfidfVectorizer()), ("b", TfidfVectorizer()), ("leml", LEML())]),
        Pipeline([("words", TfidfVectorizer()), ("leml", LogisticRegression())]),
        make_pipeline(KernelFeatures(), TfidfVectorizer(), LEML()),
        make_pipeline(KernelFeatures(), KernelFeatures(), LEML()),
    ],
    ids=lambda m: type(m).__name__,
)
def test_what_could_not_be_loaded_is_not_saved(path, other):
    with pytest.raises(ValueError, match="must be a tacit estimator or a Pipeline"):
        save(other, path)
    assert not path.exists()


@pytest.mark.parametrize("estimator", [LEML(), Ridge(), Popularity()])
def test_an_estimator_never_fitted_is_not_saved(path, estimator):
    with pytest.raises(NotFittedError):
        estimator.save(path)
    assert not path.exists()


# ---- damaged and hostile files


def refused(path):
    """The one sentence that `load` refuses `path` with."""
    with pytest.raises(ValueError, match="tacit") as caught:
        load(path)
    assert type(caught.value) is ValueError
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["model", "text", "kernel"])
def test_a_truncated_file_is_refused_wherever_it_was_cut(path, model, kind):
    made = {"model": lambda: model, "text": text_pipeline, "kernel": kernel_pipeline}
    save(made[kind](), path)
    whole = path.read_bytes()
    for length in [*range(20), *range(20, len(whole), 37), len(whole) - 1]:
        path.write_bytes(whole[:length])
        refused(path)


_SAVED = {}


def saved_bytes(text):
    """One saved model, made once: Hypothesis would fit it anew for every example."""
    if text not in _SAVED:
        X, Y = problem("complete")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.tacit"
            estimator = LEML(rank=3, max_iter=2, random_state=0)
            save(text_pipeline() if text else estimator.fit(X, Y), path)
            _SAVED[text] = path.read_bytes(), load(path)
    return _SAVED[text]


@settings(max_examples=300, deadline=None)
@given(text=st.booleans(), where=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255))
@example(text=False, where=0.0, mask=255)
@example(text=False, where=0.999, mask=1)
def test_a_file_with_a_flipped_byte_is_refused_or_is_the_very_same_model(text, where, mask):
    whole, model = saved_bytes(text)
    flipped = bytearray(whole)
    flipped[int(where * len(whole))] ^= mask
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tacit"
        path.write_bytes(flipped)
        try:
            loaded = load(path)
        except ValueError as error:
            if str(path) not in str(error):
                raise AssertionError(f"the sentence names no file: {error}") from None
            return
    last = lambda m: m[-1] if text else m
    assert last(loaded).get_params() == last(model).get_params()
    assert_array_equal(last(loaded).model_.W, last(model).model_.W)
    assert_array_equal(last(loaded).model_.H, last(model).model_.H)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tacit"
        path.write_bytes(content)
        refused(path)


class RunsCode:
    def __reduce__(self):
        return os.system, ("exit 1",)


def foreign(path, metadata):
    safetensors.numpy.save_file({"W": np.zeros((2, 2))}, path, metadata=metadata)


def header_of_length(length):
    return lambda path: path.write_bytes(struct.pack("<Q", length) + b"{}" * 8)


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(lambda path: path.write_bytes(pickle.dumps(RunsCode())), id="pickle"),
        pytest.param(lambda path: path.write_text("id,text\n1,a\n"), id="csv"),
        pytest.param(lambda path: foreign(path, None), id="other program"),
        pytest.param(lambda path: foreign(path, {"format": "pt"}), id="other metadata"),
        pytest.param(lambda path: foreign(path, {"tacit": "{"}), id="no JSON"),
        pytest.param(lambda path: foreign(path, {"tacit": "[1]"}), id="a list"),
        pytest.param(lambda path: foreign(path, {"tacit": "[" * 10**5}), id="deep JSON"),
        pytest.param(lambda path: foreign(path, {"tacit": '{"format": 1}'}), id="no checksum"),
        pytest.param(header_of_length(16), id="header not JSON"),
        pytest.param(header_of_length(2**31), id="header of 2 GiB"),
        pytest.param(header_of_length(2**64 - 1), id="header of 16 EiB"),
    ],
)
def test_a_file_of_another_kind_is_refused(path, write):
    write(path)
    assert "damaged or was not written by tacit" in refused(path) or "checksum" in refused(path)


def test_float_types_that_numpy_does_not_have_are_refused(path, model):
    for name in ("F8_E4M3", "F8_E5M2", "BF16"):
        numbers = 1 if name.startswith("F8") else 2
        shape, size = [16, 3], 48 * numbers
        header = {
            "__metadata__": {"tacit": json.dumps({"format": FORMAT})},
            "W": {"dtype": name, "shape": shape, "data_offsets": [0, size]},
        }
        encoded = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + bytes(size))
        refused(path)


def test_a_missing_file_says_so(path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*model\.tacit"):
        load(path)


def test_a_file_of_a_later_format_says_to_update(path, model):
    model.save(path)
    header, arrays = read_arrays(path)
    write_arrays(path, {**header, "format": 99}, arrays)
    assert "format 99" in refused(path)
    assert "update tacit" in refused(path)


def rewritten(path, change):
    """The file with its header and arrays changed, and everything else in order."""
    header, arrays = read_arrays(path)
    change(header, arrays)
    write_arrays(path, header, arrays)


def sets(**values):
    return lambda header, arrays: header.update(values)


def params(**values):
    return lambda header, arrays: header["params"].update(values)


def array(name, change):
    def apply(header, arrays):
        arrays[name] = change(arrays[name])

    return apply


def no_rank(header, arrays):
    """No entries at all, but 10¹² labels: 7 TiB of class numbers for a file of 1 KiB."""
    arrays.update(W=np.zeros((16, 0)), H=np.zeros((10**12, 0)))
    header.update(n_labels=10**12, names={})


HOSTILE = {
    "class os.system": sets(**{"class": "os.system"}),
    "class BaseEstimator": sets(**{"class": "BaseEstimator"}),
    "class MultiLabelEstimator": sets(**{"class": "MultiLabelEstimator"}),
    "class Pipeline": sets(**{"class": "Pipeline"}),
    "class a list": sets(**{"class": ["LEML"]}),
    "no class": lambda header, arrays: header.pop("class"),
    "unknown parameter": params(code="print()"),
    "rank 0": params(rank=0),
    "reg NaN": params(reg=float("nan")),
    "loss unknown": params(loss="__import__('os')"),
    "device a number": params(device=1),
    "fit_intercept a string": params(fit_intercept="yes"),
    "params a list": sets(params=[1, 2]),
    "params absent": lambda header, arrays: header.pop("params"),
    "W of another shape": array("W", lambda W: W[:-1]),
    "H of another shape": array("H", lambda H: H[:, :-1]),
    "H of one dimension": array("H", lambda H: H[:, 0]),
    "W of one dimension": array("W", lambda W: W[:, 0]),
    "W of no dimension": array("W", lambda W: W[0, 0]),
    "W of integers": array("W", lambda W: W.astype(np.int64)),
    "H of half floats": array("H", lambda H: H.astype(np.float16)),
    "W absent": lambda header, arrays: arrays.pop("W"),
    "H absent": lambda header, arrays: arrays.pop("H"),
    "no rank": no_rank,
    "n_features NaN": sets(n_features=float("nan")),
    "n_features infinite": sets(n_features=float("inf")),
    "n_features not whole": sets(n_features=15.7),
    "n_features negative": sets(n_features=-1),
    "n_labels a string": sets(n_labels="8"),
    "n_labels null": sets(n_labels=None),
    "n_labels absent": lambda header, arrays: header.pop("n_labels"),
    "n_labels huge": sets(n_labels=10**30),
    "names a list": sets(names=["classes_"]),
    "names absent": lambda header, arrays: header.pop("names"),
    "class names not strings": sets(names={"classes_": list(range(8))}),
    "class names nested": sets(names={"classes_": [["a", "b"]] * 8}),
    "class names too few": sets(names={"classes_": ["a"]}),
    "class names a string": sets(names={"classes_": "abcdefgh"}),
    "class names a number": sets(names={"classes_": 8}),
    "feature names too many": sets(names={"feature_names_in_": ["a"] * 16}),
    "history of words": sets(history=["low", "lower"]),
    "history a number": sets(history=3),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_header_that_does_not_hold_together_is_refused(path, model, change):
    model.save(path)
    rewritten(path, change)
    assert "does not hold a model of this tacit" in refused(path)


def text_set(**values):
    return lambda header, arrays: header["text"].update(values)


def words(change):
    def apply(header, arrays):
        old = json.loads(arrays["text.vocabulary"].tobytes())
        arrays["text.vocabulary"] = np.frombuffer(json.dumps(change(old)).encode(), np.uint8)

    return apply


def bytes_of_vocabulary(content):
    return array("text.vocabulary", lambda _: np.frombuffer(content, np.uint8))


HOSTILE_TEXT = {
    "opens files": text_set(input="filename"),
    "a parameter absent": lambda header, arrays: header["text"].pop("norm"),
    "tokenizer": text_set(tokenizer="os.system"),
    "analyzer unknown": text_set(analyzer="os.system"),
    "norm unknown": text_set(norm="l3"),
    "a bad pattern": text_set(token_pattern="("),
    "ngrams of words": text_set(ngram_range=["a", "b"]),
    "three ngrams": text_set(ngram_range=[1, 2, 3]),
    "ngrams reversed": text_set(ngram_range=[2, 1]),
    "ngrams a number": text_set(ngram_range=1),
    "dtype object": text_set(dtype="object"),
    "dtype a list": text_set(dtype=["f4"]),
    "stop words unknown": text_set(stop_words="klingon"),
    "text a list": sets(text=[1]),
    "text true": sets(text=True),
    "words missing": words(lambda w: w[:-1]),
    "words repeated": words(lambda w: [w[0], *w[:-1]]),
    "words numbers": words(lambda w: list(range(len(w)))),
    "words a mapping": words(lambda w: dict.fromkeys(w, 0)),
    "words no JSON": bytes_of_vocabulary(b"[1, 2"),
    "words deep": bytes_of_vocabulary(b"[" * 10**5),
    "words no text": bytes_of_vocabulary(b"\xff\xfe\xff"),
    "vocabulary absent": lambda header, arrays: arrays.pop("text.vocabulary"),
    "idf absent": lambda header, arrays: arrays.pop("text.idf"),
    "idf too short": array("text.idf", lambda idf: idf[:-1]),
    "idf a column": array("text.idf", lambda idf: idf[:, None]),
    "idf integers": array("text.idf", lambda idf: idf.astype(np.int64)),
}


@pytest.mark.parametrize("change", HOSTILE_TEXT.values(), ids=HOSTILE_TEXT)
def test_a_vectoriser_that_does_not_hold_together_is_refused(path, change):
    save(text_pipeline(), path)
    rewritten(path, change)
    assert "does not hold a model of this tacit" in refused(path)


def kernel_set(**values):
    return lambda header, arrays: header["kernel"].update(values)


def kernel_params(**values):
    return lambda header, arrays: header["kernel"]["params"].update(values)


def entry(name, where, value):
    """One number of an array replaced."""

    def change(old):
        new = old.copy()
        new[where] = value
        return new

    return array(f"kernel.{name}", change)


HOSTILE_KERNEL = {
    "kernel unknown": kernel_params(kernel="os.system"),
    "kernel chi2 of sparse rows": kernel_params(kernel="chi2"),
    "unknown parameter": kernel_params(code="print()"),
    "another penalty": kernel_params(penalty="frobenius"),
    "degree a word": kernel_params(degree="three"),
    "params absent": lambda header, arrays: header["kernel"].pop("params"),
    "kernel a list": sets(kernel=[1]),
    "kernel null": sets(kernel=None),
    "gamma NaN": kernel_set(gamma=float("nan")),
    "gamma null": kernel_set(gamma=None),
    "approximation fourier": kernel_set(approximation="fourier"),
    "approximation unknown": kernel_set(approximation=["exact"]),
    "n_features too few": kernel_set(n_features=3),
    "n_features huge": kernel_set(n_features=10**30),
    "n_features a word": kernel_set(n_features="15"),
    "names too few": kernel_set(names=["a"]),
    "names numbers": kernel_set(names=list(range(15))),
    "names a word": kernel_set(names="a" * 15),
    "names absent": lambda header, arrays: header["kernel"].pop("names"),
    "projection absent": lambda header, arrays: arrays.pop("kernel.projection"),
    "projection too narrow": array("kernel.projection", lambda P: P[:, :-1]),
    "projection too short": array("kernel.projection", lambda P: P[:-1]),
    "projection of integers": array("kernel.projection", lambda P: P.astype(np.int64)),
    "projection of NaN": entry("projection", (0, 0), np.nan),
    "frequencies as well": lambda header, arrays: arrays.update(
        {"kernel.frequencies": np.zeros((15, 20))}
    ),
}
HOSTILE_SPARSE = {
    "index too large": entry("indices", 0, 10**6),
    "index negative": entry("indices", 0, -1),
    "index of floats": array("kernel.indices", lambda i: i.astype(np.float64)),
    "indices out of order": array("kernel.indices", lambda i: i[::-1]),
    "pointer not rising": entry("indptr", 1, 10**6),
    "pointer too short": array("kernel.indptr", lambda p: p[:-1]),
    "pointer of no dimension": array("kernel.indptr", lambda p: p[0]),
    "pointer empty": array("kernel.indptr", lambda p: p[:0]),
    "data infinite": entry("data", 0, np.inf),
    "data too short": array("kernel.data", lambda d: d[:-1]),
    "data of integers": array("kernel.data", lambda d: d.astype(np.int64)),
    "data a column": array("kernel.data", lambda d: d[:, None]),
    "indices absent": lambda header, arrays: arrays.pop("kernel.indices"),
}
HOSTILE_DENSE = {
    "n_features too many": kernel_set(n_features=16),
    "landmarks of one dimension": array("kernel.landmarks", lambda Z: Z[0]),
    "landmarks of no dimension": array("kernel.landmarks", lambda Z: Z[0, 0]),
    "landmarks too few": array("kernel.landmarks", lambda Z: Z[:-1]),
    "landmarks of NaN": entry("landmarks", (0, 0), np.nan),
    "landmarks of half floats": array("kernel.landmarks", lambda Z: Z.astype(np.float16)),
    "landmarks absent": lambda header, arrays: arrays.pop("kernel.landmarks"),
    "no landmarks": lambda header, arrays: arrays.update(
        {"kernel.landmarks": np.zeros((0, 15)), "kernel.projection": np.zeros((0, 20))}
    ),
}


@pytest.mark.parametrize(
    ("sparse", "change"),
    [
        pytest.param(sparse, change, id=name)
        for cases, sparse in ((HOSTILE_KERNEL | HOSTILE_SPARSE, True), (HOSTILE_DENSE, False))
        for name, change in cases.items()
    ],
)
def test_a_kernel_that_does_not_hold_together_is_refused(path, sparse, change):
    save(kernel_pipeline(sparse, approximation="nystroem"), path)
    rewritten(path, change)
    assert "does not hold a model of this tacit" in refused(path)


@pytest.mark.parametrize(
    "change",
    [
        array("kernel.frequencies", lambda A: A[:-1]),
        array("kernel.offsets", lambda A: A[:-1]),
        kernel_params(kernel="laplacian"),
        kernel_set(approximation="exact"),
    ],
)
def test_frequencies_that_do_not_hold_together_are_refused(path, change):
    save(kernel_pipeline(approximation="fourier"), path)
    rewritten(path, change)
    assert "does not hold a model of this tacit" in refused(path)


def test_landmarks_that_are_no_histograms_are_refused(path):
    X, Y = problem("complete")
    save(make_pipeline(KernelFeatures("chi2"), Ridge()).fit(X.toarray(), Y), path)
    rewritten(path, entry("landmarks", (0, 0), -1.0))
    assert "histograms" in refused(path)


def test_an_extra_that_is_no_object_is_refused(path, model):
    model.save(path)
    rewritten(path, sets(extra=[1]))
    with pytest.raises(ValueError, match=r"model\.tacit keeps an extra that is not a JSON object"):
        read_extra(path)


@pytest.mark.parametrize("pipeline", [text_pipeline, kernel_pipeline])
def test_loading_unpickles_nothing(path, monkeypatch, pipeline):
    import builtins

    save(pipeline(), path)

    def never(*args, **kwargs):
        raise AssertionError("loading a model ran code it must not run")

    for module, name in [(pickle, "Unpickler"), (pickle, "loads"), (pickle, "load")]:
        monkeypatch.setattr(module, name, never)
    joblib = pytest.importorskip("joblib")
    monkeypatch.setattr(joblib, "load", never)
    monkeypatch.setattr(np, "load", never)
    monkeypatch.setattr(builtins, "eval", never)
    monkeypatch.setattr(builtins, "exec", never)
    loaded = load(path)
    monkeypatch.undo()
    assert loaded[-1].n_features_in_ > 0


# ---- a save that fails


def test_a_save_that_fails_half_way_leaves_the_old_file_and_nothing_else(path, model, monkeypatch):
    model.save(path)
    before = path.read_bytes()

    def full_disk(arrays, target, metadata):
        Path(target).write_bytes(b"half of a fi")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors.numpy, "save_file", full_disk)
    with pytest.raises(OSError, match="No space left"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_save_interrupted_before_the_rename_leaves_the_old_file(path, model, monkeypatch):
    model.save(path)
    before = path.read_bytes()

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(k=3).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_is_an_os_error_and_leaves_nothing(tmp_path, model):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OSError, match="file"):
        model.save(tmp_path / "file" / "model.tacit")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_an_os_error_and_leaves_nothing(tmp_path, model):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError):
            model.save(tmp_path / "model.tacit")
        assert list(tmp_path.iterdir()) == []
    finally:
        tmp_path.chmod(0o700)


def test_a_saved_file_is_as_readable_as_any_other(path, model):
    model.save(path)
    other = path.with_name("other")
    other.write_text("")
    assert path.stat().st_mode == other.stat().st_mode
