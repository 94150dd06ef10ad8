"""Statistics of many comparisons: corrected p-values, effect sizes, and detectable differences."""

import math

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.statistics.intervals import student_t_quantile


def holm(p_values: FloatArray) -> FloatArray:
    """P-values corrected so that those below a level hold the family-wise error rate at that level.

    Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 1979; it
    holds under any dependence of the tests.

    Args:
        p_values: float64[n]; NaN for a comparison that was not tested, which is not counted.

    Returns:
        float64[n], in the order given and at most 1; NaN stays NaN.

    >>> holm(np.array([0.01, 0.5, 0.25])).tolist()
    [0.03, 0.5, 0.5]
    """
    corrected, order = _copy_and_order(p_values)
    tests = len(order)
    corrected[order] = np.maximum.accumulate(corrected[order] * np.arange(tests, 0, -1))
    return np.minimum(corrected, 1.0)


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    """P-values corrected so that those below a level hold the false discovery rate at that level.

    Benjamini and Hochberg, "Controlling the false discovery rate", JRSS B 1995; it holds for independent or
    positively dependent tests.

    Args:
        p_values: float64[n]; NaN for a comparison that was not tested, which is not counted.

    Returns:
        float64[n], in the order given and at most 1; NaN stays NaN.

    >>> benjamini_hochberg(np.array([0.01, 0.5, 0.25])).tolist()
    [0.03, 0.5, 0.375]
    """
    corrected, order = _copy_and_order(p_values)
    tests = len(order)
    shares = corrected[order] * tests / np.arange(1, tests + 1)
    corrected[order] = np.minimum.accumulate(shares[::-1])[::-1]
    return np.minimum(corrected, 1.0)


def _copy_and_order(p_values: FloatArray) -> tuple[FloatArray, np.ndarray]:
    """A copy, and the positions of its numbers from the lowest to the highest."""
    order = np.argsort(p_values, kind="stable")  # NaN comes last
    return p_values.copy(), order[: np.count_nonzero(~np.isnan(p_values))]


def effect_size(mean: float, standard_error: float, count: int) -> float:
    """Cohen's d of paired differences: their mean in units of their standard deviation, √n · standard error.

    Cohen, "Statistical power analysis for the behavioral sciences", 1988, section 2.3.5 (d_z).

    Args:
        mean: mean difference.
        standard_error: its standard error.
        count: number of queries n.

    Returns:
        The size, with the sign of the mean. Without any spread it is 0 for a mean of 0, else NaN, as it would be
        infinite; NaN below two queries.

    >>> round(effect_size(0.02, 0.01, 100), 6)
    0.2
    """
    if count < 2 or math.isnan(standard_error):
        return math.nan
    if standard_error == 0.0:
        return 0.0 if mean == 0.0 else math.nan
    return mean / (standard_error * math.sqrt(count))


def detectable_difference(standard_error: float, count: float, power: float = 0.8, level: float = 0.05) -> float:
    """The smallest true mean difference that a two-sided paired t test detects with the given power.

    (t(1 - level/2) + t(power)) · standard error, each t the quantile with n - 1 degrees of freedom: Bloom, "Minimum
    detectable effects", Evaluation Review 1995. From some thirty queries on,
    the power at this difference, by the noncentral t distribution, is the given one to within a percentage point.

    Args:
        standard_error: standard error of the mean difference.
        count: number of queries n.
        power: probability of finding the difference.
        level: significance level of the test.

    Returns:
        A difference in the metric's own unit; NaN below two queries, and if all differences are equal, as their spread
        is then unknown.

    Raises:
        ValueError: power or level are not between 0 and 1.

    >>> round(detectable_difference(0.01, 50), 6)
    0.028586
    """
    if count < 2 or not standard_error > 0.0:
        return math.nan
    quantiles = student_t_quantile(1.0 - level / 2.0, count - 1) + student_t_quantile(power, count - 1)
    return quantiles * standard_error
