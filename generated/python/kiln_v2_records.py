# Made from ksy/kiln_v2.ksy by tools/generate.py; edit the .ksy, not this file.

"""The fixed-size records and the constants of Kiln v2, as plain data."""

from typing import Any

MAGIC = b'\x89KILN\r\n\x1a'
"""The first bytes of every file."""

VERSION = 2
"""The version of the layout."""

NO_AXIS = 65535
"""The `quant_axis` of a tensor that has no such axis."""

NO_INDEX = 4294967295
"""The `scale_index` or `outer_index` of a tensor that has no such tensor."""

MAX_RANK = 8
"""The number of entries in `shape`, and so the greatest sound `rank`."""

PAGE_NAMES = {'reserved1': 'reserved', 'reserved2': 'reserved'}
"""What the layout page calls a field, where the .ksy had to differ."""

DTYPES = {260: 'u4',
 264: 'u8',
 272: 'u16',
 288: 'u32',
 320: 'u64',
 516: 'i4',
 520: 'i8',
 528: 'i16',
 544: 'i32',
 576: 'i64',
 784: 'f16',
 800: 'f32',
 832: 'f64',
 1040: 'bf16',
 1288: 'f8e4m3',
 1544: 'f8e5m2',
 1800: 'f8e4m3fnuz',
 2056: 'f8e5m2fnuz',
 2312: 'e8m0',
 2566: 'e2m3',
 2822: 'e3m2',
 3076: 'e2m1',
 3336: 'bool',
 3648: 'c64',
 3712: 'c128',
 65280: 'foreign'}
"""The name of each dtype, by code."""

SCHEMES = {0: 'none', 1: 'scales', 2: 'scales_and_outer'}
"""The name of each scheme, by code."""

HEADER: Any = {'names': ['magic',
           'version',
           'reserved1',
           'num_tensors',
           'len_names',
           'len_file',
           'reserved2'],
 'formats': ['V8', '<u2', '<u2', '<u4', '<u8', '<u8', 'V32'],
 'offsets': [0, 8, 10, 12, 16, 24, 32],
 'itemsize': 64}
"""A record as numpy.dtype takes it: names, formats, offsets in bytes."""

HEADER_SIZES = {'magic': 8,
 'version': 2,
 'reserved1': 2,
 'num_tensors': 4,
 'len_names': 8,
 'len_file': 8,
 'reserved2': 32}
"""Size of each field in bytes."""

HEADER_STRUCT = '<8sHHIQQ32s'
"""The record as struct.Struct takes it."""

DESCRIPTOR: Any = {'names': ['ofs_name',
           'len_name',
           'dtype',
           'rank',
           'scheme',
           'quant_axis',
           'reserved1',
           'group_size',
           'scale_index',
           'outer_index',
           'foreign_tag',
           'ofs_data',
           'len_data',
           'block_elements',
           'block_bytes',
           'reserved2',
           'shape'],
 'formats': ['<u4',
             '<u2',
             '<u2',
             '<u2',
             '<u2',
             '<u2',
             '<u2',
             '<u4',
             '<u4',
             '<u4',
             '<u4',
             '<u8',
             '<u8',
             '<u4',
             '<u4',
             '<u8',
             ('<u8', (8,))],
 'offsets': [0, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 52, 56, 64],
 'itemsize': 128}
"""A record as numpy.dtype takes it: names, formats, offsets in bytes."""

DESCRIPTOR_SIZES = {'ofs_name': 4,
 'len_name': 2,
 'dtype': 2,
 'rank': 2,
 'scheme': 2,
 'quant_axis': 2,
 'reserved1': 2,
 'group_size': 4,
 'scale_index': 4,
 'outer_index': 4,
 'foreign_tag': 4,
 'ofs_data': 8,
 'len_data': 8,
 'block_elements': 4,
 'block_bytes': 4,
 'reserved2': 8,
 'shape': 64}
"""Size of each field in bytes."""

DESCRIPTOR_STRUCT = '<IHHHHHHIIIIQQIIQ8Q'
"""The record as struct.Struct takes it."""
