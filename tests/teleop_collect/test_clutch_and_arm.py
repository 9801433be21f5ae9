"""What a hand does to the arm: the whole path from device samples to joint targets."""

from __future__ import annotations

import numpy as np
import pytest

from bunraku.geometry import Pose, angle_between, from_rotvec, multiply, to_rotvec
from bunraku.teleop_collect.profile import Profile
from tests.teleop_collect.fake_device import Rig


def settled_tool(rig: Rig) -> Pose:
    rig.step(40)
    return rig.arm.tool()


def test_the_tool_follows_the_hand_scaled_by_six_tenths() -> None:
    rig = Rig()
    before = settled_tool(rig)
    rig.engage()
    rig.move([0.1, 0.05, -0.08])
    after = settled_tool(rig)
    assert np.allclose(after.pos - before.pos, [0.06, 0.03, -0.048], atol=5e-4)
    assert float(angle_between(before.quat, after.quat)) < np.deg2rad(0.1)


def test_engaging_moves_the_arm_by_nothing_at_all() -> None:
    still, engaged = Rig(), Rig()
    engaged.device.trigger["right"] = 0.0
    for rig in (still, engaged):
        rig.step(30)
    engaged.device.trigger["right"] = 1.0
    for rig in (still, engaged):
        info = rig.step(30)
    assert info["teleop"].hands["right"].engaged
    # apart from that the trigger is pressed, both arms have had the same life: the same bits
    assert np.array_equal(still.arm.commanded_joints(), engaged.arm.commanded_joints())
    assert np.array_equal(still.env.unwrapped.data.qpos, engaged.env.unwrapped.data.qpos)


@pytest.mark.parametrize("heading", [0.0, 0.7, 2.5, -1.9])
def test_turning_the_hand_about_the_vertical_turns_the_tool_about_the_vertical_however_it_is_held(
    heading: float,
) -> None:
    rig = Rig(frame="y_up")
    held = multiply(from_rotvec(np.array([0.0, heading, 0.0])), from_rotvec(np.array([0.6, 0.0, 0.3])))
    rig.device.pose["right"] = Pose(np.array([0.3, 1.1, -0.2]), held)
    before = settled_tool(rig)
    rig.engage()
    rig.move([0.0, 0.0, 0.0], turn=[0.0, 0.4, 0.0])  # y is up in the device's frame
    after = settled_tool(rig)
    turn = to_rotvec(multiply(after.quat, np.array([1, -1, -1, -1.0]) * before.quat))
    assert np.allclose(turn, [0.0, 0.0, 0.4], atol=2e-3)
    assert np.allclose(after.pos, before.pos, atol=5e-4)


def test_forward_of_the_headset_is_forward_of_the_robot_and_up_is_up() -> None:
    rig = Rig(frame="y_up")
    before = settled_tool(rig)
    rig.engage()
    rig.move([0.0, 0.0, -0.1])
    forward = settled_tool(rig)
    assert np.allclose(forward.pos - before.pos, [0.06, 0.0, 0.0], atol=5e-4)
    rig.move([0.0, 0.1, 0.0])
    up = settled_tool(rig)
    assert np.allclose(up.pos - forward.pos, [0.0, 0.0, 0.06], atol=5e-4)
    rig.move([-0.1, 0.0, 0.0])
    assert np.allclose(settled_tool(rig).pos - up.pos, [0.0, 0.06, 0.0], atol=5e-4)


def test_an_operator_who_faces_the_robot_moves_it_toward_himself_by_pulling() -> None:
    rig = Rig(profile=Profile(facing_deg=180.0, filter="none"))
    before = settled_tool(rig)
    rig.engage()
    rig.move([-0.1, 0.0, 0.0])  # toward himself
    assert np.allclose(settled_tool(rig).pos - before.pos, [0.06, 0.0, 0.0], atol=5e-4)


def test_releasing_holds_still_and_engaging_again_goes_on_from_there() -> None:
    rig = Rig()
    rig.engage()
    rig.move([0.08, 0.0, 0.0])
    rig.device.trigger["right"] = 0.0
    held = settled_tool(rig)
    rig.move([-0.08, 0.1, 0.1])
    assert np.allclose(settled_tool(rig).pos, held.pos, atol=1e-5)
    rig.engage()
    assert np.allclose(settled_tool(rig).pos, held.pos, atol=1e-5)
    rig.move([0.05, 0.0, 0.0])
    assert np.allclose(settled_tool(rig).pos - held.pos, [0.03, 0.0, 0.0], atol=5e-4)


def test_precision_divides_motion_and_rotation_by_five_without_a_jump() -> None:
    rig = Rig()
    rig.engage()
    rig.move([0.05, 0.0, 0.0])
    before = settled_tool(rig)
    rig.device.buttons["right"] = frozenset({"thumbstick"})
    assert np.allclose(settled_tool(rig).pos, before.pos, atol=1e-5)
    rig.move([0.1, 0.0, 0.0], turn=[0.0, 0.0, 0.5])
    after = settled_tool(rig)
    assert np.allclose(after.pos - before.pos, [0.012, 0.0, 0.0], atol=2e-4)
    assert float(angle_between(before.quat, after.quat)) == pytest.approx(0.1, abs=2e-3)
    rig.device.buttons["right"] = frozenset()
    assert np.allclose(settled_tool(rig).pos, after.pos, atol=1e-5)


def test_button_a_takes_a_new_reference_without_moving_the_arm() -> None:
    rig = Rig()
    rig.engage()
    rig.move([0.05, 0.0, 0.0], turn=[0.0, 0.0, 0.3])
    before = settled_tool(rig)
    rig.device.buttons["right"] = frozenset({"a"})
    assert np.allclose(settled_tool(rig).pos, before.pos, atol=1e-5)


def test_the_grip_closes_the_gripper_and_it_stays_frozen_while_the_hand_is_disengaged() -> None:
    rig = Rig()
    rig.engage()
    rig.device.squeeze["right"] = 1.0
    rig.step(60)
    assert float(rig.arm.finger_pos) < 1e-3
    rig.device.trigger["right"] = 0.0
    rig.step(2)
    rig.device.squeeze["right"] = 0.0
    rig.step(60)
    assert float(rig.arm.finger_pos) < 1e-3
    rig.engage()
    rig.step(60)
    assert float(rig.arm.finger_pos) > 0.038


@pytest.mark.parametrize(
    "event", ["role_changed", "recentred", "disconnected", "connected", "standby", "dashboard_opened"]
)
def test_after_an_interruption_only_a_fresh_press_engages(event: str) -> None:
    rig = Rig()
    rig.engage()
    rig.device.events.append(event)
    assert not rig.step()["teleop"].hands["right"].engaged
    assert not rig.step(20)["teleop"].hands["right"].engaged  # the trigger is still held
    rig.engage()
    assert rig.step()["teleop"].hands["right"].engaged


def test_another_controller_in_the_hand_disengages() -> None:
    rig = Rig()
    rig.engage()
    rig.device.source["right"] = "R2"
    assert not rig.step()["teleop"].hands["right"].engaged


def test_a_short_loss_of_tracking_holds_and_a_long_one_disengages() -> None:
    rig = Rig()
    rig.engage()
    pose = rig.device.pose["right"]
    rig.device.pose["right"] = None
    assert rig.step(3)["teleop"].hands["right"].engaged
    rig.device.pose["right"] = pose
    assert rig.step(3)["teleop"].hands["right"].engaged
    rig.device.pose["right"] = None
    assert not rig.step(10)["teleop"].hands["right"].engaged
    rig.device.pose["right"] = pose
    assert not rig.step(10)["teleop"].hands["right"].engaged


def test_a_jump_of_one_sample_does_nothing_and_one_that_lasts_does_not_move_the_arm() -> None:
    rig = Rig()
    rig.engage()
    before = settled_tool(rig)
    good = rig.device.pose["right"]
    assert good is not None
    rig.device.pose["right"] = Pose(good.pos + [0.0, 0.3, 0.0], good.quat)
    rig.step()
    rig.device.pose["right"] = good
    info = rig.step(5)
    assert info["teleop"].hands["right"].engaged
    assert info["teleop"].hands["right"].dropped == 1
    rig.device.pose["right"] = Pose(good.pos + [0.0, 0.3, 0.0], good.quat)
    rig.step(60)
    assert np.allclose(rig.arm.tool().pos, before.pos, atol=1e-5)
    rig.engage()  # and it does not wait for ever
    rig.move([0.05, 0.0, 0.0])
    assert np.allclose(settled_tool(rig).pos - before.pos, [0.03, 0.0, 0.0], atol=5e-4)


@pytest.mark.parametrize(
    "bad",
    [
        Pose(np.array([np.nan, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])),
        Pose(np.zeros(3), np.array([np.nan, 0.0, 0.0, 0.0])),
        Pose(np.zeros(3), np.array([0.6, 0.0, 0.0, 0.0])),
        Pose(np.array([np.inf, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])),
    ],
)
def test_a_pose_that_cannot_be_believed_is_dropped(bad: Pose) -> None:
    rig = Rig()
    rig.engage()
    before = settled_tool(rig)
    rig.device.pose["right"] = bad
    info = rig.step(2)
    assert info["teleop"].hands["right"].dropped == 2
    assert np.isfinite(info["action"]).all()
    assert np.allclose(rig.arm.tool().pos, before.pos, atol=1e-5)


def test_an_unreachable_target_goes_to_the_nearest_pose_smoothly_and_the_operator_is_told() -> None:
    rig = Rig()
    rig.engage()
    rig.device.pulses.clear()
    limit = np.array(rig.arm.robot.speed_limit) * rig.dt
    last = rig.arm.commanded_joints()
    told = False
    for offset in ([0.9, 0.0, 0.3], [-0.9, 0.0, -0.3]):
        start = rig.device.pose["right"]
        assert start is not None
        for k in range(100):
            share = (k + 1) / 100
            rig.device.pose["right"] = Pose(start.pos + share * np.array(offset), start.quat)
            info = rig.step()
            joints = rig.arm.commanded_joints()
            assert (np.abs(joints - last) <= limit * (1 + 1e-9)).all()
            last = joints
            told = told or info["teleop"].hands["right"].unreachable
    assert told
    assert any(strength > 0.7 for _, strength in rig.device.pulses)
    # on the way back the tool is again where the hand asks for it
    assert np.linalg.norm(settled_tool(rig).pos - rig.arm.target().pos) < 5e-4


def test_each_hand_drives_its_own_arm() -> None:
    rig = Rig("bunraku/DualPandaReach-v0")
    left, right = rig.task.arms()
    rig.step(30)
    before = left.tool().pos, right.tool().pos
    rig.engage("left")
    rig.move([0.1, 0.0, 0.0], hand="left")
    rig.move([0.0, 0.1, 0.0], hand="right")  # not engaged
    rig.step(40)
    assert np.allclose(left.tool().pos - before[0], [0.06, 0.0, 0.0], atol=5e-4)
    assert np.allclose(right.tool().pos, before[1], atol=1e-5)
    rig.engage("right")
    rig.move([0.0, 0.0, 0.1], hand="right")
    rig.step(40)
    assert np.allclose(right.tool().pos - before[1], [0.0, 0.0, 0.06], atol=5e-4)


def test_the_policy_acts_until_the_operator_engages_and_takes_over_without_a_jump() -> None:
    rig = Rig()
    action = np.zeros(7, dtype=np.float32)
    action[0] = 0.2
    info = rig.step(20, action)
    assert not info["intervention"]
    assert np.array_equal(info["action"], action)
    rig.device.trigger["right"] = 1.0
    before = rig.arm.target()
    info = rig.step(1, action)
    assert info["intervention"]
    assert np.allclose(info["action"][:6], 0.0, atol=1e-6)
    assert np.allclose(rig.arm.target().pos, before.pos, atol=1e-8)
    rig.device.trigger["right"] = 0.0
    assert not rig.step(2, action)["intervention"]


def test_a_left_handed_operator_drives_the_only_arm_with_the_left_hand() -> None:
    rig = Rig(profile=Profile(hand="left", filter="none"))
    before = settled_tool(rig)
    rig.engage("right")
    rig.move([0.1, 0.0, 0.0], hand="right")
    assert np.allclose(settled_tool(rig).pos, before.pos, atol=1e-5)
    rig.engage("left")
    rig.move([0.1, 0.0, 0.0], hand="left")
    assert np.allclose(settled_tool(rig).pos - before.pos, [0.06, 0.0, 0.0], atol=5e-4)
