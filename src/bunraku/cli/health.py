"""The checks of `bunraku doctor`: each says whether something works, what was seen, and what to do if it does not."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bunraku.errors import BunrakuError


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    """What."""
    ok: bool
    """Whether it works."""
    detail: str
    """What was seen."""
    remedy: str = ""
    """What to do, where something is to be done."""
    required: bool = False
    """Whether nothing can be collected without it."""


def all_checks(seconds: float) -> Iterator[Check]:
    """Yield every check, as each is done.

    Args:
        seconds: How long to watch VR controllers [s].
    """
    yield python_version()
    yield from packages()
    yield physics()
    yield rendering()
    yield from viewers()
    yield from steamvr(seconds)
    yield from other_devices()


def can_collect(checks: Iterable[Check]) -> bool:
    """Return whether demonstrations can be collected with some device."""
    return all(check.ok for check in checks if check.required)


def python_version() -> Check:
    """Check the version of Python."""
    version = platform.python_version()
    ok = (3, 11) <= sys.version_info[:2] < (3, 14)
    return Check(
        "python",
        ok,
        f"{version} on {platform.platform()}",
        "" if ok else "install Python 3.11, 3.12 or 3.13",
        required=True,
    )


def packages() -> Iterator[Check]:
    """Check that what bunraku needs is installed, and which extras are."""
    for name in ("mujoco", "gymnasium", "numpy", "h5py"):
        yield _package(name, required=True, remedy="pip install --force-reinstall bunraku")
    for name, extra in (("av", "video"), ("pyspacemouse", "spacemouse"), ("pygame", "gamepad")):
        yield _package(name, required=False, remedy=f"optional: pip install 'bunraku[{extra}]'")


def _package(name: str, *, required: bool, remedy: str) -> Check:
    try:
        return Check(f"package {name}", True, importlib.metadata.version(name), required=required)
    except importlib.metadata.PackageNotFoundError:
        return Check(f"package {name}", False, "not installed", remedy, required=required)


def physics() -> Check:
    """Step the Panda for a moment."""
    import gymnasium
    import numpy as np

    import bunraku  # noqa: F401 - registers the environments

    env = gymnasium.make("bunraku/PandaReach-v0")
    env.reset(seed=0)
    observation = env.step(np.zeros(3, dtype=np.float32))[0]
    ok = bool(np.isfinite(observation["observation"]).all())
    env.close()
    return Check(
        "simulation", ok, "bunraku/PandaReach-v0 steps" if ok else "it gives no numbers", required=True
    )


def rendering() -> Check:
    """Render one frame."""
    import os

    import mujoco

    from bunraku.gl import REMEDY, make_renderer

    scene = "<mujoco><worldbody><light pos='0 0 3'/><geom size='0.5' rgba='1 0 0 1'/></worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(scene)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    try:
        renderer = make_renderer(model, 64, 64)
    except BunrakuError as error:
        return Check("rendering", False, str(error), REMEDY)
    renderer.update_scene(data)
    lit = bool(renderer.render().std() > 1.0)
    backend = type(renderer._gl_context).__module__ if hasattr(renderer, "_gl_context") else "OpenGL"
    renderer.close()
    asked = os.environ.get("MUJOCO_GL", "not set")
    return Check(
        "rendering",
        lit,
        f"a frame was rendered ({backend}, MUJOCO_GL {asked})" if lit else "black",
        "" if lit else REMEDY,
    )


def viewers() -> Iterator[Check]:
    """Check which viewers can be opened."""
    from bunraku.gl import has_display

    if has_display():
        yield Check("viewer native", True, "there is a display")
    else:
        yield Check("viewer native", False, "there is no display", "use --viewer web from any browser")
    found = importlib.util.find_spec("mujoco.studio.launch_web") is not None
    yield Check(
        "viewer web",
        found,
        "a page on 127.0.0.1" if found else "mujoco has no web viewer",
        "" if found else "pip install --upgrade mujoco",
    )


def steamvr(seconds: float) -> Iterator[Check]:
    """Look at SteamVR and at each controller."""
    from bunraku.teleop_collect.openvr_probe import probe

    report = probe(seconds)
    asleep = " (headset asleep)" if report.headset_asleep else ""
    yield Check("steamvr", report.ok, report.detail + asleep, report.remedy)
    for controller in report.controllers:
        problems = controller.problems()
        jitter = "untracked" if controller.jitter_mm is None else f"jitter {controller.jitter_mm:.2f} mm"
        detail = (
            f"{controller.role} hand, {controller.model}, pose valid {100 * controller.valid_share:.0f} %,"
            f" {controller.rate:.0f} Hz, {jitter}, buttons {', '.join(controller.buttons) or 'none seen'},"
            f" input {'moving' if controller.packet_moving else 'not moving'}"
        )
        yield Check(
            f"controller {controller.serial or controller.index}", not problems, detail, "; ".join(problems)
        )


def other_devices() -> Iterator[Check]:
    """Open and close the devices that need no SteamVR."""
    from bunraku.teleop_collect.devices import open_device

    for name in ("spacemouse", "gamepad"):
        try:
            with open_device(name):
                yield Check(name, True, "found")
        except BunrakuError as error:
            yield Check(name, False, "not found", str(error))
    terminal = sys.stdin is not None and sys.stdin.isatty()
    yield Check("keyboard", True, "the viewer's window or page" + (", and this terminal" if terminal else ""))
    with open_device("scripted"):
        yield Check("scripted", True, "the simulated operator", required=True)
