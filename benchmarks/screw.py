"""A painted frame of `bunraku screw` (pose, lines, picture, status) against MuJoCo's renderer alone, at 640x480.

Both render the same frames, each in turn first, in one process.
"""

from __future__ import annotations

import statistics

from timing import Result, seconds

from bunraku.screw.picture import Painter
from bunraku.screw.playback import Playback
from bunraku.screw.report import RENDER_RATIO

SIZE = (640, 480)


def run(repeats: int = 90) -> list[Result]:
    """Time `repeats` frames, evenly spread over the demonstration."""
    playback = Playback()
    timed = {round(k * (len(playback) - 1) / max(1, repeats - 1)) for k in range(repeats)}
    rounds: list[tuple[float, float]] = []
    with Painter(playback, SIZE) as painter:
        painter.plain()
        for frame in range(len(playback)):

            def pose(frame: int = frame) -> None:
                playback.show(frame)
                painter.follow(frame)

            ours = seconds(pose)
            if frame not in timed:
                continue
            if len(rounds) % 2:
                peer = seconds(painter.plain)
                ours += seconds(lambda frame=frame: painter.paint(frame))
            else:
                ours += seconds(lambda frame=frame: painter.paint(frame))
                peer = seconds(painter.plain)
            rounds.append((ours, peer))
    ratios = sorted(peer / ours for ours, peer in rounds)
    return [
        Result(
            name="screw",
            ours=1000.0 * statistics.median(ours for ours, _ in rounds),
            peer=1000.0 * statistics.median(peer for _, peer in rounds),
            ratio=statistics.median(ratios),
            unit="ms",
            repeats=len(rounds),
            required=1.0 / RENDER_RATIO,
            details={"ratio_min": ratios[0], "ratio_max": ratios[-1]},
        )
    ]
