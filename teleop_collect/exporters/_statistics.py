"""Statistics over all rows, in float64, with exact quantiles and memory that does not grow with the episodes.

Numbers are kept on disk while rows come in, and summed up one component at a time. Images are counted by
value: 256 counts per channel say all that is asked of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}


def vector_statistics(rows: NDArray[Any]) -> dict[str, list[float]]:
    """Return minimum, maximum, mean, standard deviation, count and quantiles of the columns of `(N, n)`."""
    columns = [np.asarray(rows[:, i], dtype=np.float64) for i in range(rows.shape[1])]
    found = {
        "min": [float(c.min()) for c in columns],
        "max": [float(c.max()) for c in columns],
        "mean": [float(c.mean()) for c in columns],
        "std": [float(c.std()) for c in columns],
        "count": [float(len(rows))],
    }
    for name, q in QUANTILES.items():
        found[name] = [float(np.quantile(c, q)) for c in columns]
    return found


class RowsOnDisk:
    """Rows of numbers of one feature, in a file that is removed with `close`."""

    def __init__(self, path: Path, width: int) -> None:
        """Begin a file of rows of `width` numbers."""
        self._path, self._width, self._count = path, width, 0
        self._file = open(path, "wb")  # noqa: SIM115 - lives as long as this object

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows `(n, width)`."""
        self._file.write(np.ascontiguousarray(rows, dtype=np.float64).tobytes())
        self._count += len(rows)

    def statistics(self) -> dict[str, list[float]]:
        """Return the statistics of all rows."""
        self._file.flush()
        rows = np.memmap(self._path, dtype=np.float64, mode="r", shape=(self._count, self._width))
        return vector_statistics(rows)

    def close(self) -> None:
        """Remove the file."""
        self._file.close()
        self._path.unlink(missing_ok=True)


class ImageCounts:
    """Counts of the 256 values of each channel."""

    def __init__(self) -> None:
        """Begin with no image."""
        self._counts = np.zeros((3, 256), dtype=np.int64)
        self._images = 0

    def append(self, images: NDArray[np.uint8]) -> None:
        """Count images `(n, height, width, 3)`."""
        for channel in range(3):
            self._counts[channel] += np.bincount(images[..., channel].ravel(), minlength=256)
        self._images += len(images)

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of values scaled to [0, 1], with shape `(3, 1, 1)`."""
        values = np.arange(256) / 255.0
        total = self._counts.sum(axis=1)
        mean = self._counts @ values / total
        spread = np.sqrt(self._counts @ (values * values) / total - mean * mean)
        present = self._counts > 0
        found: dict[str, Any] = {
            "min": _column(values[present.argmax(axis=1)]),
            "max": _column(values[255 - present[:, ::-1].argmax(axis=1)]),
            "mean": _column(mean),
            "std": _column(spread),
            "count": [self._images],
        }
        cumulated = self._counts.cumsum(axis=1)
        for name, q in QUANTILES.items():
            ranks = np.ceil(q * total)
            found[name] = _column(values[(cumulated >= ranks[:, None]).argmax(axis=1)])
        return found


def _column(numbers: NDArray[Any]) -> list[list[list[float]]]:
    return [[[float(number)]] for number in numbers]
