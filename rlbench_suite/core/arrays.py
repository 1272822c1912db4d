"""Names of array types: the name tells the dtype and whether it is a scalar, a comment the shape.

In compiled programs these are JAX arrays, on the host NumPy arrays or scalars, in a batch they have
one more axis in front. JAX's own type would refuse two of the three, so that each is ``Any`` to
type checkers.
"""

from __future__ import annotations

from typing import Any

Array = Any  # Of any dtype and shape

# Scalars, ``()``
Flag = Array  # bool
Float = Array  # Of the task's dtype: float32 or float64
Int = Array  # int32
Int8 = Array
Int16 = Array
UInt8 = Array
UInt16 = Array
UInt32 = Array  # Mostly bits

# Arrays with at least one axis
FlagArray = Array  # bool
FloatArray = Array  # Of the task's dtype
IntArray = Array  # int32
Int8Array = Array
Int16Array = Array
UInt8Array = Array
UInt16Array = Array
UInt32Array = Array  # Mostly bits
