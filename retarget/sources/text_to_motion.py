"""Output of text-to-motion models: batches `[n, 22, 3, T]` with lengths and prompts, in their pickled dictionary too.

Y is up and the frame rate is 20 unless told otherwise. What stands behind a sample's length is not motion and is cut
off; bone lengths vary within a clip, which the pipeline takes care of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bunraku.errors import FileFormatError
from bunraku.motion import HumanMotion
from bunraku.retarget.reading.axes import to_motion
from bunraku.retarget.reading.content import UNNAMED, Content, ReadOptions

FPS = 20.0
"""Frame rate of HumanML3D, which these models are trained on."""


class TextToMotionSource:
    """Reads model output."""

    description = "text-to-motion output [n, 22, 3, T] with lengths and prompts, .npy or .npz"

    def recognises(self, content: Content) -> bool:
        """Say whether there is a batch of samples."""
        motion = content.array("motion", "motions", UNNAMED)
        return motion is not None and motion.ndim == 4 and motion.shape[2] in (1, 3) and motion.shape[1] > 3

    def load(self, content: Content, options: ReadOptions) -> Sequence[HumanMotion]:
        """Return one clip per sample, cut to its length."""
        motion = content.array("motion", "motions", UNNAMED)
        assert motion is not None  # recognised
        samples, joints, axes, frames = motion.shape
        if joints not in (22, 24) or axes != 3:
            raise FileFormatError(
                f"{content.name} holds samples {motion.shape}; model output is (n, 22, 3, T), features such as"
                " HumanML3D's 263 must be turned into joints first"
            )
        if samples == 0 or frames == 0:
            raise FileFormatError(f"{content.name} holds no samples: {motion.shape}")
        lengths = self._lengths(content, samples, frames)
        prompts = self._prompts(content, samples)
        clips = []
        for index, (length, prompt) in enumerate(zip(lengths, prompts, strict=True)):
            told = f"{content.name}#{index}" + (f": {prompt}" if prompt else "")
            notes = (
                [f"{frames - length} frames behind the sample's length were cut off"]
                if length < frames
                else []
            )
            clips.append(
                to_motion(
                    np.asarray(motion[index, :22, :, :length], dtype=np.float64).transpose(2, 0, 1),
                    options,
                    name=f"{content.name}#{index}",
                    fps=content.frame_rate(),
                    default_fps=FPS,
                    up="y",
                    licence=content.word("licence", "license"),
                    source=told,
                    notes=notes,
                )
            )
        return clips

    def _lengths(self, content: Content, samples: int, frames: int) -> list[int]:
        given = content.array("lengths", "length")
        if given is None:
            return [frames] * samples
        lengths = [int(n) for n in np.atleast_1d(given)]
        if len(lengths) != samples or min(lengths) < 1 or max(lengths) > frames:
            raise FileFormatError(
                f"{content.name}: lengths {lengths} do not fit {samples} samples of {frames} frames"
            )
        return lengths

    def _prompts(self, content: Content, samples: int) -> list[str]:
        given = content.values.get("text", content.values.get("prompts", ()))
        prompts = [str(prompt) for prompt in np.atleast_1d(np.asarray(given, dtype=object))]
        return prompts if len(prompts) == samples else [""] * samples


SOURCE = TextToMotionSource()
