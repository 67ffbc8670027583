"""Less noise in a difference of means, by what was known of each unit before it began (CUPED)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Adjusted", "cuped"]

_NOTHING = 1e-12  # a spread below it, relative to the values, is rounding


@dataclass(frozen=True)
class Adjusted:
    """Units' values, less what their past explains.

    Parameters
    ----------
    control, variant : array of float
        In the order given.
    theta : float
        How much a value rises with the covariate, pooled within the variants.
    reduction : float or None
        Share of the difference's variance that is gone. None: a side has fewer than two units, or
        the values have no spread.
    known : int
        Units with a covariate.
    missing : int
        Units without; they keep a level of their own.
    """

    control: NDArray[Any]
    variant: NDArray[Any]
    theta: float
    reduction: float | None
    known: int
    missing: int


def cuped(
    control: NDArray[Any],
    variant: NDArray[Any],
    before_control: Sequence[float | None],
    before_variant: Sequence[float | None],
) -> Adjusted | None:
    """Adjust the values of units by a covariate from before the experiment.

    Parameters
    ----------
    control, variant : array of float
        One number a unit, as `misslink.stats.unit_values` gives them.
    before_control, before_variant : sequence of float or None
        The covariate of each; None: nothing is known of that unit.

    Returns
    -------
    Adjusted or None
        The difference of the adjusted means is the coefficient of the variant in the least-squares
        regression of the values on variant, covariate and, where it is missing for some, a
        yes-or-no column for that. None: the covariate is known of none or the same for all.

    Raises
    ------
    ValueError
        The lengths differ, or a covariate is not finite.

    References
    ----------
    Deng, Xu, Kohavi and Walker (2013), Improving the sensitivity of online controlled experiments
    by utilizing pre-experiment data.
    """
    import numpy as np

    if len(control) != len(before_control) or len(variant) != len(before_variant):
        raise ValueError("values and covariates are not of the same units")
    given = [*before_control, *before_variant]
    past = np.array([np.nan if value is None else float(value) for value in given])
    is_known = np.array([value is not None for value in given], dtype=bool)
    known = past[is_known]
    if not np.isfinite(known).all():
        raise ValueError("a covariate is a finite number; a missing one is None")
    if not len(known) or float(np.ptp(known)) <= _NOTHING * float(np.abs(known).max()):
        return None
    columns = [np.where(is_known, past, known.mean()) - known.mean()]
    if not is_known.all():
        columns.append((~is_known).astype(np.float64))
    design = np.column_stack(columns)
    values = np.concatenate([control, variant])
    slopes = _within(design, values, len(control))
    fitted = values - (design - design.mean(axis=0)) @ slopes
    first, second = fitted[: len(control)], fitted[len(control) :]
    return Adjusted(
        control=first,
        variant=second,
        theta=float(slopes[0]),
        reduction=_reduction((control, variant), (first, second)),
        known=int(is_known.sum()),
        missing=int((~is_known).sum()),
    )


def _within(design: NDArray[Any], values: NDArray[Any], split: int) -> NDArray[Any]:
    """Slopes within the variants, so that the treatment itself does not enter them."""
    import numpy as np

    inner, outer = design.copy(), values.copy()
    for side in (slice(None, split), slice(split, None)):
        if len(outer[side]):
            inner[side] -= inner[side].mean(axis=0)
            outer[side] -= outer[side].mean()
    slopes: NDArray[Any] = np.linalg.lstsq(inner, outer, rcond=None)[0]
    return slopes


def _reduction(
    before: tuple[NDArray[Any], NDArray[Any]], after: tuple[NDArray[Any], NDArray[Any]]
) -> float | None:
    if min(map(len, before)) < 2:  # noqa: PLR2004 -- one unit has no spread
        return None
    was, now = (sum(float(v.var(ddof=1)) / len(v) for v in pair) for pair in (before, after))
    return 1 - now / was if was else None
