"""Episodes of random numbers for the tests of demonstration files."""

from __future__ import annotations

import numpy as np

from bunraku.episode.episode import Episode

ENV_ID, ENV_KWARGS, INFO = "test/Pendulum-v0", {"control_freq": 50}, {"cameras": ["front"]}


def make_episode(steps: int = 20, seed: int = 0, label: str = "success", action_dim: int = 4) -> Episode:
    """Return an episode whose every number depends on the seed."""
    rng = np.random.default_rng(seed)
    return Episode(
        observations={
            "observation": rng.normal(size=(steps + 1, 6)),
            "desired_goal": rng.normal(size=(steps + 1, 3)),
        },
        states=rng.normal(size=(steps + 1, 12)),
        actions=rng.uniform(-1, 1, size=(steps, action_dim)).astype(np.float32),
        applied=rng.normal(size=(steps, 8)),
        rewards=rng.normal(size=steps),
        terminated=rng.random(steps) < 0.1,
        truncated=rng.random(steps) < 0.1,
        success=rng.random(steps) < 0.5,
        sim_time=np.arange(steps) * 0.02,
        wall_time=1.7e9 + np.arange(steps) * 0.02,
        streams={"device/right": rng.normal(size=(steps, 7)), "tick/age_ms": rng.normal(size=steps)},
        label=label,
        meta={"seed": seed, "mjcf": f"<mujoco model='{seed}'/>", "device": "scripted"},
    )


def assert_same(a: Episode, b: Episode) -> None:
    """Compare two episodes bit for bit."""
    for name in (
        "states actions applied rewards terminated truncated success sim_time wall_time".split()  # noqa: SIM905
    ):
        left, right = getattr(a, name), getattr(b, name)
        assert left.dtype == right.dtype, name
        np.testing.assert_array_equal(left, right, err_msg=name)
    for name in ("observations", "streams"):
        left, right = getattr(a, name), getattr(b, name)
        assert sorted(left) == sorted(right)
        for key in left:
            np.testing.assert_array_equal(left[key], right[key], err_msg=key)
    assert (a.label, a.meta) == (b.label, b.meta)
