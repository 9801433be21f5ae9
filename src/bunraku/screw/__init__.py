"""An arm that drives a screw into a board: the figures, and a demonstration that plays them kinematically."""
