"""The command line. Each command is a file with a dataclass `Args` and a function `run(args) -> int`.

It lives in the kernel and reaches the wings by importing a command's file only when that command is called, and the
wings inside `run`: asking for help loads neither MuJoCo nor Gymnasium.
"""
