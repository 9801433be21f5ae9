"""What is wrong on a command line is said in one line, with exit code 2."""

from __future__ import annotations

import pytest

from bunraku.cli.main import COMMANDS, main, run_command


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["verify", "x.hdf5", "--processes", "many"], "'many'"),
        (["verify", "x.hdf5", "--nonsense", "3"], "--nonsense"),
        (["verify"], "The demonstration file"),
        (["verify", "no such file.hdf5"], "no such file.hdf5"),
        (["dataset", "inf"], "inf"),
        (["collect", "--episodes", "many"], "--episodes"),
        (["collect", "--env", "PlanarWholeBody", "--device", "scripted"], "give one of: PandaReach"),
        (["colect"], "did you mean 'collect'"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("bunraku: error: ")
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run_command(name, ["--help"], prog=f"bunraku {name}")
    assert end.value.code == 0
    assert f"usage: bunraku {name}" in capsys.readouterr().out
