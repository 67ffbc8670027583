"""Many means at once, such as those of a metric at every cut-off, each with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from misslink.stats.proportions import critical

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Band", "band"]

_ROUNDING = 1e-9  # an nDCG of 1.0000000000000002 is 1


@dataclass(frozen=True)
class Band:
    """The means of several rows of values, and their intervals.

    Parameters
    ----------
    value, low, high : tuple of float
        One a row; empty where there are no cases.
    n : int
        Cases.
    """

    value: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    n: int


def band(values: NDArray[np.float64], *, level: float = 0.95) -> Band:
    """Mean of each row, with the normal interval of `misslink.stats.mean`.

    Parameters
    ----------
    values : array of float, shape (rows, cases)
        In [0, 1].
    level : float
        Of each interval by itself, in (0, 1).

    Returns
    -------
    Band
        The mean and standard deviation of the Dirichlet-process posterior in which 0 and 1 each
        count as half a case more: what the bootstrap of `misslink.stats.mean` draws from, so that
        a row of equal values has an interval too. The bell curve stands in for 10,000 draws a row.

    Raises
    ------
    ValueError
        A value is not a number in [0, 1].

    References
    ----------
    Ferguson (1973), A Bayesian analysis of some nonparametric problems.

    Examples
    --------
    >>> import numpy as np
    >>> found = band(np.array([[1.0, 0.0, 0.5, 0.5], [1.0, 1.0, 1.0, 1.0]]))
    >>> found.value, found.n
    ((0.5, 1.0), 4)
    """
    import numpy as np

    n = values.shape[1]
    if not n:
        return Band((), (), (), 0)
    if not ((values >= -_ROUNDING) & (values <= 1 + _ROUNDING)).all():
        raise ValueError("the values of a band lie in [0, 1]; leave missing ones out")
    centre = np.clip(values.mean(axis=1), 0, 1)
    middle = (values.sum(axis=1) + 0.5) / (n + 1)
    second = (np.square(values).sum(axis=1) + 0.5) / (n + 1)
    half = critical(level) * np.sqrt(np.maximum(second - middle**2, 0) / (n + 2))
    low = np.clip(np.minimum(middle - half, centre), 0, 1)
    high = np.clip(np.maximum(middle + half, centre), 0, 1)
    return Band(tuple(centre.tolist()), tuple(low.tolist()), tuple(high.tolist()), n)
