// This is a generated file! Please edit source .ksy file and use kaitai-struct-compiler to rebuild

(function (root, factory) {
  if (typeof define === 'function' && define.amd) {
    define(['exports', 'kaitai-struct/KaitaiStream'], factory);
  } else if (typeof exports === 'object' && exports !== null && typeof exports.nodeType !== 'number') {
    factory(exports, require('kaitai-struct/KaitaiStream'));
  } else {
    factory(root.KilnV2 || (root.KilnV2 = {}), root.KaitaiStream);
  }
})(typeof self !== 'undefined' ? self : this, function (KilnV2_, KaitaiStream) {
/**
 * Kiln v2 stores tensors: bits plus a description. The payload is the array, so
 * a reader hands back the bits that the writer stored. A quantized tensor names
 * its scale, and perhaps an outer scale, by an index into the same directory.
 * A reader checks that the counts agree; it never multiplies.
 * 
 * A file is a header of 64 bytes, a directory of `num_tensors` descriptors of
 * 128 bytes, a name pool of `len_names` bytes, and then the payloads, each at
 * the offset that its descriptor gives. All integers are little-endian and
 * unsigned.
 * 
 * This specification says what the bytes are and derives from one descriptor
 * what a person wants to see beside it. Whether a file is sound is decided by
 * the rules of the layout page, which need exact (unbounded) integers: where
 * an instance below multiplies, a target language with 64-bit integers wraps at
 * 2^64, and one whose numbers are doubles is exact up to 2^53.
 * 
 * Only a wrong magic, a wrong version and a header or directory that the file
 * is too short for stop the parse. Every other fault leaves the whole tree
 * readable: an instance whose premises don't hold is absent.
 * @see docs/kiln-v2-layout.md
 */

var KilnV2 = (function() {
  KilnV2.Dtype = Object.freeze({
    U4: 260,
    U8: 264,
    U16: 272,
    U32: 288,
    U64: 320,
    I4: 516,
    I8: 520,
    I16: 528,
    I32: 544,
    I64: 576,
    F16: 784,
    F32: 800,
    F64: 832,
    BF16: 1040,
    F8E4M3: 1288,
    F8E5M2: 1544,
    F8E4M3FNUZ: 1800,
    F8E5M2FNUZ: 2056,
    E8M0: 2312,
    E2M3: 2566,
    E3M2: 2822,
    E2M1: 3076,
    BOOL: 3336,
    C64: 3648,
    C128: 3712,
    FOREIGN: 65280,

    260: "U4",
    264: "U8",
    272: "U16",
    288: "U32",
    320: "U64",
    516: "I4",
    520: "I8",
    528: "I16",
    544: "I32",
    576: "I64",
    784: "F16",
    800: "F32",
    832: "F64",
    1040: "BF16",
    1288: "F8E4M3",
    1544: "F8E5M2",
    1800: "F8E4M3FNUZ",
    2056: "F8E5M2FNUZ",
    2312: "E8M0",
    2566: "E2M3",
    2822: "E3M2",
    3076: "E2M1",
    3336: "BOOL",
    3648: "C64",
    3712: "C128",
    65280: "FOREIGN",
  });

  KilnV2.Scheme = Object.freeze({
    NONE: 0,
    SCALES: 1,
    SCALES_AND_OUTER: 2,

    0: "NONE",
    1: "SCALES",
    2: "SCALES_AND_OUTER",
  });

  function KilnV2(_io, _parent, _root) {
    this._io = _io;
    this._parent = _parent;
    this._root = _root || this;

    this._read();
  }
  KilnV2.prototype._read = function() {
    this.header = new Header(this._io, this, this._root);
    this.descriptors = [];
    for (var i = 0; i < this.header.numTensors; i++) {
      this.descriptors.push(new Descriptor(this._io, this, this._root));
    }
    this.names = this._io.readBytes(( ((this.header.lenNames >= 0) && (this.header.lenNames <= (this._io.size - this._io.pos)))  ? this.header.lenNames : ((this._io.size - this._io.pos) + 1)));
  }

  /**
   * One tensor: its name, what its bits are, where they are, and which
   * tensors scale it.
   * @see docs/kiln-v2-layout.md#descriptor-128-bytes
   */

  var Descriptor = KilnV2.Descriptor = (function() {
    function Descriptor(_io, _parent, _root) {
      this._io = _io;
      this._parent = _parent;
      this._root = _root;

      this._read();
    }
    Descriptor.prototype._read = function() {
      this.ofsName = this._io.readU4le();
      this.lenName = this._io.readU2le();
      this.dtype = this._io.readU2le();
      this.rank = this._io.readU2le();
      this.scheme = this._io.readU2le();
      this.quantAxis = this._io.readU2le();
      this.reserved1 = this._io.readU2le();
      this.groupSize = this._io.readU4le();
      this.scaleIndex = this._io.readU4le();
      this.outerIndex = this._io.readU4le();
      this.foreignTag = this._io.readU4le();
      this.ofsData = this._io.readU8le();
      this.lenData = this._io.readU8le();
      this.blockElements = this._io.readU4le();
      this.blockBytes = this._io.readU4le();
      this.reserved2 = this._io.readU8le();
      this.shape = [];
      for (var i = 0; i < 8; i++) {
        this.shape.push(this._io.readU8le());
      }
    }

    /**
     * The name of `dtype`, where the table has one.
     * @see docs/kiln-v2-layout.md#dtype
     */
    Object.defineProperty(Descriptor.prototype, 'dtypeEnum', {
      get: function() {
        if (this._m_dtypeEnum !== undefined)
          return this._m_dtypeEnum;
        this._m_dtypeEnum = this.dtype;
        return this._m_dtypeEnum;
      }
    });

    /**
     * The name of `dtype` as text, as the layout page writes it, for targets
     * whose enums have no text or one in capitals; "unknown" for any other code.
     * @see docs/kiln-v2-layout.md#dtype
     */
    Object.defineProperty(Descriptor.prototype, 'dtypeName', {
      get: function() {
        if (this._m_dtypeName !== undefined)
          return this._m_dtypeName;
        this._m_dtypeName = (this.dtype == 260 ? "u4" : (this.dtype == 264 ? "u8" : (this.dtype == 272 ? "u16" : (this.dtype == 288 ? "u32" : (this.dtype == 320 ? "u64" : (this.dtype == 516 ? "i4" : (this.dtype == 520 ? "i8" : (this.dtype == 528 ? "i16" : (this.dtype == 544 ? "i32" : (this.dtype == 576 ? "i64" : (this.dtype == 784 ? "f16" : (this.dtype == 800 ? "f32" : (this.dtype == 832 ? "f64" : (this.dtype == 1040 ? "bf16" : (this.dtype == 1288 ? "f8e4m3" : (this.dtype == 1544 ? "f8e5m2" : (this.dtype == 1800 ? "f8e4m3fnuz" : (this.dtype == 2056 ? "f8e5m2fnuz" : (this.dtype == 2312 ? "e8m0" : (this.dtype == 2566 ? "e2m3" : (this.dtype == 2822 ? "e3m2" : (this.dtype == 3076 ? "e2m1" : (this.dtype == 3336 ? "bool" : (this.dtype == 3648 ? "c64" : (this.dtype == 3712 ? "c128" : (this.dtype == 65280 ? "foreign" : "unknown"))))))))))))))))))))))))));
        return this._m_dtypeName;
      }
    });

    /**
     * Width of one element in bits; 0 for a foreign tensor.
     */
    Object.defineProperty(Descriptor.prototype, 'elementBits', {
      get: function() {
        if (this._m_elementBits !== undefined)
          return this._m_elementBits;
        this._m_elementBits = this.dtype & 255;
        return this._m_elementBits;
      }
    });

    /**
     * Number of elements: the product of the first `rank` entries of
     * `shape`, where the product of no dimensions is 1.
     */
    Object.defineProperty(Descriptor.prototype, 'elementCount', {
      get: function() {
        if (this._m_elementCount !== undefined)
          return this._m_elementCount;
        this._m_elementCount = ((((((((this.rank > 0 ? this.shape[0] : 1) * (this.rank > 1 ? this.shape[1] : 1)) * (this.rank > 2 ? this.shape[2] : 1)) * (this.rank > 3 ? this.shape[3] : 1)) * (this.rank > 4 ? this.shape[4] : 1)) * (this.rank > 5 ? this.shape[5] : 1)) * (this.rank > 6 ? this.shape[6] : 1)) * (this.rank > 7 ? this.shape[7] : 1));
        return this._m_elementCount;
      }
    });

    /**
     * The bytes of the name.
     */
    Object.defineProperty(Descriptor.prototype, 'encodedName', {
      get: function() {
        if (this._m_encodedName !== undefined)
          return this._m_encodedName;
        if (this.hasName) {
          var io = this._root._io;
          var _pos = io.pos;
          io.seek(this._root.header.ofsNames + this.ofsName);
          this._m_encodedName = io.readBytes(this.lenName);
          io.seek(_pos);
        }
        return this._m_encodedName;
      }
    });

    /**
     * Whether `quant_axis` names an axis, sound or not.
     */
    Object.defineProperty(Descriptor.prototype, 'hasAxis', {
      get: function() {
        if (this._m_hasAxis !== undefined)
          return this._m_hasAxis;
        this._m_hasAxis = this.quantAxis != this.noAxis;
        return this._m_hasAxis;
      }
    });

    /**
     * Whether the descriptor is sound enough for its groups to be counted.
     */
    Object.defineProperty(Descriptor.prototype, 'hasGroups', {
      get: function() {
        if (this._m_hasGroups !== undefined)
          return this._m_hasGroups;
        this._m_hasGroups =  ((this.isQuantized) && (this.rank <= this.maxRank) && (this.quantAxis < this.rank) && (this.groupSize != 0)) ;
        return this._m_hasGroups;
      }
    });

    /**
     * Whether the name lies within the name pool, and that part of it within the stream.
     */
    Object.defineProperty(Descriptor.prototype, 'hasName', {
      get: function() {
        if (this._m_hasName !== undefined)
          return this._m_hasName;
        this._m_hasName =  ((this.ofsName <= this._root.header.lenNames) && (this.lenName <= this._root.header.lenNames - this.ofsName) && ((this._root.header.ofsNames + this.ofsName) + this.lenName <= this._root._io.size)) ;
        return this._m_hasName;
      }
    });

    /**
     * Whether `outer_index` names a tensor, sound or not.
     */
    Object.defineProperty(Descriptor.prototype, 'hasOuter', {
      get: function() {
        if (this._m_hasOuter !== undefined)
          return this._m_hasOuter;
        this._m_hasOuter = this.outerIndex != this.noIndex;
        return this._m_hasOuter;
      }
    });

    /**
     * Whether the payload lies within the stream. A target language whose
     * 64-bit integers are signed sees 2^63 and more as less than 0.
     */
    Object.defineProperty(Descriptor.prototype, 'hasPayload', {
      get: function() {
        if (this._m_hasPayload !== undefined)
          return this._m_hasPayload;
        this._m_hasPayload =  ((this.ofsData >= 0) && (this.lenData >= 0) && (this.ofsData <= this._root._io.size) && (this.lenData <= this._root._io.size - this.ofsData)) ;
        return this._m_hasPayload;
      }
    });

    /**
     * Whether `scale_index` names a tensor, sound or not.
     */
    Object.defineProperty(Descriptor.prototype, 'hasScale', {
      get: function() {
        if (this._m_hasScale !== undefined)
          return this._m_hasScale;
        this._m_hasScale = this.scaleIndex != this.noIndex;
        return this._m_hasScale;
      }
    });

    /**
     * Whether the payload is blocks of a layout that another format defines.
     * Kiln stores them whole and reads nothing inside them.
     */
    Object.defineProperty(Descriptor.prototype, 'isForeign', {
      get: function() {
        if (this._m_isForeign !== undefined)
          return this._m_isForeign;
        this._m_isForeign = this.dtype == 65280;
        return this._m_isForeign;
      }
    });

    /**
     * Whether the tensor's scheme says that another tensor scales it.
     */
    Object.defineProperty(Descriptor.prototype, 'isQuantized', {
      get: function() {
        if (this._m_isQuantized !== undefined)
          return this._m_isQuantized;
        this._m_isQuantized =  ((this.scheme == 1) || (this.scheme == 2)) ;
        return this._m_isQuantized;
      }
    });

    /**
     * The number of entries in `shape`, and so the greatest sound `rank`.
     */
    Object.defineProperty(Descriptor.prototype, 'maxRank', {
      get: function() {
        if (this._m_maxRank !== undefined)
          return this._m_maxRank;
        this._m_maxRank = 8;
        return this._m_maxRank;
      }
    });

    /**
     * The name as text. Where `encoded_name` is not UTF-8, it depends on the
     * target language whether this fails or holds replacement characters.
     */
    Object.defineProperty(Descriptor.prototype, 'name', {
      get: function() {
        if (this._m_name !== undefined)
          return this._m_name;
        if (this.hasName) {
          this._m_name = KaitaiStream.bytesToStr(this.encodedName, "UTF-8");
        }
        return this._m_name;
      }
    });

    /**
     * The `quant_axis` of a tensor that has no such axis.
     */
    Object.defineProperty(Descriptor.prototype, 'noAxis', {
      get: function() {
        if (this._m_noAxis !== undefined)
          return this._m_noAxis;
        this._m_noAxis = 65535;
        return this._m_noAxis;
      }
    });

    /**
     * The `scale_index` or `outer_index` of a tensor that has no such tensor.
     */
    Object.defineProperty(Descriptor.prototype, 'noIndex', {
      get: function() {
        if (this._m_noIndex !== undefined)
          return this._m_noIndex;
        this._m_noIndex = 4294967295;
        return this._m_noIndex;
      }
    });

    /**
     * Number of groups along `quant_axis`, ceil(shape[quant_axis] / group_size).
     */
    Object.defineProperty(Descriptor.prototype, 'numGroups', {
      get: function() {
        if (this._m_numGroups !== undefined)
          return this._m_numGroups;
        if (this.hasGroups) {
          this._m_numGroups = (this.shape[this.quantAxis] == 0 ? 0 : (Math.floor((this.shape[this.quantAxis] - 1) / this.groupSize) + 1));
        }
        return this._m_numGroups;
      }
    });

    /**
     * Number of elements that the scale tensor must have: `num_groups`
     * times the other dimensions.
     */
    Object.defineProperty(Descriptor.prototype, 'numScales', {
      get: function() {
        if (this._m_numScales !== undefined)
          return this._m_numScales;
        if (this.hasGroups) {
          this._m_numScales = ((((((((this.numGroups * ( ((this.rank > 0) && (this.quantAxis != 0))  ? this.shape[0] : 1)) * ( ((this.rank > 1) && (this.quantAxis != 1))  ? this.shape[1] : 1)) * ( ((this.rank > 2) && (this.quantAxis != 2))  ? this.shape[2] : 1)) * ( ((this.rank > 3) && (this.quantAxis != 3))  ? this.shape[3] : 1)) * ( ((this.rank > 4) && (this.quantAxis != 4))  ? this.shape[4] : 1)) * ( ((this.rank > 5) && (this.quantAxis != 5))  ? this.shape[5] : 1)) * ( ((this.rank > 6) && (this.quantAxis != 6))  ? this.shape[6] : 1)) * ( ((this.rank > 7) && (this.quantAxis != 7))  ? this.shape[7] : 1));
        }
        return this._m_numScales;
      }
    });

    /**
     * The descriptor of the outer scale. It can stand later in the
     * directory, so it is there only once the whole directory is read.
     * It is absent where it names a scale or an outer itself: that is a
     * chain, which no sound file has, and a chain can be a cycle.
     */
    Object.defineProperty(Descriptor.prototype, 'outer', {
      get: function() {
        if (this._m_outer !== undefined)
          return this._m_outer;
        if ( ((this.hasOuter) && (this.outerIndex < this._root.descriptors.length) && (this._root.descriptors[this.outerIndex].scaleIndex == this.noIndex) && (this._root.descriptors[this.outerIndex].outerIndex == this.noIndex)) ) {
          this._m_outer = this._root.descriptors[this.outerIndex];
        }
        return this._m_outer;
      }
    });

    /**
     * The stored bits. Element i of a b-bit type takes bits i*b to i*b+b-1,
     * where bit 0 is the low bit of byte 0. Bits after the last element
     * carry no meaning.
     */
    Object.defineProperty(Descriptor.prototype, 'payload', {
      get: function() {
        if (this._m_payload !== undefined)
          return this._m_payload;
        if (this.hasPayload) {
          var io = this._root._io;
          var _pos = io.pos;
          io.seek(this.ofsData);
          this._m_payload = io.readBytes(this.lenData);
          io.seek(_pos);
        }
        return this._m_payload;
      }
    });

    /**
     * The descriptor of the scale tensor. It can stand later in the
     * directory, so it is there only once the whole directory is read.
     * It is absent where it names a scale or an outer itself: that is a
     * chain, which no sound file has, and a chain can be a cycle.
     */
    Object.defineProperty(Descriptor.prototype, 'scale', {
      get: function() {
        if (this._m_scale !== undefined)
          return this._m_scale;
        if ( ((this.hasScale) && (this.scaleIndex < this._root.descriptors.length) && (this._root.descriptors[this.scaleIndex].scaleIndex == this.noIndex) && (this._root.descriptors[this.scaleIndex].outerIndex == this.noIndex)) ) {
          this._m_scale = this._root.descriptors[this.scaleIndex];
        }
        return this._m_scale;
      }
    });

    /**
     * The name of `scheme`, where there is one.
     */
    Object.defineProperty(Descriptor.prototype, 'schemeEnum', {
      get: function() {
        if (this._m_schemeEnum !== undefined)
          return this._m_schemeEnum;
        this._m_schemeEnum = this.scheme;
        return this._m_schemeEnum;
      }
    });

    /**
     * Where the name starts, in bytes from the start of the name pool.
     */

    /**
     * Length of the name in bytes of UTF-8; at least 1.
     */

    /**
     * What one element is. The low byte is its width in bits, the high byte
     * tells apart formats of one width. See `dtype_enum` for the name.
     * @see docs/kiln-v2-layout.md#dtype
     */

    /**
     * Number of dimensions, 0 to 8.
     */

    /**
     * Whether other tensors scale this one: 0 none, 1 scales, 2 scales and
     * outer. See `scheme_enum` for the name.
     */

    /**
     * The axis along which `group_size` elements share a scale; less than
     * `rank`. `no_axis` (0xFFFF) for scheme 0.
     */

    /**
     * Must be 0.
     */

    /**
     * Number of elements that one scale covers along `quant_axis`; the last
     * group may hold fewer. 0 for scheme 0.
     */

    /**
     * Index of the descriptor of the scale tensor. `no_index` (0xFFFFFFFF)
     * for scheme 0.
     */

    /**
     * Index of the descriptor of the outer scale, one f32. `no_index`
     * (0xFFFFFFFF) for schemes 0 and 1.
     */

    /**
     * The writer's own code for the block layout of a foreign tensor; 0 for
     * any other dtype.
     */

    /**
     * Where the payload starts, in bytes from the start of the file; a multiple of 64.
     */

    /**
     * Size of the payload in bytes.
     */

    /**
     * Elements in one block of a foreign tensor; 0 for any other dtype.
     */

    /**
     * Bytes in one block of a foreign tensor; 0 for any other dtype.
     */

    /**
     * Must be 0.
     */

    /**
     * Length of each dimension in elements, outermost first, row-major.
     * Entries from `rank` on are 0.
     */

    return Descriptor;
  })();

  /**
   * What kind of file this is, and how long its parts are.
   * @see docs/kiln-v2-layout.md#header-64-bytes
   */

  var Header = KilnV2.Header = (function() {
    function Header(_io, _parent, _root) {
      this._io = _io;
      this._parent = _parent;
      this._root = _root;

      this._read();
    }
    Header.prototype._read = function() {
      this.magic = this._io.readBytes(8);
      if (!((KaitaiStream.byteArrayCompare(this.magic, new Uint8Array([137, 75, 73, 76, 78, 13, 10, 26])) == 0))) {
        throw new KaitaiStream.ValidationNotEqualError(new Uint8Array([137, 75, 73, 76, 78, 13, 10, 26]), this.magic, this._io, "/types/header/seq/0");
      }
      this.version = this._io.readU2le();
      if (!(this.version == 2)) {
        throw new KaitaiStream.ValidationNotEqualError(2, this.version, this._io, "/types/header/seq/1");
      }
      this.reserved1 = this._io.readU2le();
      this.numTensors = this._io.readU4le();
      this.lenNames = this._io.readU8le();
      this.lenFile = this._io.readU8le();
      this.reserved2 = this._io.readBytes(32);
    }

    /**
     * Size of one descriptor in bytes.
     */
    Object.defineProperty(Header.prototype, 'lenDescriptor', {
      get: function() {
        if (this._m_lenDescriptor !== undefined)
          return this._m_lenDescriptor;
        this._m_lenDescriptor = 128;
        return this._m_lenDescriptor;
      }
    });

    /**
     * Where the directory starts, in bytes from the start of the file.
     */
    Object.defineProperty(Header.prototype, 'ofsDescriptors', {
      get: function() {
        if (this._m_ofsDescriptors !== undefined)
          return this._m_ofsDescriptors;
        this._m_ofsDescriptors = 64;
        return this._m_ofsDescriptors;
      }
    });

    /**
     * Where the name pool starts, in bytes from the start of the file.
     */
    Object.defineProperty(Header.prototype, 'ofsNames', {
      get: function() {
        if (this._m_ofsNames !== undefined)
          return this._m_ofsNames;
        this._m_ofsNames = (64 + 128 * this.numTensors);
        return this._m_ofsNames;
      }
    });

    /**
     * The signature. Its first byte is not ASCII and its line ends are of
     * both kinds, so that a transfer that changes text is noticed.
     */

    /**
     * The version of the layout, 2.
     */

    /**
     * Must be 0.
     */

    /**
     * Number of descriptors in the directory.
     */

    /**
     * Size of the name pool in bytes.
     */

    /**
     * Size of the whole file in bytes, as its writer left it.
     */

    /**
     * Must be 0.
     */

    return Header;
  })();

  /**
   * The first 64 bytes, from which everything before the payloads is found.
   * @see docs/kiln-v2-layout.md#header-64-bytes
   */

  /**
   * The directory. Indexes (`scale_index`, `outer_index`) count from its
   * first descriptor, which is 0.
   * @see docs/kiln-v2-layout.md#descriptor-128-bytes
   */

  /**
   * The name pool, `len_names` bytes: UTF-8 without terminators. Each
   * descriptor says which bytes are its name; names may share bytes, and
   * bytes may be unused.
   * 
   * Where the file is too short for it, one byte more than is left is asked
   * for. That ends the parse in every target language, and without an
   * allocation of `len_names` bytes; some would take it modulo 2^32.
   * @see docs/kiln-v2-layout.md#file
   */

  return KilnV2;
})();
KilnV2_.KilnV2 = KilnV2;
});
