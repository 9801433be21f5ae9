"""Differential inverse kinematics as a box-constrained quadratic program, compiled or plain."""
