"""Whole-body control by optimal control: a planar upper body whose right hand has strict priority."""
