"""Environments can be copied and pickled in the middle of an episode, and the copy goes on with the same bits."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from bunraku.registration import ENVIRONMENTS, env_id


def pickled(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))


@pytest.mark.parametrize("name", [env_id(name) for name in ENVIRONMENTS])
@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
@pytest.mark.parametrize("many", [False, True])
def test_a_copy_goes_on_as_the_original_does(name: str, copied: Callable[[Any], Any], many: bool) -> None:
    env: Any = (
        gymnasium.make_vec(name, 2, vectorization_mode="vector_entry_point") if many else gymnasium.make(name)
    )
    env.action_space.seed(0)
    env.reset(seed=3)
    for _ in range(3):
        env.step(env.action_space.sample())
    other = copied(env)
    for _ in range(3):
        action = env.action_space.sample()
        for ours, theirs in zip(env.step(action)[:4], other.step(action)[:4], strict=True):
            np.testing.assert_equal(ours, theirs)
    np.testing.assert_equal(env.reset()[0], other.reset()[0])
    env.close()
    other.close()
