"""Checks of constructor parameters, declared on the class and run once, by `fit`."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

__all__ = ["Check", "a_bool", "a_float", "an_int", "check_params", "one_of", "or_auto"]

Check = tuple[Callable[[Any], bool], str]
"""A test of a value, and the words for what it accepts."""


def an_int(*, at_least: int) -> Check:
    return (
        lambda v: isinstance(v, Integral) and not isinstance(v, bool) and int(v) >= at_least,
        f"an int of at least {at_least}",
    )


def a_float(
    *, above: float | None = None, at_least: float | None = None, at_most: float | None = None
) -> Check:
    number = lambda v: isinstance(v, Real) and not isinstance(v, bool) and v < float("inf")
    if above is not None and at_most is not None:
        return lambda v: number(v) and above < v <= at_most, f"above {above} and at most {at_most}"
    if above is not None:
        return lambda v: number(v) and v > above, f"a finite number above {above}"
    return lambda v: number(v) and v >= at_least, f"a finite number of at least {at_least}"


def or_auto(check: Check) -> Check:
    holds, wanted = check
    return lambda v: (isinstance(v, str) and v == "auto") or holds(v), f'{wanted}, or "auto"'


def a_bool() -> Check:
    return lambda v: isinstance(v, bool), "True or False"


def one_of(*values: Any) -> Check:
    return (
        lambda v: any(v is w or (type(v) is type(w) and v == w) for w in values),
        "one of " + ", ".join(repr(v) for v in values),
    )


def check_params(estimator: Any) -> None:
    """Raise one sentence for the first parameter of `estimator` that its class does not accept."""
    for name, (holds, wanted) in estimator._checks.items():
        value = getattr(estimator, name)
        if not holds(value):
            raise ValueError(f"{type(estimator).__name__}: {name} must be {wanted}; got {value!r}")
