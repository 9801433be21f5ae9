"""Check, edit and hand on datasets: files of demonstrations."""

from __future__ import annotations

from bunraku.cli.dataset_edit import Delete, Filter, Merge, Relabel, Resample, Split, Trim
from bunraku.cli.dataset_exchange import Export
from bunraku.cli.dataset_inspect import Info, Validate

Args = Info | Validate | Merge | Split | Filter | Trim | Resample | Relabel | Delete | Export
"""The subcommands; each is the dataclass of its options, with a method `run`."""


def run(args: Args) -> int:
    """Do what was asked; return the exit code."""
    return args.run()
