"""Computation in JAX with equal bits, and the limits of JAX in a process."""
