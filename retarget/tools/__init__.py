"""Working on motions: interpolation, joining, cutting, mirroring, looping."""
