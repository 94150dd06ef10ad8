"""Near-duplicate texts: MinHash over 5-grams of characters, with the Jaccard index of every candidate verified.

Broder, "On the resemblance and containment of documents", 1997; banding as in Leskovec, Rajaraman and Ullman, "Mining
of Massive Datasets", chapter 3. Two texts with Jaccard index j share a band with probability 1 - (1 - j^8)^16: .61 at
.7, .95 at .8, .9998 at .9. Hashes are of bytes, so every machine gives the same result.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import HashArray
from rankbeam.transforms.kernels.hashing import hash_strings, mix

CHARACTERS = 5
PERMUTATIONS, BANDS = 128, 16
LEAST_JACCARD = 0.7
"""The index from which two texts are near-duplicates."""

_SEEDS: HashArray = mix(np.arange(1, PERMUTATIONS + 1, dtype=np.uint64))
_ROWS = PERMUTATIONS // BANDS


def shingles(text: str) -> HashArray:
    """Hashes of the distinct 5-grams of a text, whatever its case and white space; a shorter text is its only 5-gram.

    >>> len(shingles("Pay  invoices")), len(shingles("pay invoices")), len(shingles("pay"))
    (8, 8, 1)
    """
    folded = " ".join(text.casefold().split())
    last = max(1, len(folded) - CHARACTERS + 1)
    grams = sorted({folded[start : start + CHARACTERS] for start in range(last)})
    return np.unique(hash_strings(pa.array(grams, pa.string())))


def signature(hashes: HashArray) -> HashArray:
    """The least hash under each permutation.

    Args:
        hashes: uint64[n], n at least 1, from `shingles`.

    Returns:
        uint64[128].
    """
    return np.array([mix(hashes ^ seed).min() for seed in _SEEDS], np.uint64)


def bands(of_text: HashArray) -> list[tuple[int, bytes]]:
    """The bands of a signature: two texts with an equal band are candidates."""
    return [(band, rows.tobytes()) for band, rows in enumerate(of_text.reshape(BANDS, _ROWS))]


def jaccard(first: HashArray, second: HashArray) -> float:
    """The share of all 5-grams that two texts have in common.

    >>> jaccard(shingles("pay invoices"), shingles("Pay invoices"))
    1.0
    """
    common = len(np.intersect1d(first, second, assume_unique=True))
    return common / (len(first) + len(second) - common)


def first_alike(texts: Sequence[str], least: float = LEAST_JACCARD) -> list[int]:
    """For each text, the position of the first kept text that it nearly duplicates; its own if it is kept.

    Args:
        texts: the texts in order of preference.
        least: the lowest Jaccard index at which two texts are near-duplicates.

    >>> first_alike(["How do I pay an invoice?", "Who can see reports?", "how do I pay an invoice"])
    [0, 1, 0]
    """
    by_band: dict[tuple[int, bytes], list[int]] = {}
    hashes: list[HashArray] = []
    originals: list[int] = []
    for place, text in enumerate(texts):
        hashes.append(shingles(text))
        text_bands = bands(signature(hashes[-1]))
        candidates = sorted({other for band in text_bands for other in by_band.get(band, ())})
        first = next((other for other in candidates if jaccard(hashes[other], hashes[-1]) >= least), place)
        originals.append(first)
        if first == place:
            for band in text_bands:
                by_band.setdefault(band, []).append(place)
    return originals
