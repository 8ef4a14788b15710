meta:
  id: kiln_v2
  title: Kiln v2 tensor container
  application: Kiln
  file-extension: kiln
  tags:
    - machine-learning
    - serialization
  license: MIT
  ks-version: 0.11
  endian: le
doc: |
  Kiln v2 stores tensors: bits plus a description. The payload is the array, so
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
doc-ref: docs/kiln-v2-layout.md
seq:
  - id: header
    type: header
    doc: The first 64 bytes, from which everything before the payloads is found.
    doc-ref: docs/kiln-v2-layout.md#header-64-bytes
  - id: descriptors
    type: descriptor
    repeat: expr
    repeat-expr: header.num_tensors
    doc: |
      The directory. Indexes (`scale_index`, `outer_index`) count from its
      first descriptor, which is 0.
    doc-ref: docs/kiln-v2-layout.md#descriptor-128-bytes
  - id: names
    size: >-
      (header.len_names >= 0 and header.len_names <= (_io.size - _io.pos).as<u8>
      ? header.len_names : (_io.size - _io.pos + 1).as<u8>).as<u8>
    doc: |
      The name pool, `len_names` bytes: UTF-8 without terminators. Each
      descriptor says which bytes are its name; names may share bytes, and
      bytes may be unused.

      Where the file is too short for it, one byte more than is left is asked
      for. That ends the parse in every target language, and without an
      allocation of `len_names` bytes; some would take it modulo 2^32.
    doc-ref: docs/kiln-v2-layout.md#file
types:
  header:
    -webide-representation: 'version {version:dec}, {num_tensors:dec} tensors'
    doc: What kind of file this is, and how long its parts are.
    doc-ref: docs/kiln-v2-layout.md#header-64-bytes
    seq:
      - id: magic
        contents: [0x89, "KILN", 0x0d, 0x0a, 0x1a]
        doc: |
          The signature. Its first byte is not ASCII and its line ends are of
          both kinds, so that a transfer that changes text is noticed.
      - id: version
        type: u2
        valid: 2
        doc: The version of the layout, 2.
      - id: reserved1
        -orig-id: reserved
        type: u2
        doc: Must be 0.
      - id: num_tensors
        type: u4
        doc: Number of descriptors in the directory.
      - id: len_names
        type: u8
        doc: Size of the name pool in bytes.
      - id: len_file
        type: u8
        doc: Size of the whole file in bytes, as its writer left it.
      - id: reserved2
        -orig-id: reserved
        size: 32
        doc: Must be 0.
    instances:
      ofs_descriptors:
        value: sizeof<header>.as<u8>
        doc: Where the directory starts, in bytes from the start of the file.
      len_descriptor:
        value: sizeof<descriptor>.as<u8>
        doc: Size of one descriptor in bytes.
      ofs_names:
        value: (sizeof<header>.as<u8> + sizeof<descriptor>.as<u8> * num_tensors.as<u8>).as<u8>
        doc: Where the name pool starts, in bytes from the start of the file.
  descriptor:
    -webide-representation: '{name}: {dtype_name}, rank {rank:dec}, {element_count:dec} elements, scheme {scheme:dec}'
    doc: |
      One tensor: its name, what its bits are, where they are, and which
      tensors scale it.
    doc-ref: docs/kiln-v2-layout.md#descriptor-128-bytes
    seq:
      - id: ofs_name
        type: u4
        doc: Where the name starts, in bytes from the start of the name pool.
      - id: len_name
        type: u2
        doc: Length of the name in bytes of UTF-8; at least 1.
      - id: dtype
        type: u2
        doc: |
          What one element is. The low byte is its width in bits, the high byte
          tells apart formats of one width. See `dtype_enum` for the name.
        doc-ref: docs/kiln-v2-layout.md#dtype
      - id: rank
        type: u2
        doc: Number of dimensions, 0 to 8.
      - id: scheme
        type: u2
        doc: |
          Whether other tensors scale this one: 0 none, 1 scales, 2 scales and
          outer. See `scheme_enum` for the name.
      - id: quant_axis
        type: u2
        doc: |
          The axis along which `group_size` elements share a scale; less than
          `rank`. `no_axis` (0xFFFF) for scheme 0.
      - id: reserved1
        -orig-id: reserved
        type: u2
        doc: Must be 0.
      - id: group_size
        type: u4
        doc: |
          Number of elements that one scale covers along `quant_axis`; the last
          group may hold fewer. 0 for scheme 0.
      - id: scale_index
        type: u4
        doc: |
          Index of the descriptor of the scale tensor. `no_index` (0xFFFFFFFF)
          for scheme 0.
      - id: outer_index
        type: u4
        doc: |
          Index of the descriptor of the outer scale, one f32. `no_index`
          (0xFFFFFFFF) for schemes 0 and 1.
      - id: foreign_tag
        type: u4
        doc: |
          The writer's own code for the block layout of a foreign tensor; 0 for
          any other dtype.
      - id: ofs_data
        type: u8
        doc: Where the payload starts, in bytes from the start of the file; a multiple of 64.
      - id: len_data
        type: u8
        doc: Size of the payload in bytes.
      - id: block_elements
        type: u4
        doc: Elements in one block of a foreign tensor; 0 for any other dtype.
      - id: block_bytes
        type: u4
        doc: Bytes in one block of a foreign tensor; 0 for any other dtype.
      - id: reserved2
        -orig-id: reserved
        type: u8
        doc: Must be 0.
      - id: shape
        type: u8
        repeat: expr
        repeat-expr: 8
        doc: |
          Length of each dimension in elements, outermost first, row-major.
          Entries from `rank` on are 0.
    instances:
      no_axis:
        value: 0xffff.as<u2>
        doc: The `quant_axis` of a tensor that has no such axis.
      no_index:
        value: 0xffffffff.as<u4>
        doc: The `scale_index` or `outer_index` of a tensor that has no such tensor.
      max_rank:
        value: 8.as<u2>
        doc: The number of entries in `shape`, and so the greatest sound `rank`.
      dtype_enum:
        value: dtype
        enum: dtype
        doc: The name of `dtype`, where the table has one.
        doc-ref: docs/kiln-v2-layout.md#dtype
      dtype_name:
        value: >-
          (dtype == 0x0104 ? "u4" :
           dtype == 0x0108 ? "u8" :
           dtype == 0x0110 ? "u16" :
           dtype == 0x0120 ? "u32" :
           dtype == 0x0140 ? "u64" :
           dtype == 0x0204 ? "i4" :
           dtype == 0x0208 ? "i8" :
           dtype == 0x0210 ? "i16" :
           dtype == 0x0220 ? "i32" :
           dtype == 0x0240 ? "i64" :
           dtype == 0x0310 ? "f16" :
           dtype == 0x0320 ? "f32" :
           dtype == 0x0340 ? "f64" :
           dtype == 0x0410 ? "bf16" :
           dtype == 0x0508 ? "f8e4m3" :
           dtype == 0x0608 ? "f8e5m2" :
           dtype == 0x0708 ? "f8e4m3fnuz" :
           dtype == 0x0808 ? "f8e5m2fnuz" :
           dtype == 0x0908 ? "e8m0" :
           dtype == 0x0a06 ? "e2m3" :
           dtype == 0x0b06 ? "e3m2" :
           dtype == 0x0c04 ? "e2m1" :
           dtype == 0x0d08 ? "bool" :
           dtype == 0x0e40 ? "c64" :
           dtype == 0x0e80 ? "c128" :
           dtype == 0xff00 ? "foreign" :
           "unknown")
        doc: |
          The name of `dtype` as text, as the layout page writes it, for targets
          whose enums have no text or one in capitals; "unknown" for any other code.
        doc-ref: docs/kiln-v2-layout.md#dtype
      scheme_enum:
        value: scheme
        enum: scheme
        doc: The name of `scheme`, where there is one.
      element_bits:
        value: dtype & 0xff
        doc: Width of one element in bits; 0 for a foreign tensor.
      is_foreign:
        value: dtype == 0xff00
        doc: |
          Whether the payload is blocks of a layout that another format defines.
          Kiln stores them whole and reads nothing inside them.
      is_quantized:
        value: scheme == 1 or scheme == 2
        doc: Whether the tensor's scheme says that another tensor scales it.
      has_axis:
        value: quant_axis != no_axis
        doc: Whether `quant_axis` names an axis, sound or not.
      has_scale:
        value: scale_index != no_index
        doc: Whether `scale_index` names a tensor, sound or not.
      has_outer:
        value: outer_index != no_index
        doc: Whether `outer_index` names a tensor, sound or not.
      element_count:
        value: >-
          ((rank > 0 ? shape[0] : 1.as<u8>).as<u8>
          * (rank > 1 ? shape[1] : 1.as<u8>).as<u8>
          * (rank > 2 ? shape[2] : 1.as<u8>).as<u8>
          * (rank > 3 ? shape[3] : 1.as<u8>).as<u8>
          * (rank > 4 ? shape[4] : 1.as<u8>).as<u8>
          * (rank > 5 ? shape[5] : 1.as<u8>).as<u8>
          * (rank > 6 ? shape[6] : 1.as<u8>).as<u8>
          * (rank > 7 ? shape[7] : 1.as<u8>).as<u8>).as<u8>
        doc: |
          Number of elements: the product of the first `rank` entries of
          `shape`, where the product of no dimensions is 1.
      has_groups:
        value: is_quantized and rank <= max_rank and quant_axis < rank and group_size != 0
        doc: Whether the descriptor is sound enough for its groups to be counted.
      num_groups:
        value: >-
          (shape[quant_axis] == 0 ? 0.as<u8>
          : ((shape[quant_axis] - 1) / group_size.as<u8> + 1).as<u8>).as<u8>
        if: has_groups
        doc: Number of groups along `quant_axis`, ceil(shape[quant_axis] / group_size).
      num_scales:
        value: >-
          (num_groups
          * (rank > 0 and quant_axis != 0 ? shape[0] : 1.as<u8>).as<u8>
          * (rank > 1 and quant_axis != 1 ? shape[1] : 1.as<u8>).as<u8>
          * (rank > 2 and quant_axis != 2 ? shape[2] : 1.as<u8>).as<u8>
          * (rank > 3 and quant_axis != 3 ? shape[3] : 1.as<u8>).as<u8>
          * (rank > 4 and quant_axis != 4 ? shape[4] : 1.as<u8>).as<u8>
          * (rank > 5 and quant_axis != 5 ? shape[5] : 1.as<u8>).as<u8>
          * (rank > 6 and quant_axis != 6 ? shape[6] : 1.as<u8>).as<u8>
          * (rank > 7 and quant_axis != 7 ? shape[7] : 1.as<u8>).as<u8>).as<u8>
        if: has_groups
        doc: |
          Number of elements that the scale tensor must have: `num_groups`
          times the other dimensions.
      scale:
        -webide-parse-mode: lazy
        value: _root.descriptors[scale_index]
        if: >-
          has_scale and scale_index.as<u8> < _root.descriptors.size.as<u8>
          and _root.descriptors[scale_index].scale_index == no_index
          and _root.descriptors[scale_index].outer_index == no_index
        doc: |
          The descriptor of the scale tensor. It can stand later in the
          directory, so it is there only once the whole directory is read.
          It is absent where it names a scale or an outer itself: that is a
          chain, which no sound file has, and a chain can be a cycle.
      outer:
        -webide-parse-mode: lazy
        value: _root.descriptors[outer_index]
        if: >-
          has_outer and outer_index.as<u8> < _root.descriptors.size.as<u8>
          and _root.descriptors[outer_index].scale_index == no_index
          and _root.descriptors[outer_index].outer_index == no_index
        doc: |
          The descriptor of the outer scale. It can stand later in the
          directory, so it is there only once the whole directory is read.
          It is absent where it names a scale or an outer itself: that is a
          chain, which no sound file has, and a chain can be a cycle.
      has_name:
        value: >-
          ofs_name.as<u8> <= _root.header.len_names
          and len_name.as<u8> <= _root.header.len_names - ofs_name.as<u8>
          and _root.header.ofs_names + ofs_name.as<u8> + len_name.as<u8> <= _root._io.size.as<u8>
        doc: Whether the name lies within the name pool, and that part of it within the stream.
      # The Web IDE visits instances in alphabetical order. Were this one after
      # `name`, which reads it, the IDE would take its bytes for the descriptor's
      # and lose the colours of the descriptors that follow.
      encoded_name:
        -webide-parse-mode: lazy
        io: _root._io
        pos: _root.header.ofs_names + ofs_name.as<u8>
        size: len_name
        if: has_name
        doc: The bytes of the name.
      name:
        value: encoded_name.to_s("UTF-8")
        if: has_name
        doc: |
          The name as text. Where `encoded_name` is not UTF-8, it depends on the
          target language whether this fails or holds replacement characters.
      has_payload:
        value: >-
          ofs_data >= 0 and len_data >= 0
          and ofs_data <= _root._io.size.as<u8>
          and len_data <= _root._io.size.as<u8> - ofs_data
        doc: |
          Whether the payload lies within the stream. A target language whose
          64-bit integers are signed sees 2^63 and more as less than 0.
      payload:
        -webide-parse-mode: lazy
        io: _root._io
        pos: ofs_data
        size: len_data
        if: has_payload
        doc: |
          The stored bits. Element i of a b-bit type takes bits i*b to i*b+b-1,
          where bit 0 is the low bit of byte 0. Bits after the last element
          carry no meaning.
enums:
  scheme:
    0:
      id: none
      doc: No link; the elements stand for themselves.
    1:
      id: scales
      doc: One sibling holds a scale for each group.
    2:
      id: scales_and_outer
      doc: A sibling holds a scale for each group, and another one f32 over all.
  dtype:
    0x0104:
      id: u4
      doc: Unsigned integer, 4 bits.
    0x0108:
      id: u8
      doc: Unsigned integer, 8 bits.
    0x0110:
      id: u16
      doc: Unsigned integer, 16 bits.
    0x0120:
      id: u32
      doc: Unsigned integer, 32 bits.
    0x0140:
      id: u64
      doc: Unsigned integer, 64 bits.
    0x0204:
      id: i4
      doc: Signed integer, two's complement, 4 bits.
    0x0208:
      id: i8
      doc: Signed integer, two's complement, 8 bits.
    0x0210:
      id: i16
      doc: Signed integer, two's complement, 16 bits.
    0x0220:
      id: i32
      doc: Signed integer, two's complement, 32 bits.
    0x0240:
      id: i64
      doc: Signed integer, two's complement, 64 bits.
    0x0310:
      id: f16
      doc: IEEE 754 binary16.
    0x0320:
      id: f32
      doc: IEEE 754 binary32.
    0x0340:
      id: f64
      doc: IEEE 754 binary64.
    0x0410:
      id: bf16
      doc: The upper half of an IEEE 754 binary32.
    0x0508:
      id: f8e4m3
      doc: OCP 8-bit float, 4 exponent and 3 mantissa bits, without infinities.
    0x0608:
      id: f8e5m2
      doc: OCP 8-bit float, 5 exponent and 2 mantissa bits.
    0x0708:
      id: f8e4m3fnuz
      doc: 8-bit float, 4 exponent and 3 mantissa bits, no infinities, no negative zero.
    0x0808:
      id: f8e5m2fnuz
      doc: 8-bit float, 5 exponent and 2 mantissa bits, no infinities, no negative zero.
    0x0908:
      id: e8m0
      doc: OCP 8-bit power of two, as scales of MX blocks are.
    0x0a06:
      id: e2m3
      doc: OCP 6-bit float, 2 exponent and 3 mantissa bits.
    0x0b06:
      id: e3m2
      doc: OCP 6-bit float, 3 exponent and 2 mantissa bits.
    0x0c04:
      id: e2m1
      doc: OCP 4-bit float, 2 exponent bits and 1 mantissa bit.
    0x0d08:
      id: bool
      doc: Truth value in 8 bits.
    0x0e40:
      id: c64
      doc: Complex number of two binary32, the real part first.
    0x0e80:
      id: c128
      doc: Complex number of two binary64, the real part first.
    0xff00:
      id: foreign
      doc: Blocks that another format defines byte by byte.
