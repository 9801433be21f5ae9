"""Check, edit and hand on datasets: files of demonstrations."""

from __future__ import annotations

from bunraku.cli.dataset_edit import Delete, Filter, Merge, Relabel, Resample, Split, Trim
from bunraku.cli.dataset_exchange import Export, Import
from bunraku.cli.dataset_inspect import Info, Report, Validate

Args = (
    Info | Validate | Report | Merge | Split | Filter | Trim | Resample | Relabel | Delete | Export | Import
)
"""The subcommands; each is the dataclass of its options, with a method `run`."""


def run(args: Args) -> int:
    """Do what was asked; return the exit code."""
    return args.run()
