# This is a generated file! Please edit source .ksy file and use kaitai-struct-compiler to rebuild
# type: ignore

import kaitaistruct
from kaitaistruct import KaitaiStruct, KaitaiStream, BytesIO
from enum import IntEnum


if getattr(kaitaistruct, 'API_VERSION', (0, 9)) < (0, 11):
    raise Exception("Incompatible Kaitai Struct Python API: 0.11 or later is required, but you have %s" % (kaitaistruct.__version__))

class KilnV2(KaitaiStruct):
    """Kiln v2 stores tensors: bits plus a description. The payload is the array, so
    a reader hands back the bits that the writer stored. A quantized tensor names
    its scale, and perhaps an outer scale, by an index into the same directory.
    A reader checks that the counts agree; it never multiplies.
    
    A file is a header of 64 bytes, a directory of `num_tensors` descriptors of
    128 bytes, a name pool of `len_names` bytes, and then the payloads, each at
    the offset that its descriptor gives. All integers are little-endian and
    unsigned.
    
    This specification says what the bytes are and derives from one descriptor
    what a person wants to see beside it. Whether a file is sound is decided by
    the rules of the layout page, which need exact (unbounded) integers: where
    an instance below multiplies, a target language with 64-bit integers wraps at
    2^64, and one whose numbers are doubles is exact up to 2^53.
    
    Only a wrong magic, a wrong version and a header or directory that the file
    is too short for stop the parse. Every other fault leaves the whole tree
    readable: an instance whose premises don't hold is absent.
    
    .. seealso::
       docs/kiln-v2-layout.md
    """

    class Dtype(IntEnum):
        u4 = 260
        u8 = 264
        u16 = 272
        u32 = 288
        u64 = 320
        i4 = 516
        i8 = 520
        i16 = 528
        i32 = 544
        i64 = 576
        f16 = 784
        f32 = 800
        f64 = 832
        bf16 = 1040
        f8e4m3 = 1288
        f8e5m2 = 1544
        f8e4m3fnuz = 1800
        f8e5m2fnuz = 2056
        e8m0 = 2312
        e2m3 = 2566
        e3m2 = 2822
        e2m1 = 3076
        bool = 3336
        c64 = 3648
        c128 = 3712
        foreign = 65280

    class Scheme(IntEnum):
        none = 0
        scales = 1
        scales_and_outer = 2
    def __init__(self, _io, _parent=None, _root=None):
        super(KilnV2, self).__init__(_io)
        self._parent = _parent
        self._root = _root or self
        self._read()

    def _read(self):
        self.header = KilnV2.Header(self._io, self, self._root)
        self.descriptors = []
        for i in range(self.header.num_tensors):
            self.descriptors.append(KilnV2.Descriptor(self._io, self, self._root))

        self.names = self._io.read_bytes((self.header.len_names if  ((self.header.len_names >= 0) and (self.header.len_names <= (self._io.size() - self._io.pos())))  else ((self._io.size() - self._io.pos()) + 1)))


    def _fetch_instances(self):
        pass
        self.header._fetch_instances()
        for i in range(len(self.descriptors)):
            pass
            self.descriptors[i]._fetch_instances()


    class Descriptor(KaitaiStruct):
        """One tensor: its name, what its bits are, where they are, and which
        tensors scale it.
        
        .. seealso::
           docs/kiln-v2-layout.md#descriptor-128-bytes
        """
        def __init__(self, _io, _parent=None, _root=None):
            super(KilnV2.Descriptor, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.ofs_name = self._io.read_u4le()
            self.len_name = self._io.read_u2le()
            self.dtype = self._io.read_u2le()
            self.rank = self._io.read_u2le()
            self.scheme = self._io.read_u2le()
            self.quant_axis = self._io.read_u2le()
            self.reserved1 = self._io.read_u2le()
            self.group_size = self._io.read_u4le()
            self.scale_index = self._io.read_u4le()
            self.outer_index = self._io.read_u4le()
            self.foreign_tag = self._io.read_u4le()
            self.ofs_data = self._io.read_u8le()
            self.len_data = self._io.read_u8le()
            self.block_elements = self._io.read_u4le()
            self.block_bytes = self._io.read_u4le()
            self.reserved2 = self._io.read_u8le()
            self.shape = []
            for i in range(8):
                self.shape.append(self._io.read_u8le())



        def _fetch_instances(self):
            pass
            for i in range(len(self.shape)):
                pass

            _ = self.encoded_name
            if hasattr(self, '_m_encoded_name'):
                pass

            _ = self.payload
            if hasattr(self, '_m_payload'):
                pass


        @property
        def dtype_enum(self):
            """The name of `dtype`, where the table has one.
            
            .. seealso::
               docs/kiln-v2-layout.md#dtype
            """
            if hasattr(self, '_m_dtype_enum'):
                return self._m_dtype_enum

            self._m_dtype_enum = KaitaiStream.resolve_enum(KilnV2.Dtype, self.dtype)
            return getattr(self, '_m_dtype_enum', None)

        @property
        def dtype_name(self):
            """The name of `dtype` as text, as the layout page writes it, for targets
            whose enums have no text or one in capitals; "unknown" for any other code.
            
            .. seealso::
               docs/kiln-v2-layout.md#dtype
            """
            if hasattr(self, '_m_dtype_name'):
                return self._m_dtype_name

            self._m_dtype_name = (u"u4" if self.dtype == 260 else (u"u8" if self.dtype == 264 else (u"u16" if self.dtype == 272 else (u"u32" if self.dtype == 288 else (u"u64" if self.dtype == 320 else (u"i4" if self.dtype == 516 else (u"i8" if self.dtype == 520 else (u"i16" if self.dtype == 528 else (u"i32" if self.dtype == 544 else (u"i64" if self.dtype == 576 else (u"f16" if self.dtype == 784 else (u"f32" if self.dtype == 800 else (u"f64" if self.dtype == 832 else (u"bf16" if self.dtype == 1040 else (u"f8e4m3" if self.dtype == 1288 else (u"f8e5m2" if self.dtype == 1544 else (u"f8e4m3fnuz" if self.dtype == 1800 else (u"f8e5m2fnuz" if self.dtype == 2056 else (u"e8m0" if self.dtype == 2312 else (u"e2m3" if self.dtype == 2566 else (u"e3m2" if self.dtype == 2822 else (u"e2m1" if self.dtype == 3076 else (u"bool" if self.dtype == 3336 else (u"c64" if self.dtype == 3648 else (u"c128" if self.dtype == 3712 else (u"foreign" if self.dtype == 65280 else u"unknown"))))))))))))))))))))))))))
            return getattr(self, '_m_dtype_name', None)

        @property
        def element_bits(self):
            """Width of one element in bits; 0 for a foreign tensor."""
            if hasattr(self, '_m_element_bits'):
                return self._m_element_bits

            self._m_element_bits = self.dtype & 255
            return getattr(self, '_m_element_bits', None)

        @property
        def element_count(self):
            """Number of elements: the product of the first `rank` entries of
            `shape`, where the product of no dimensions is 1.
            """
            if hasattr(self, '_m_element_count'):
                return self._m_element_count

            self._m_element_count = ((((((((self.shape[0] if self.rank > 0 else 1) * (self.shape[1] if self.rank > 1 else 1)) * (self.shape[2] if self.rank > 2 else 1)) * (self.shape[3] if self.rank > 3 else 1)) * (self.shape[4] if self.rank > 4 else 1)) * (self.shape[5] if self.rank > 5 else 1)) * (self.shape[6] if self.rank > 6 else 1)) * (self.shape[7] if self.rank > 7 else 1))
            return getattr(self, '_m_element_count', None)

        @property
        def encoded_name(self):
            """The bytes of the name."""
            if hasattr(self, '_m_encoded_name'):
                return self._m_encoded_name

            if self.has_name:
                pass
                io = self._root._io
                _pos = io.pos()
                io.seek(self._root.header.ofs_names + self.ofs_name)
                self._m_encoded_name = io.read_bytes(self.len_name)
                io.seek(_pos)

            return getattr(self, '_m_encoded_name', None)

        @property
        def has_axis(self):
            """Whether `quant_axis` names an axis, sound or not."""
            if hasattr(self, '_m_has_axis'):
                return self._m_has_axis

            self._m_has_axis = self.quant_axis != self.no_axis
            return getattr(self, '_m_has_axis', None)

        @property
        def has_groups(self):
            """Whether the descriptor is sound enough for its groups to be counted."""
            if hasattr(self, '_m_has_groups'):
                return self._m_has_groups

            self._m_has_groups =  ((self.is_quantized) and (self.rank <= self.max_rank) and (self.quant_axis < self.rank) and (self.group_size != 0)) 
            return getattr(self, '_m_has_groups', None)

        @property
        def has_name(self):
            """Whether the name lies within the name pool, and that part of it within the stream."""
            if hasattr(self, '_m_has_name'):
                return self._m_has_name

            self._m_has_name =  ((self.ofs_name <= self._root.header.len_names) and (self.len_name <= self._root.header.len_names - self.ofs_name) and ((self._root.header.ofs_names + self.ofs_name) + self.len_name <= self._root._io.size())) 
            return getattr(self, '_m_has_name', None)

        @property
        def has_outer(self):
            """Whether `outer_index` names a tensor, sound or not."""
            if hasattr(self, '_m_has_outer'):
                return self._m_has_outer

            self._m_has_outer = self.outer_index != self.no_index
            return getattr(self, '_m_has_outer', None)

        @property
        def has_payload(self):
            """Whether the payload lies within the stream. A target language whose
            64-bit integers are signed sees 2^63 and more as less than 0.
            """
            if hasattr(self, '_m_has_payload'):
                return self._m_has_payload

            self._m_has_payload =  ((self.ofs_data >= 0) and (self.len_data >= 0) and (self.ofs_data <= self._root._io.size()) and (self.len_data <= self._root._io.size() - self.ofs_data)) 
            return getattr(self, '_m_has_payload', None)

        @property
        def has_scale(self):
            """Whether `scale_index` names a tensor, sound or not."""
            if hasattr(self, '_m_has_scale'):
                return self._m_has_scale

            self._m_has_scale = self.scale_index != self.no_index
            return getattr(self, '_m_has_scale', None)

        @property
        def is_foreign(self):
            """Whether the payload is blocks of a layout that another format defines.
            Kiln stores them whole and reads nothing inside them.
            """
            if hasattr(self, '_m_is_foreign'):
                return self._m_is_foreign

            self._m_is_foreign = self.dtype == 65280
            return getattr(self, '_m_is_foreign', None)

        @property
        def is_quantized(self):
            """Whether the tensor's scheme says that another tensor scales it."""
            if hasattr(self, '_m_is_quantized'):
                return self._m_is_quantized

            self._m_is_quantized =  ((self.scheme == 1) or (self.scheme == 2)) 
            return getattr(self, '_m_is_quantized', None)

        @property
        def max_rank(self):
            """The number of entries in `shape`, and so the greatest sound `rank`."""
            if hasattr(self, '_m_max_rank'):
                return self._m_max_rank

            self._m_max_rank = 8
            return getattr(self, '_m_max_rank', None)

        @property
        def name(self):
            """The name as text. Where `encoded_name` is not UTF-8, it depends on the
            target language whether this fails or holds replacement characters.
            """
            if hasattr(self, '_m_name'):
                return self._m_name

            if self.has_name:
                pass
                self._m_name = (self.encoded_name).decode(u"UTF-8")

            return getattr(self, '_m_name', None)

        @property
        def no_axis(self):
            """The `quant_axis` of a tensor that has no such axis."""
            if hasattr(self, '_m_no_axis'):
                return self._m_no_axis

            self._m_no_axis = 65535
            return getattr(self, '_m_no_axis', None)

        @property
        def no_index(self):
            """The `scale_index` or `outer_index` of a tensor that has no such tensor."""
            if hasattr(self, '_m_no_index'):
                return self._m_no_index

            self._m_no_index = 4294967295
            return getattr(self, '_m_no_index', None)

        @property
        def num_groups(self):
            """Number of groups along `quant_axis`, ceil(shape[quant_axis] / group_size)."""
            if hasattr(self, '_m_num_groups'):
                return self._m_num_groups

            if self.has_groups:
                pass
                self._m_num_groups = (0 if self.shape[self.quant_axis] == 0 else ((self.shape[self.quant_axis] - 1) // self.group_size + 1))

            return getattr(self, '_m_num_groups', None)

        @property
        def num_scales(self):
            """Number of elements that the scale tensor must have: `num_groups`
            times the other dimensions.
            """
            if hasattr(self, '_m_num_scales'):
                return self._m_num_scales

            if self.has_groups:
                pass
                self._m_num_scales = ((((((((self.num_groups * (self.shape[0] if  ((self.rank > 0) and (self.quant_axis != 0))  else 1)) * (self.shape[1] if  ((self.rank > 1) and (self.quant_axis != 1))  else 1)) * (self.shape[2] if  ((self.rank > 2) and (self.quant_axis != 2))  else 1)) * (self.shape[3] if  ((self.rank > 3) and (self.quant_axis != 3))  else 1)) * (self.shape[4] if  ((self.rank > 4) and (self.quant_axis != 4))  else 1)) * (self.shape[5] if  ((self.rank > 5) and (self.quant_axis != 5))  else 1)) * (self.shape[6] if  ((self.rank > 6) and (self.quant_axis != 6))  else 1)) * (self.shape[7] if  ((self.rank > 7) and (self.quant_axis != 7))  else 1))

            return getattr(self, '_m_num_scales', None)

        @property
        def outer(self):
            """The descriptor of the outer scale. It can stand later in the
            directory, so it is there only once the whole directory is read.
            It is absent where it names a scale or an outer itself: that is a
            chain, which no sound file has, and a chain can be a cycle.
            """
            if hasattr(self, '_m_outer'):
                return self._m_outer

            if  ((self.has_outer) and (self.outer_index < len(self._root.descriptors)) and (self._root.descriptors[self.outer_index].scale_index == self.no_index) and (self._root.descriptors[self.outer_index].outer_index == self.no_index)) :
                pass
                self._m_outer = self._root.descriptors[self.outer_index]

            return getattr(self, '_m_outer', None)

        @property
        def payload(self):
            """The stored bits. Element i of a b-bit type takes bits i*b to i*b+b-1,
            where bit 0 is the low bit of byte 0. Bits after the last element
            carry no meaning.
            """
            if hasattr(self, '_m_payload'):
                return self._m_payload

            if self.has_payload:
                pass
                io = self._root._io
                _pos = io.pos()
                io.seek(self.ofs_data)
                self._m_payload = io.read_bytes(self.len_data)
                io.seek(_pos)

            return getattr(self, '_m_payload', None)

        @property
        def scale(self):
            """The descriptor of the scale tensor. It can stand later in the
            directory, so it is there only once the whole directory is read.
            It is absent where it names a scale or an outer itself: that is a
            chain, which no sound file has, and a chain can be a cycle.
            """
            if hasattr(self, '_m_scale'):
                return self._m_scale

            if  ((self.has_scale) and (self.scale_index < len(self._root.descriptors)) and (self._root.descriptors[self.scale_index].scale_index == self.no_index) and (self._root.descriptors[self.scale_index].outer_index == self.no_index)) :
                pass
                self._m_scale = self._root.descriptors[self.scale_index]

            return getattr(self, '_m_scale', None)

        @property
        def scheme_enum(self):
            """The name of `scheme`, where there is one."""
            if hasattr(self, '_m_scheme_enum'):
                return self._m_scheme_enum

            self._m_scheme_enum = KaitaiStream.resolve_enum(KilnV2.Scheme, self.scheme)
            return getattr(self, '_m_scheme_enum', None)


    class Header(KaitaiStruct):
        """What kind of file this is, and how long its parts are.
        
        .. seealso::
           docs/kiln-v2-layout.md#header-64-bytes
        """
        def __init__(self, _io, _parent=None, _root=None):
            super(KilnV2.Header, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.magic = self._io.read_bytes(8)
            if not self.magic == b"\x89\x4B\x49\x4C\x4E\x0D\x0A\x1A":
                raise kaitaistruct.ValidationNotEqualError(b"\x89\x4B\x49\x4C\x4E\x0D\x0A\x1A", self.magic, self._io, u"/types/header/seq/0")
            self.version = self._io.read_u2le()
            if not self.version == 2:
                raise kaitaistruct.ValidationNotEqualError(2, self.version, self._io, u"/types/header/seq/1")
            self.reserved1 = self._io.read_u2le()
            self.num_tensors = self._io.read_u4le()
            self.len_names = self._io.read_u8le()
            self.len_file = self._io.read_u8le()
            self.reserved2 = self._io.read_bytes(32)


        def _fetch_instances(self):
            pass

        @property
        def len_descriptor(self):
            """Size of one descriptor in bytes."""
            if hasattr(self, '_m_len_descriptor'):
                return self._m_len_descriptor

            self._m_len_descriptor = 128
            return getattr(self, '_m_len_descriptor', None)

        @property
        def ofs_descriptors(self):
            """Where the directory starts, in bytes from the start of the file."""
            if hasattr(self, '_m_ofs_descriptors'):
                return self._m_ofs_descriptors

            self._m_ofs_descriptors = 64
            return getattr(self, '_m_ofs_descriptors', None)

        @property
        def ofs_names(self):
            """Where the name pool starts, in bytes from the start of the file."""
            if hasattr(self, '_m_ofs_names'):
                return self._m_ofs_names

            self._m_ofs_names = (64 + 128 * self.num_tensors)
            return getattr(self, '_m_ofs_names', None)



