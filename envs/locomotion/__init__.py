"""Locomotion: bodies that MuJoCo simulates, learning to move."""
