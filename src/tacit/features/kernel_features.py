"""Kernel features: what makes every linear method a kernel method.

A kernel method is a linear method on features Φ of the rows of X, so it needs no code of its own,
only a transformer in front. With landmarks Z (rows of the training data) and K = k(Z, Z), the
features of a row x are, by `penalty`,

    "rkhs"        Φ(x) = k(x, Z) U S^(-1/2),  K = U S Uᵀ,    so that Φ(Z) Φ(Z)ᵀ = K,             (1)
    "frobenius"   Φ(x) = k(x, Z), the Gram column.                                               (2)

A linear method that penalises ½ λ ‖W‖² then penalises, with W = Φ(Z)ᵀ α under (1), the RKHS norm
½ λ tr(αᵀKα) of its scores k(x, Z) α, which is kernel ridge regression for the squared loss. Under
(2), ‖W‖² is no such norm; it is what the LEML paper prints.

With all training rows as landmarks, (1) is exact; with some of them it is the Nyström method (where
U S^(-1/2) is K^(-1/2) up to a rotation, which no penalty here sees). Random Fourier features need
no landmarks: for the Gaussian kernel, with ω ~ N(0, 2γI) and b ~ U(0, 2π),

    Φ(x) = √(2/D) cos(xᵀω + b),    E[Φ(x) Φ(y)ᵀ] = exp(-γ‖x - y‖²).                              (3)

With m landmarks, fitting costs O(m³) and a row m kernel values and O(m²).

References: H.-F. Yu, P. Jain, P. Kar and I. S. Dhillon. Large-scale multi-label learning with
missing labels. ICML 2014. C. Williams and M. Seeger. Using the Nyström method to speed up kernel
machines. NIPS 2000. A. Rahimi and B. Recht. Random features for large-scale kernel machines.
NIPS 2007.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from tacit.basics.params import a_float, an_int, check_params, one_of
from tacit.labels import check_dense

__all__ = ["KernelFeatures"]

_EXACT_ROWS = 2048  # up to here the O(m³) of the eigenvectors is a few seconds
_BLOCK_ENTRIES = 2**23  # kernel values laid out at a time: 64 MiB in float64
# Eigenvalues below this share of the largest are rounding: divided by, they would be all one sees.
_SMALLEST = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-6}
_FLOATS = [np.float64, np.float32]
_CSR = ("data", "indices", "indptr")


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features on which a linear method is a kernel method.

    Put it before LEML, Ridge or any other method in a pipeline, and turn their `normalize` off.

    Parameters
    ----------
    kernel : str, default="rbf"
        "rbf" exp(-γ‖x - y‖²), "laplacian" exp(-γ‖x - y‖₁), "polynomial" (γ xᵀy + coef0)^degree,
        "cosine", "linear" or, for dense histograms, "chi2": the positive definite ones of
        scikit-learn's `pairwise_kernels`.
    gamma : float or None, default=None
        The γ of the kernel. None is scikit-learn's choice, 1 / n_features (chi2: 1), which suits
        features of unit variance. A better start for "rbf" is one over the median of ‖x - y‖²
        (about 0.5 for rows of unit length, such as tf-idf); then try ten times more and less.
    degree, coef0 : int, float, default=3, 1.0
        Of the polynomial kernel.
    penalty : {"rkhs", "frobenius"}, default="rkhs"
        Whether a method's ‖W‖² is the RKHS norm (1) or that of the coefficients of the Gram
        columns (2).
    approximation : {"auto", "exact", "nystroem", "fourier"}, default="auto"
        All training rows as landmarks; `n_components` of them drawn at random; or (3), for "rbf"
        with the RKHS penalty only. "auto" is exact up to 2,048 rows, and beyond that it is
        NOT exact but "nystroem": `approximation_` says which.
    n_components : int, default=1024
        Landmarks of "nystroem" (at most the number of rows), features of "fourier".
    random_state : int, RandomState or None, default=None
        Draws the landmarks or frequencies; not used by "exact".

    Attributes
    ----------
    approximation_ : {"exact", "nystroem", "fourier"}
        What was done.
    gamma_ : float
        The γ used.
    landmarks_ : array or csr_array of shape (n_landmarks, n_features), or None
        Z, sparse if X was; None for "fourier".
    projection_ : ndarray of shape (n_landmarks, n_features_out), or None
        U S^(-1/2) of (1), largest eigenvalues first, without those that are rounding.
    frequencies_, offsets_ : ndarrays of shapes (n_features, n_components), (n_components,), or None
        ω and b of (3).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from tacit.baselines import Ridge
    >>> X, Y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([[0], [1], [1], [0]])
    >>> xor = make_pipeline(KernelFeatures("rbf", gamma=1.0), Ridge(reg=0.1, normalize=None))
    >>> xor.fit(X, Y).predict(X).toarray().ravel()
    array([0, 1, 1, 0], dtype=int8)
    >>> xor[0].approximation_
    'exact'
    """

    _checks = {
        "kernel": one_of("rbf", "laplacian", "polynomial", "cosine", "linear", "chi2"),
        "gamma": (
            lambda v: v is None or a_float(above=0)[0](v),
            "None or a finite number above 0",
        ),
        "degree": an_int(at_least=1),
        "coef0": a_float(at_least=0),
        "penalty": one_of("rkhs", "frobenius"),
        "approximation": one_of("auto", "exact", "nystroem", "fourier"),
        "n_components": an_int(at_least=1),
    }

    landmarks_: Any
    projection_: np.ndarray | None
    frequencies_: Any
    offsets_: Any

    def __init__(
        self,
        kernel: Literal["rbf", "laplacian", "polynomial", "cosine", "linear", "chi2"] = "rbf",
        *,
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        penalty: Literal["rkhs", "frobenius"] = "rkhs",
        approximation: Literal["auto", "exact", "nystroem", "fourier"] = "auto",
        n_components: int = 1024,
        random_state=None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.penalty = penalty
        self.approximation = approximation
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the landmarks among the rows of X, or draw the frequencies; y is not used."""
        check_params(self)
        if self.approximation == "fourier":
            self._check_fourier()
        X = self._validated(X, reset=True)
        n_samples, n_features = X.shape
        rng = check_random_state(self.random_state)
        default = 1.0 if self.kernel == "chi2" else 1 / n_features
        self.gamma_ = default if self.gamma is None else float(self.gamma)
        self.approximation_ = self.approximation
        if self.approximation == "auto":
            self.approximation_ = "exact" if n_samples <= _EXACT_ROWS else "nystroem"
        self.landmarks_ = self.projection_ = self.frequencies_ = self.offsets_ = None
        if self.approximation_ == "fourier":
            omega = np.sqrt(2 * self.gamma_) * rng.normal(size=(n_features, self.n_components))
            b = rng.uniform(0, 2 * np.pi, size=self.n_components)
            self.frequencies_, self.offsets_ = omega.astype(X.dtype), b.astype(X.dtype)
            return self
        rows = np.arange(n_samples)
        if self.approximation_ == "nystroem":
            rows = rng.permutation(n_samples)[: self.n_components]
        Z = X[rows]  # a copy: what the caller does to X later does not reach it
        if sp.issparse(Z):
            Z.sum_duplicates()
        self.landmarks_ = Z if sp.issparse(Z) else np.ascontiguousarray(Z)
        if self.penalty == "rkhs":
            self.projection_ = self._inverse_root()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The features Φ of the rows of X, dense, in the float type of the rows of `fit`."""
        check_is_fitted(self, "approximation_")
        X = self._validated(X, reset=False)
        shape = (X.shape[0], self._n_features_out)
        check_dense(shape, "KernelFeatures.transform", "fewer n_components")
        features = np.empty(shape, self._dtype)
        width = shape[1] if self.landmarks_ is None else self.landmarks_.shape[0]
        size = max(1, _BLOCK_ENTRIES // width)
        for start in range(0, shape[0], size):
            rows = slice(start, start + size)
            features[rows] = self._of(X[rows])
        return features

    def _of(self, X: Any) -> np.ndarray:
        if self.landmarks_ is None:
            return np.sqrt(2 / len(self.offsets_)) * np.cos(X @ self.frequencies_ + self.offsets_)
        gram = self._gram(X, self.landmarks_)
        return gram if self.projection_ is None else gram @ self.projection_

    def _gram(self, X: Any, Z: Any) -> np.ndarray:
        if self.kernel == "chi2":  # scikit-learn wants to be able to write, though it does not
            X, Z = (np.require(A, requirements="W") for A in (X, Z))
        params = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        return pairwise_kernels(X, Z, metric=self.kernel, filter_params=True, **params)

    def _inverse_root(self) -> np.ndarray:
        """U S^(-1/2) of (1), in float64 until the end, since it divides by small eigenvalues."""
        m = self.landmarks_.shape[0]
        instead = 'approximation="nystroem" with fewer n_components'
        check_dense((m, m), "KernelFeatures' Gram matrix", instead)
        Z = self.landmarks_.astype(np.float64)
        s, U = np.linalg.eigh(self._gram(Z, Z))
        s, U = s[::-1], U[:, ::-1]
        rank = max(1, np.count_nonzero(s > _SMALLEST[self._dtype] * s[0]))
        s = np.where(s > 0, s, np.inf)  # rows of zeros may have a Gram matrix of zeros
        return np.ascontiguousarray(U[:, :rank] / np.sqrt(s[:rank]), dtype=self._dtype)

    def _validated(self, X: Any, reset: bool) -> Any:
        histograms = self.kernel == "chi2"
        X = validate_data(
            self,
            X,
            accept_sparse=False if histograms else "csr",
            dtype=_FLOATS if reset else self._dtype,
            reset=reset,
        )
        if sp.issparse(X):  # scikit-learn's laplacian kernel wants indices of 32 bits
            index = np.int32 if max(X.nnz, X.shape[1]) < 2**31 else np.int64
            parts = (X.data, X.indices.astype(index), X.indptr.astype(index))
            return sp.csr_array(parts, shape=X.shape)
        if histograms:
            check_non_negative(X, 'KernelFeatures, whose kernel="chi2" wants at least 0 everywhere')
        return X

    def _check_fourier(self) -> None:
        for name, wanted in (("kernel", "rbf"), ("penalty", "rkhs")):
            if (value := getattr(self, name)) != wanted:
                raise ValueError(
                    f'KernelFeatures: approximation="fourier" needs {name}="{wanted}", since it '
                    f'has no Gram columns of any kernel; got "{value}"; use "nystroem"'
                )

    @property
    def _dtype(self) -> np.dtype:
        return (self.frequencies_ if self.landmarks_ is None else self.landmarks_).dtype

    @property
    def _n_features_out(self) -> int:
        if self.landmarks_ is None:
            return len(self.offsets_)
        return (self.landmarks_.T if self.projection_ is None else self.projection_).shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "chi2"
        tags.input_tags.positive_only = self.kernel == "chi2"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def contents(self) -> tuple[dict, dict[str, np.ndarray]]:
        check_is_fitted(self, "approximation_")
        header = {
            "params": {
                name: value.item() if isinstance(value, np.generic) else value
                for name, value in self.get_params().items()
                if value is None or isinstance(value, int | float | str | np.number)
            },
            "n_features": self.n_features_in_,
            "approximation": self.approximation_,
            "gamma": self.gamma_,
            "names": [str(name) for name in getattr(self, "feature_names_in_", ())],
        }
        Z = self.landmarks_
        arrays = {
            "landmarks": None if sp.issparse(Z) else Z,
            **({name: getattr(Z, name) for name in _CSR} if sp.issparse(Z) else {}),
            "projection": self.projection_,
            "frequencies": self.frequencies_,
            "offsets": self.offsets_,
        }
        return header, {name: array for name, array in arrays.items() if array is not None}

    @classmethod
    def restored(cls, header: dict, arrays: dict[str, Any], width: int) -> Self:
        """What `contents` gave, with `width` features out; what does not fit is a ValueError."""
        self = cls(**header["params"])
        check_params(self)
        n_features, names = header["n_features"], header["names"]
        self.gamma_, self.approximation_ = header["gamma"], header["approximation"]
        if not a_float(above=0)[0](self.gamma_) or not an_int(at_least=1)[0](n_features):
            raise ValueError(f"its kernel has γ {self.gamma_!r} and {n_features!r} features")
        if self.approximation_ not in ("exact", "nystroem", "fourier"):
            raise ValueError(f"its kernel has the approximation {self.approximation_!r}")
        if _CSR[0] in arrays:
            arrays["landmarks"] = _csr([arrays.pop(name) for name in _CSR], n_features)
        m = arrays["landmarks"].shape[:1] if "landmarks" in arrays else ()
        if self.approximation_ == "fourier":
            self._check_fourier()
            wanted: dict[str, tuple] = {"frequencies": (n_features, width), "offsets": (width,)}
        elif self.penalty == "frobenius":
            wanted = {"landmarks": (width, n_features)}
        else:
            wanted = {"landmarks": (*m, n_features), "projection": (*m, width)}
        if 0 in m or {name: array.shape for name, array in arrays.items()} != wanted:
            raise ValueError(f"the arrays of its kernel are not {wanted}")
        for array in arrays.values():
            values = array.data if sp.issparse(array) else array
            if values.dtype not in _FLOATS or not np.isfinite(values).all():
                raise ValueError("the arrays of its kernel are not finite numbers")
        Z: Any = arrays.get("landmarks")
        if self.kernel == "chi2" and (sp.issparse(Z) or (Z < 0).any()):
            raise ValueError("the landmarks of its chi2 kernel are not histograms")
        fitting = isinstance(names, list) and len(names) in (0, n_features)
        if not fitting or not all(isinstance(name, str) for name in names):
            raise ValueError(f"the features of its kernel are not {n_features} names")
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = n_features
        for name in ("landmarks", "projection", "frequencies", "offsets"):
            setattr(self, f"{name}_", arrays.get(name))
        return self


def _csr(parts: list[np.ndarray], width: int) -> sp.csr_array:
    """The sparse matrix of these parts, checked: compiled code trusts their indices."""
    data, indices, indptr = parts
    if indices.dtype.kind != "i" or indptr.dtype.kind != "i":
        raise ValueError("the landmarks of its kernel have indices that are not integers")
    Z = sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))
    Z.check_format(full_check=True)
    if not Z.has_canonical_format:
        raise ValueError("the landmarks of its kernel have entries out of order")
    return Z
