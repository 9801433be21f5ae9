"""Drive a robot with a controller and record demonstrations to an HDF5 file.

An episode begins when you take hold (trigger, or start), and ends when the task is done or you say so. Every
episode is on disk before it is announced; running again on the same file goes on with it.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bunraku.cli.config_file import with_config
from bunraku.cli.main import EXIT_OK, say
from bunraku.episode.interrupts import endings_interrupt
from bunraku.errors import BunrakuError, UnknownNameError, did_you_mean
from bunraku.registration import ENVIRONMENTS, env_id

if TYPE_CHECKING:
    from bunraku.policy import OnnxPolicy
    from bunraku.teleop_collect.profile import Profile
    from bunraku.teleop_collect.session import Session


@dataclass(frozen=True)
class Args:
    """Options of `collect`."""

    env: str = "PandaReach"
    """Environment, by its short name."""
    device: str | None = None
    """Where the hand's motion comes from: openvr, spacemouse, gamepad, keyboard, scripted, replay. By default
    SteamVR where it runs."""
    episodes: int = 10
    """Episodes to save."""
    out: Path | None = None
    """The HDF5 file; an existing one of the same environment is gone on with. Default: data/<env>.hdf5."""
    seed: int = 0
    """Seed of the first scene; each further scene has the next one."""
    camera: tuple[str, ...] = ()
    """Cameras whose images are stored with the observations (rendered after each episode, from its states)."""
    image_size: str = "128x128"
    """Size of those images, width x height."""
    viewer: Literal["native", "web", "none"] | None = None
    """Where to show the robot. Default: a window where there is a display, else the web page."""
    host: str = "127.0.0.1"
    """Address that the web page is served on."""
    port: int = 0
    """Port of the web page; 0 takes a free one."""
    policy: Path | None = None
    """Policy exported to ONNX that drives until you take hold, in the environment and with the options that it was
    trained with; where you took over is recorded, for `bunraku train dagger`."""
    control_freq: float = 50.0
    """Control steps per second, up to 200 [Hz]."""
    env_option: tuple[str, ...] = ()
    """Further options of the environment, each name=value, such as goal_orientation=true."""
    device_option: tuple[str, ...] = ()
    """Options of the device, each name=value, such as faults=all."""
    hand: Literal["left", "right"] | None = None
    """The hand that drives where there is one arm (right). Stored in the profile, as what follows."""
    facing: str | None = None
    """Which way you face: with, toward, left or right (of the robot), or degrees."""
    scale: float | None = None
    """Tool motion per hand motion (0.6)."""
    height: float | None = None
    """Your height [m]; the scale is meant for 1.75 m."""
    filter: Literal["low_pass", "one_euro", "none"] | None = None
    """Filter for the hand's pose."""
    profile: str | None = None
    """Profile of the operator, by name or path."""
    save_profile: str | None = None
    """Save facing, scale, height and filter as a profile of this name."""
    operator: str = ""
    """Your name, for the file."""
    max_seconds: float = 60.0
    """Simulated time after which an episode ends as a timeout [s]."""
    trace: Path | None = None
    """Folder for a CSV per episode with target and joint solution of every frame."""
    config: Path | None = None
    """TOML file with any of these options; the command line goes before it."""
    json: bool = False
    """Print one JSON object on stdout."""
    force: bool = False
    """Replace an existing file instead of going on with it."""


def run(args: Args) -> int:
    """Collect; return the exit code."""
    args = with_config(args, sys.argv)
    if args.env not in ENVIRONMENTS:
        raise UnknownNameError("environment", args.env, ENVIRONMENTS)
    if args.episodes < 1:
        raise BunrakuError(f"--episodes must be at least 1, got {args.episodes}")
    if args.seed < 0:
        raise BunrakuError(f"--seed must be 0 or more, got {args.seed}")
    if not 0.0 < args.max_seconds < float("inf"):
        raise BunrakuError(f"--max-seconds must be a positive number of seconds, got {args.max_seconds}")
    session_facts = _prepare(args)
    with endings_interrupt(), ExitStack() as stack:
        session, on_exit = session_facts.open(stack)
        summary = session.run()
    on_exit(summary)
    if args.json:
        sys.stdout.write(json.dumps(summary.as_json()) + "\n")
    return EXIT_OK


@dataclass(frozen=True)
class _Prepared:
    """Everything that was checked before anything is opened."""

    args: Args
    out: Path
    env_kwargs: dict[str, Any]
    device: str
    device_options: dict[str, Any]
    profile: Profile
    viewer: str
    image_size: tuple[int, int]
    policy: OnnxPolicy | None

    def open(self, stack: ExitStack) -> tuple[Session, Any]:
        """Open environment, viewer, device and file, in an order in which a failure writes nothing."""
        import gymnasium

        from bunraku.episode.writer import EpisodeWriter
        from bunraku.teleop_collect.clocks import SimulatedClock
        from bunraku.teleop_collect.devices import open_device
        from bunraku.teleop_collect.session import Session, SessionOptions
        from bunraku.teleop_collect.viewer.base import open_viewer

        args = self.args
        try:
            env = gymnasium.make(
                env_id(args.env), disable_env_checker=True, max_episode_steps=-1, **self.env_kwargs
            )
        except TypeError as error:
            known = env_options(args.env)
            for option in self.env_kwargs:
                if option not in known:
                    raise UnknownNameError(f"option of environment {args.env}", option, known) from error
            raise BunrakuError(f"--env-option: {error}") from error
        stack.callback(env.close)
        from bunraku.plugins import DEVICES, load

        scripted = bool(load(DEVICES, self.device).scripted)
        clock = SimulatedClock() if scripted else time.perf_counter
        options = dict(self.device_options)
        if scripted:
            options.setdefault("scale", self.profile.hand_scale) if self.device == "scripted" else None
        viewer = stack.enter_context(
            open_viewer(self.viewer, host=args.host, port=args.port, title=f"bunraku collect {args.env}")
        )
        if viewer.url:
            say(f"viewer: {viewer.url}")
        if self.device == "keyboard":
            options["keys"] = keyboard_source(stack, viewer, self.viewer)
        device = stack.enter_context(open_device(self.device, clock=clock, seed=args.seed, **options))
        take_images = _image_taker(stack, args.camera, self.image_size, env)
        writer = stack.enter_context(
            EpisodeWriter(
                self.out,
                env_id(args.env),
                self.env_kwargs,
                info={"control_freq": env.unwrapped.task.rates.control_freq, "cameras": list(args.camera)},  # type: ignore[attr-defined]
                force=args.force,
            )
        )
        if writer.recovered is not None and writer.recovered.changed:
            say(writer.recovered.sentence)
        if len(writer):
            say(f"going on with {self.out}: {len(writer)} episodes are in it")
        session = Session(
            env,
            device,
            viewer,
            writer,
            SessionOptions(
                env_id=env_id(args.env),
                episodes=args.episodes,
                seed=args.seed,
                max_seconds=args.max_seconds,
                wait_to_engage=not scripted and self.policy is None,
                real_time=not scripted or self.viewer != "none",
                operator=args.operator,
            ),
            clock=clock,
            profile=self.profile,
            take_images=take_images,
            announce=say,
            on_episode=_tracer(args.trace, args.force),
            policy=self.policy,
        )
        return session, _closing_words


def _prepare(args: Args) -> _Prepared:
    """Check everything that can be checked before anything is opened or written."""
    from bunraku.plugins import DEVICES, names

    size = parse_size(args.image_size)
    device = args.device or _choose_device()
    if device not in names(DEVICES):
        raise UnknownNameError("device", device, names(DEVICES))
    policy, trained = _policy(args)
    recorded = _recorded_options(args.env)
    env_kwargs = {
        **(trained or {**recorded, "control_freq": float(args.control_freq)}),
        **parse_options("--env-option", args.env_option),
    }
    device_options = parse_options("--device-option", args.device_option)
    out = args.out or Path("data") / f"{args.env}.hdf5"
    viewer = args.viewer or _choose_viewer(device)
    return _Prepared(args, out, env_kwargs, device, device_options, _profile(args), viewer, size, policy)


def _recorded_options(env: str) -> dict[str, Any]:
    """Return the options that an environment is recorded with unless told otherwise."""
    from bunraku.plugins import TASKS, load

    drivable = {
        name: getattr(load(TASKS, task), "recorded_options", None) for name, (task, _) in ENVIRONMENTS.items()
    }
    options = drivable[env]
    if options is None:
        known = ", ".join(name for name, found in drivable.items() if found is not None)
        raise BunrakuError(f"{env} has no tool that a hand could drive; give one of: {known}")
    return dict(options)


def _policy(args: Args) -> tuple[OnnxPolicy | None, dict[str, Any] | None]:
    """Return the policy that drives, and the environment's options that it was trained with."""
    if args.policy is None:
        return None, None
    from bunraku.policy import OnnxPolicy

    policy = OnnxPolicy(args.policy)
    trained = policy.env_id if "/" in policy.env_id else env_id(policy.env_id)
    if trained != env_id(args.env):
        raise BunrakuError(
            f"{args.policy} was trained in {trained}, not in {env_id(args.env)}; give its --env"
        )
    return policy, policy.env_kwargs


def _profile(args: Args) -> Profile:
    from bunraku.teleop_collect.profile import Profile, load_profile, save_profile

    profile = load_profile(args.profile) if args.profile else Profile()
    given: dict[str, Any] = {
        "hand": args.hand,
        "facing_deg": None if args.facing is None else parse_facing(args.facing),
        "scale": args.scale,
        "height": args.height,
        "filter": args.filter,
    }
    profile = replace(profile, **{key: value for key, value in given.items() if value is not None})
    if args.save_profile:
        say(f"profile saved: {save_profile(profile, args.save_profile)}")
    return profile


def _choose_device() -> str:
    """Take SteamVR where it runs; else say what there is instead."""
    from bunraku.errors import DeviceError
    from bunraku.teleop_collect.openvr_runtime import BACKGROUND, connection

    try:
        with connection(BACKGROUND):
            return "openvr"
    except DeviceError as error:
        raise BunrakuError(
            f"no VR controller: {error}. Without hardware use --device keyboard, or --device scripted for a simulated"
            " operator; --device spacemouse and gamepad are the others"
        ) from error


def _choose_viewer(device: str) -> str:
    from bunraku.gl import has_display

    if device == "scripted" and not has_display():
        return "none"
    return "native" if has_display() else "web"


def keyboard_source(stack: ExitStack, viewer: Any, kind: str) -> Any:
    """Return where the keyboard device's keys come from: our own window or page, else the terminal."""
    if kind == "none":
        from bunraku.teleop_collect.terminal_keys import TerminalKeys

        return stack.enter_context(TerminalKeys())
    from bunraku.teleop_collect.keys import ViewerKeys

    return ViewerKeys(viewer)


def _image_taker(stack: ExitStack, cameras: tuple[str, ...], size: tuple[int, int], env: Any) -> Any:
    if not cameras:
        return None
    from bunraku.teleop_collect.images import EpisodeImages

    return stack.enter_context(EpisodeImages(env.unwrapped.model, cameras, size))


def _tracer(folder: Path | None, force: bool) -> Any:
    if folder is None:
        return lambda episode: None
    from bunraku.teleop_collect.trace import TraceWriter

    return TraceWriter(folder, force)


def _closing_words(summary: Any) -> None:
    say(
        f"{summary.path}: {summary.episodes} episodes saved ({summary.successes} successes, {summary.failures}"
        f" failures), {summary.discarded} discarded, {summary.frames} frames"
    )


# Values on the command line.


def env_options(env: str) -> list[str]:
    """Return the options that an environment takes, by its short name."""
    import inspect

    from bunraku.envs.single import TaskEnv
    from bunraku.plugins import TASKS, load

    task = load(TASKS, ENVIRONMENTS[env][0])
    named = [*inspect.signature(task).parameters.values(), *inspect.signature(TaskEnv).parameters.values()]
    return [p.name for p in named if p.kind is not inspect.Parameter.VAR_KEYWORD and p.name != "task"]


def parse_options(flag: str, pairs: tuple[str, ...]) -> dict[str, Any]:
    """Return name=value pairs as a dictionary; values are JSON where they can be, else text.

    Raises:
        BunrakuError: If one is not name=value.
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise BunrakuError(f"{flag} needs name=value, got {pair!r}")
        try:
            options[name] = json.loads(text)
        except json.JSONDecodeError:
            options[name] = text
    return options


def parse_size(text: str) -> tuple[int, int]:
    """Return width and height [pixels] of a text such as 640x480.

    Raises:
        BunrakuError: If it is not one.
    """
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        raise BunrakuError(f"an image size is width x height, such as 640x480; got {text!r}")
    return int(width), int(height)


def parse_facing(text: str) -> float:
    """Return the heading [deg] of a word or number for `--facing`.

    Raises:
        BunrakuError: If it is neither.
    """
    from bunraku.teleop_collect.frames import FACING_WORDS

    if text in FACING_WORDS:
        return FACING_WORDS[text]
    try:
        return float(text)
    except ValueError:
        raise BunrakuError(
            f"--facing is a number of degrees or one of {', '.join(FACING_WORDS)}; got {text!r}"
            f"{did_you_mean(text, FACING_WORDS)}"
        ) from None
