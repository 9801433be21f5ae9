"""Off-screen rendering where there may be no display."""

from __future__ import annotations

import os
import sys

import mujoco

from bunraku.errors import BunrakuError

REMEDY = (
    "on Debian or Ubuntu without a display install libegl1 and libgl1-mesa-dri and set MUJOCO_GL=egl "
    "(or install libosmesa6 and set MUJOCO_GL=osmesa)"
)


class GraphicsError(BunrakuError):
    """No OpenGL context can be made."""

    def __init__(self, reason: str) -> None:
        """Say why, and what to install."""
        super().__init__(f"cannot render: MuJoCo found no OpenGL ({reason}); {REMEDY}")


def has_display() -> bool:
    """Say whether windows can be opened, as far as the environment tells."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def make_renderer(model: mujoco.MjModel, width: int, height: int) -> mujoco.Renderer:
    """Return an off-screen renderer; on Linux without a display, by EGL unless `MUJOCO_GL` says otherwise.

    Args:
        model: The model; its off-screen buffer is enlarged if the image needs it.
        width: Width of the images [pixels].
        height: Height of the images [pixels].

    Raises:
        GraphicsError: There is no OpenGL; names what to install.
        BunrakuError: The size is not positive.
    """
    if width < 1 or height < 1:
        raise BunrakuError(f"an image of {width}x{height} pixels cannot be rendered; both must be positive")
    model.vis.global_.offwidth = max(model.vis.global_.offwidth, width)
    model.vis.global_.offheight = max(model.vis.global_.offheight, height)
    try:
        if not has_display() and not os.environ.get("MUJOCO_GL"):
            _render_by_egl()
        return mujoco.Renderer(model, height, width)
    except (ImportError, AttributeError, OSError, RuntimeError, mujoco.FatalError) as error:
        raise GraphicsError(
            f"{type(error).__name__}: {(str(error) or 'no reason given').splitlines()[0]}"
        ) from error


def _render_by_egl() -> None:
    """Choose EGL after mujoco was imported, which reads `MUJOCO_GL` only then."""
    from mujoco.egl import GLContext
    from mujoco.rendering.classic import gl_context

    gl_context.GLContext = GLContext
