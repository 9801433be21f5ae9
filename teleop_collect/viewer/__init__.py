"""Viewers of a session: a web page on MuJoCo Studio, a native window, or none; see `base`."""
