"""Datasets: summed up, checked and edited, one episode in memory at a time."""
