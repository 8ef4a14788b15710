"""Kiln dtypes beside NumPy's and ml_dtypes', and packed elements beside whole bytes.

Bits move here; nothing is computed with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kiln_check.constants import BITS
from kiln_check.errors import KilnError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NUMPY_NAMES = {
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
    "bool": "bool",
}
"""The NumPy dtype of each Kiln dtype that has one."""

ML_DTYPES_NAMES = {
    "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "e8m0": "float8_e8m0fnu",
    "e2m3": "float6_e2m3fn",
    "e3m2": "float6_e3m2fn",
    "e2m1": "float4_e2m1fn",
    "i4": "int4",
    "u4": "uint4",
}
"""The ml_dtypes dtype of each Kiln dtype that NumPy has not."""

KILN_NAMES = {name: kiln for table in (NUMPY_NAMES, ML_DTYPES_NAMES) for kiln, name in table.items()}

PACKED_BITS = {dtype: bits for dtype, bits in BITS.items() if bits % 8}
"""Width of the elements that don't fill bytes."""


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype of one element of a Kiln dtype, little-endian.

    Raises KilnError for "foreign", ImportError where ml_dtypes is needed and absent.
    """
    import numpy as np

    if dtype in NUMPY_NAMES:
        native: np.dtype[Any] = np.dtype(NUMPY_NAMES[dtype])
        return native.newbyteorder("<")
    if dtype not in ML_DTYPES_NAMES:
        raise KilnError(f"{dtype} has no NumPy dtype; bytes() has the stored bits")
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(
            f"an array of {dtype} needs the package ml_dtypes: pip install ml_dtypes"
        ) from error
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, ML_DTYPES_NAMES[dtype]))
    return found


def as_array(data: memoryview, dtype: str, shape: tuple[int, ...], *, unpack: bool = False) -> NDArray[Any]:
    """The stored bits as an array.

    Args:
        data: the payload.
        dtype: a name of the layout page's table.
        shape: length of each dimension in elements.
        unpack: for elements of 4 and 6 bits, give one element a byte, in `shape`;
            otherwise they are given as they are stored, as a flat array of bytes.

    Returns:
        A view of `data`, without a copy, unless elements are unpacked. A foreign
        payload is a flat array of bytes.

    Raises:
        ImportError: the dtype is one of ml_dtypes', which is absent.
        ValueError: the payload is too short for the shape, or a dimension is longer
            than NumPy's can be.

    """
    import numpy as np

    stored = np.frombuffer(data, np.uint8)
    if dtype == "foreign" or (dtype in PACKED_BITS and not unpack):
        return stored
    if dtype in PACKED_BITS:
        return _unpack(stored, dtype, shape)
    return stored.view(numpy_dtype(dtype)).reshape(shape)


def _unpack(stored: NDArray[np.uint8], dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Give each element a byte of its own, in its low bits (layout page, "dtype")."""
    import numpy as np

    width = PACKED_BITS[dtype]
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if 8 * stored.size < count * width:
        raise KilnError(f"{dtype} {list(shape)} has {count * width} bits, the payload {8 * stored.size}")
    bits = np.unpackbits(stored, count=count * width, bitorder="little").reshape(count, width)
    codes = np.packbits(bits, axis=1, bitorder="little").reshape(shape)
    if dtype == "i4":  # ml_dtypes keeps the sign in the whole byte
        codes = np.where(codes & 8, codes | np.uint8(0xF0), codes)
    return codes.view(numpy_dtype(dtype))


def pack(array: NDArray[Any], dtype: str) -> NDArray[np.uint8]:
    """Elements of 4 or 6 bits, one in the low bits of each byte, as they are stored.

    Element i goes to bits i·b to i·b+b−1 (layout page, "dtype"). Gives a flat array of bytes.
    """
    import numpy as np

    width = PACKED_BITS[dtype]
    codes = np.ascontiguousarray(array).reshape(-1, 1).view(np.uint8)
    bits = np.unpackbits(codes, axis=1, count=width, bitorder="little")
    return np.packbits(bits.reshape(-1), bitorder="little")
