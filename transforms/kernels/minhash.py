"""Near-duplicate texts: MinHash over 5-grams of characters, with the Jaccard index of every candidate verified.

Broder, "On the resemblance and containment of documents", 1997; banding as in Leskovec, Rajaraman and Ullman, "Mining
of Massive Datasets", chapter 3. Two texts with Jaccard index j share a band with probability 1 - (1 - j^8)^16: .61 at
.7, .95 at .8, .9998 at .9. Hashes are of bytes, so every machine gives the same result.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import HashArray
from rankbeam.transforms.kernels.hashing import combine, hash_strings, mix

CHARACTERS = 5
PERMUTATIONS, BANDS = 128, 16
LEAST_JACCARD = 0.7  # the index from which two texts are near-duplicates

_SEEDS: HashArray = mix(np.arange(1, PERMUTATIONS + 1, dtype=np.uint64))
_ROWS = PERMUTATIONS // BANDS
_AT_ONCE = 16  # permutations whose hashes stay in the processor's cache
_TEXTS = 1 << 10  # texts whose 5-grams are not hashed again for the next comparison


def shingles(text: str) -> HashArray:
    """Hashes of the distinct 5-grams of a text, whatever its case and white space; a shorter text is its only 5-gram.

    >>> len(shingles("Pay  invoices")), len(shingles("pay invoices")), len(shingles("pay"))
    (8, 8, 1)
    """
    folded = " ".join(text.casefold().split())
    last = max(1, len(folded) - CHARACTERS + 1)
    grams = list({folded[start : start + CHARACTERS] for start in range(last)})
    return np.unique(hash_strings(pa.array(grams, pa.string())))


def signature(hashes: HashArray) -> HashArray:
    """The least hash under each permutation.

    Args:
        hashes: uint64[n], n at least 1, from `shingles`.

    Returns:
        uint64[128].
    """
    seeds = _SEEDS.reshape(-1, _AT_ONCE, 1)
    return np.concatenate([mix(hashes ^ some).min(axis=1) for some in seeds])


def bands(of_text: HashArray) -> HashArray:
    """A hash of each band of a signature: two texts with an equal band are candidates."""
    return combine(np.arange(BANDS, dtype=np.uint64), *of_text.reshape(BANDS, _ROWS).T)


def jaccard(first: HashArray, second: HashArray) -> float:
    """The share of all 5-grams that two texts have in common.

    >>> jaccard(shingles("pay invoices"), shingles("Pay invoices"))
    1.0
    """
    common = len(np.intersect1d(first, second, assume_unique=True))
    return common / (len(first) + len(second) - common)


def first_alike(texts: Sequence[str]) -> list[int]:
    """For each text, the position of the first kept text that it nearly duplicates; its own if it is kept.

    Args:
        texts: the texts in order of preference.

    >>> first_alike(["How do I pay an invoice?", "Who can see reports?", "how do I pay an invoice"])
    [0, 1, 0]
    """
    of_texts = np.array([bands(signature(shingles(text))) for text in texts], np.uint64)
    values, counts = np.unique(of_texts, return_counts=True)
    by_band: dict[int, list[int]] = {band: [] for band in values[counts > 1].tolist()}
    grams = lru_cache(_TEXTS)(shingles)
    originals: list[int] = []
    for place, text in enumerate(texts):
        alike = [by_band[band] for band in of_texts[place].tolist() if band in by_band]
        candidates = sorted({other for others in alike for other in others})
        first = next(
            (other for other in candidates if jaccard(grams(texts[other]), grams(text)) >= LEAST_JACCARD), place
        )
        originals.append(first)
        if first == place:
            for others in alike:
                others.append(place)
    return originals
