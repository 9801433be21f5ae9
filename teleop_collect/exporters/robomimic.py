"""robomimic's HDF5 (`demos.hdf5`): what its `SequenceDataset` reads.

Recorded files have this layout already; the export adds rendered images, leaves our streams out, and keeps the
filter lists. The last state, label and seed go along, which robomimic does not look at, so that the way back
replays bit for bit. Layout as robomimic's own reader takes it, 0.3 to 0.5.
"""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np

from bunraku.dataset.exchange import Source
from bunraku.episode.codec import done_flags
from bunraku.episode.format import demo_name
from bunraku.episode.repair import set_mask


class Robomimic:
    """The exporter."""

    extra = "export"
    versions = ("0.3",)

    def export(self, source: Source, out: Path) -> None:
        """Write `demos.hdf5`."""
        renamed: dict[str, str] = {}
        with h5py.File(out / "demos.hdf5", "w") as h5:
            data = h5.create_group("data")
            args = {"env_name": source.file.env_id, "type": 2, "env_kwargs": source.file.env_kwargs}
            data.attrs["env_args"] = json.dumps(args)
            total = 0
            for number, (name, episode) in enumerate(source.episodes()):
                renamed[name] = demo_name(number)
                group = data.create_group(renamed[name])
                group["actions"] = np.asarray(episode.actions, dtype=np.float32)
                group["rewards"] = episode.rewards
                group["dones"] = done_flags(episode)
                group["states"] = episode.states[:-1]
                group["final_state"] = episode.states[-1]
                for key, array in episode.observations.items():
                    for part, rows in (("obs", array[:-1]), ("next_obs", array[1:])):
                        image = {"chunks": (1, *rows.shape[1:]), "compression": "gzip", "compression_opts": 1}
                        group.create_dataset(f"{part}/{key}", data=rows, **(image if rows.ndim == 4 else {}))
                group.attrs["num_samples"] = len(episode)
                group.attrs["label"], group.attrs["success"] = episode.label, episode.label == "success"
                seed = episode.meta.get("seed")
                if isinstance(seed, int) and -(2**63) <= seed < 2**63:
                    group.attrs["seed"] = seed
                group.attrs["model_file"] = str(episode.meta.get("mjcf", ""))
                total += len(episode)
            data.attrs["total"] = total
            mask = h5.create_group("mask")
            for key, names in source.file.masks.items():
                set_mask(mask, key, [renamed[name].encode() for name in names if name in renamed])


EXPORTER = Robomimic()
