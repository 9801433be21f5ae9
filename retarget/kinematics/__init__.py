"""Kinematics of a humanoid behind one small interface, by MuJoCo or by Pinocchio."""
