// This is a generated file! Please edit source .ksy file and use kaitai-struct-compiler to rebuild

package kiln;

import io.kaitai.struct.ByteBufferKaitaiStream;
import io.kaitai.struct.KaitaiStruct;
import io.kaitai.struct.KaitaiStream;
import java.io.IOException;
import java.util.Map;
import java.util.HashMap;
import java.util.ArrayList;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Arrays;


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
 * @see "docs/kiln-v2-layout.md"
 */
public class KilnV2 extends KaitaiStruct {
    public static KilnV2 fromFile(String fileName) throws IOException {
        return new KilnV2(new ByteBufferKaitaiStream(fileName));
    }

    public enum Dtype {
        U4(260),
        U8(264),
        U16(272),
        U32(288),
        U64(320),
        I4(516),
        I8(520),
        I16(528),
        I32(544),
        I64(576),
        F16(784),
        F32(800),
        F64(832),
        BF16(1040),
        F8E4M3(1288),
        F8E5M2(1544),
        F8E4M3FNUZ(1800),
        F8E5M2FNUZ(2056),
        E8M0(2312),
        E2M3(2566),
        E3M2(2822),
        E2M1(3076),
        BOOL(3336),
        C64(3648),
        C128(3712),
        FOREIGN(65280);

        private final long id;
        Dtype(long id) { this.id = id; }
        public long id() { return id; }
        private static final Map<Long, Dtype> byId = new HashMap<Long, Dtype>(26);
        static {
            for (Dtype e : Dtype.values())
                byId.put(e.id(), e);
        }
        public static Dtype byId(long id) { return byId.get(id); }
    }

    public enum Scheme {
        NONE(0),
        SCALES(1),
        SCALES_AND_OUTER(2);

        private final long id;
        Scheme(long id) { this.id = id; }
        public long id() { return id; }
        private static final Map<Long, Scheme> byId = new HashMap<Long, Scheme>(3);
        static {
            for (Scheme e : Scheme.values())
                byId.put(e.id(), e);
        }
        public static Scheme byId(long id) { return byId.get(id); }
    }

    public KilnV2(KaitaiStream _io) {
        this(_io, null, null);
    }

    public KilnV2(KaitaiStream _io, KaitaiStruct _parent) {
        this(_io, _parent, null);
    }

    public KilnV2(KaitaiStream _io, KaitaiStruct _parent, KilnV2 _root) {
        super(_io);
        this._parent = _parent;
        this._root = _root == null ? this : _root;
        _read();
    }
    private void _read() {
        this.header = new Header(this._io, this, _root);
        this.descriptors = new ArrayList<Descriptor>();
        for (int i = 0; i < header().numTensors(); i++) {
            this.descriptors.add(new Descriptor(this._io, this, _root));
        }
        this.names = this._io.readBytes(((Number) (( ((header().lenNames() >= 0) && (header().lenNames() <= ((Number) (_io().size() - _io().pos())).longValue()))  ? header().lenNames() : ((Number) ((_io().size() - _io().pos()) + 1)).longValue()))).longValue());
    }

    public void _fetchInstances() {
        this.header._fetchInstances();
        for (int i = 0; i < this.descriptors.size(); i++) {
            this.descriptors.get(((Number) (i)).intValue())._fetchInstances();
        }
    }

    /**
     * One tensor: its name, what its bits are, where they are, and which
     * tensors scale it.
     * @see "docs/kiln-v2-layout.md#descriptor-128-bytes"
     */
    public static class Descriptor extends KaitaiStruct {
        public static Descriptor fromFile(String fileName) throws IOException {
            return new Descriptor(new ByteBufferKaitaiStream(fileName));
        }

        public Descriptor(KaitaiStream _io) {
            this(_io, null, null);
        }

        public Descriptor(KaitaiStream _io, KilnV2 _parent) {
            this(_io, _parent, null);
        }

        public Descriptor(KaitaiStream _io, KilnV2 _parent, KilnV2 _root) {
            super(_io);
            this._parent = _parent;
            this._root = _root;
            _read();
        }
        private void _read() {
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
            this.shape = new ArrayList<Long>();
            for (int i = 0; i < 8; i++) {
                this.shape.add(this._io.readU8le());
            }
        }

        public void _fetchInstances() {
            for (int i = 0; i < this.shape.size(); i++) {
            }
            encodedName();
            if (this.encodedName != null) {
            }
            payload();
            if (this.payload != null) {
            }
        }
        private Dtype dtypeEnum;

        /**
         * The name of `dtype`, where the table has one.
         * @see "docs/kiln-v2-layout.md#dtype"
         */
        public Dtype dtypeEnum() {
            if (this.dtypeEnum != null)
                return this.dtypeEnum;
            this.dtypeEnum = KilnV2.Dtype.byId(dtype());
            return this.dtypeEnum;
        }
        private String dtypeName;

        /**
         * The name of `dtype` as text, as the layout page writes it, for targets
         * whose enums have no text or one in capitals; "unknown" for any other code.
         * @see "docs/kiln-v2-layout.md#dtype"
         */
        public String dtypeName() {
            if (this.dtypeName != null)
                return this.dtypeName;
            this.dtypeName = (dtype() == 260 ? "u4" : (dtype() == 264 ? "u8" : (dtype() == 272 ? "u16" : (dtype() == 288 ? "u32" : (dtype() == 320 ? "u64" : (dtype() == 516 ? "i4" : (dtype() == 520 ? "i8" : (dtype() == 528 ? "i16" : (dtype() == 544 ? "i32" : (dtype() == 576 ? "i64" : (dtype() == 784 ? "f16" : (dtype() == 800 ? "f32" : (dtype() == 832 ? "f64" : (dtype() == 1040 ? "bf16" : (dtype() == 1288 ? "f8e4m3" : (dtype() == 1544 ? "f8e5m2" : (dtype() == 1800 ? "f8e4m3fnuz" : (dtype() == 2056 ? "f8e5m2fnuz" : (dtype() == 2312 ? "e8m0" : (dtype() == 2566 ? "e2m3" : (dtype() == 2822 ? "e3m2" : (dtype() == 3076 ? "e2m1" : (dtype() == 3336 ? "bool" : (dtype() == 3648 ? "c64" : (dtype() == 3712 ? "c128" : (dtype() == 65280 ? "foreign" : "unknown"))))))))))))))))))))))))));
            return this.dtypeName;
        }
        private Integer elementBits;

        /**
         * Width of one element in bits; 0 for a foreign tensor.
         */
        public Integer elementBits() {
            if (this.elementBits != null)
                return this.elementBits;
            this.elementBits = ((Number) (dtype() & 255)).intValue();
            return this.elementBits;
        }
        private Long elementCount;

        /**
         * Number of elements: the product of the first `rank` entries of
         * `shape`, where the product of no dimensions is 1.
         */
        public Long elementCount() {
            if (this.elementCount != null)
                return this.elementCount;
            this.elementCount = ((Number) (((Number) (((((((((Number) ((rank() > 0 ? shape().get(((int) 0)) : ((long) 1)))).longValue() * ((Number) ((rank() > 1 ? shape().get(((int) 1)) : ((long) 1)))).longValue()) * ((Number) ((rank() > 2 ? shape().get(((int) 2)) : ((long) 1)))).longValue()) * ((Number) ((rank() > 3 ? shape().get(((int) 3)) : ((long) 1)))).longValue()) * ((Number) ((rank() > 4 ? shape().get(((int) 4)) : ((long) 1)))).longValue()) * ((Number) ((rank() > 5 ? shape().get(((int) 5)) : ((long) 1)))).longValue()) * ((Number) ((rank() > 6 ? shape().get(((int) 6)) : ((long) 1)))).longValue()) * ((Number) ((rank() > 7 ? shape().get(((int) 7)) : ((long) 1)))).longValue())).longValue())).longValue();
            return this.elementCount;
        }
        private byte[] encodedName;

        /**
         * The bytes of the name.
         */
        public byte[] encodedName() {
            if (this.encodedName != null)
                return this.encodedName;
            if (hasName()) {
                KaitaiStream io = _root()._io();
                long _pos = io.pos();
                io.seek(_root().header().ofsNames() + ((Number) (ofsName())).longValue());
                this.encodedName = io.readBytes(lenName());
                io.seek(_pos);
            }
            return this.encodedName;
        }
        private Boolean hasAxis;

        /**
         * Whether `quant_axis` names an axis, sound or not.
         */
        public Boolean hasAxis() {
            if (this.hasAxis != null)
                return this.hasAxis;
            this.hasAxis = quantAxis() != noAxis();
            return this.hasAxis;
        }
        private Boolean hasGroups;

        /**
         * Whether the descriptor is sound enough for its groups to be counted.
         */
        public Boolean hasGroups() {
            if (this.hasGroups != null)
                return this.hasGroups;
            this.hasGroups =  ((isQuantized()) && (rank() <= maxRank()) && (quantAxis() < rank()) && (groupSize() != 0)) ;
            return this.hasGroups;
        }
        private Boolean hasName;

        /**
         * Whether the name lies within the name pool, and that part of it within the stream.
         */
        public Boolean hasName() {
            if (this.hasName != null)
                return this.hasName;
            this.hasName =  ((((Number) (ofsName())).longValue() <= _root().header().lenNames()) && (((Number) (lenName())).longValue() <= _root().header().lenNames() - ((Number) (ofsName())).longValue()) && ((_root().header().ofsNames() + ((Number) (ofsName())).longValue()) + ((Number) (lenName())).longValue() <= ((Number) (_root()._io().size())).longValue())) ;
            return this.hasName;
        }
        private Boolean hasOuter;

        /**
         * Whether `outer_index` names a tensor, sound or not.
         */
        public Boolean hasOuter() {
            if (this.hasOuter != null)
                return this.hasOuter;
            this.hasOuter = outerIndex() != noIndex();
            return this.hasOuter;
        }
        private Boolean hasPayload;

        /**
         * Whether the payload lies within the stream. A target language whose
         * 64-bit integers are signed sees 2^63 and more as less than 0.
         */
        public Boolean hasPayload() {
            if (this.hasPayload != null)
                return this.hasPayload;
            this.hasPayload =  ((ofsData() >= 0) && (lenData() >= 0) && (ofsData() <= ((Number) (_root()._io().size())).longValue()) && (lenData() <= ((Number) (_root()._io().size())).longValue() - ofsData())) ;
            return this.hasPayload;
        }
        private Boolean hasScale;

        /**
         * Whether `scale_index` names a tensor, sound or not.
         */
        public Boolean hasScale() {
            if (this.hasScale != null)
                return this.hasScale;
            this.hasScale = scaleIndex() != noIndex();
            return this.hasScale;
        }
        private Boolean isForeign;

        /**
         * Whether the payload is blocks of a layout that another format defines.
         * Kiln stores them whole and reads nothing inside them.
         */
        public Boolean isForeign() {
            if (this.isForeign != null)
                return this.isForeign;
            this.isForeign = dtype() == 65280;
            return this.isForeign;
        }
        private Boolean isQuantized;

        /**
         * Whether the tensor's scheme says that another tensor scales it.
         */
        public Boolean isQuantized() {
            if (this.isQuantized != null)
                return this.isQuantized;
            this.isQuantized =  ((scheme() == 1) || (scheme() == 2)) ;
            return this.isQuantized;
        }
        private Integer maxRank;

        /**
         * The number of entries in `shape`, and so the greatest sound `rank`.
         */
        public Integer maxRank() {
            if (this.maxRank != null)
                return this.maxRank;
            this.maxRank = ((Number) (((int) 8))).intValue();
            return this.maxRank;
        }
        private String name;

        /**
         * The name as text. Where `encoded_name` is not UTF-8, it depends on the
         * target language whether this fails or holds replacement characters.
         */
        public String name() {
            if (this.name != null)
                return this.name;
            if (hasName()) {
                this.name = new String(encodedName(), StandardCharsets.UTF_8);
            }
            return this.name;
        }
        private Integer noAxis;

        /**
         * The `quant_axis` of a tensor that has no such axis.
         */
        public Integer noAxis() {
            if (this.noAxis != null)
                return this.noAxis;
            this.noAxis = ((Number) (((int) 65535))).intValue();
            return this.noAxis;
        }
        private Long noIndex;

        /**
         * The `scale_index` or `outer_index` of a tensor that has no such tensor.
         */
        public Long noIndex() {
            if (this.noIndex != null)
                return this.noIndex;
            this.noIndex = ((Number) (((long) 4294967295L))).longValue();
            return this.noIndex;
        }
        private Long numGroups;

        /**
         * Number of groups along `quant_axis`, ceil(shape[quant_axis] / group_size).
         */
        public Long numGroups() {
            if (this.numGroups != null)
                return this.numGroups;
            if (hasGroups()) {
                this.numGroups = ((Number) (((Number) ((shape().get(((Number) (quantAxis())).intValue()) == 0 ? ((long) 0) : ((Number) ((shape().get(((Number) (quantAxis())).intValue()) - 1) / ((Number) (groupSize())).longValue() + 1)).longValue()))).longValue())).longValue();
            }
            return this.numGroups;
        }
        private Long numScales;

        /**
         * Number of elements that the scale tensor must have: `num_groups`
         * times the other dimensions.
         */
        public Long numScales() {
            if (this.numScales != null)
                return this.numScales;
            if (hasGroups()) {
                this.numScales = ((Number) (((Number) ((((((((numGroups() * ((Number) (( ((rank() > 0) && (quantAxis() != 0))  ? shape().get(((int) 0)) : ((long) 1)))).longValue()) * ((Number) (( ((rank() > 1) && (quantAxis() != 1))  ? shape().get(((int) 1)) : ((long) 1)))).longValue()) * ((Number) (( ((rank() > 2) && (quantAxis() != 2))  ? shape().get(((int) 2)) : ((long) 1)))).longValue()) * ((Number) (( ((rank() > 3) && (quantAxis() != 3))  ? shape().get(((int) 3)) : ((long) 1)))).longValue()) * ((Number) (( ((rank() > 4) && (quantAxis() != 4))  ? shape().get(((int) 4)) : ((long) 1)))).longValue()) * ((Number) (( ((rank() > 5) && (quantAxis() != 5))  ? shape().get(((int) 5)) : ((long) 1)))).longValue()) * ((Number) (( ((rank() > 6) && (quantAxis() != 6))  ? shape().get(((int) 6)) : ((long) 1)))).longValue()) * ((Number) (( ((rank() > 7) && (quantAxis() != 7))  ? shape().get(((int) 7)) : ((long) 1)))).longValue())).longValue())).longValue();
            }
            return this.numScales;
        }
        private Descriptor outer;

        /**
         * The descriptor of the outer scale. It can stand later in the
         * directory, so it is there only once the whole directory is read.
         * It is absent where it names a scale or an outer itself: that is a
         * chain, which no sound file has, and a chain can be a cycle.
         */
        public Descriptor outer() {
            if (this.outer != null)
                return this.outer;
            if ( ((hasOuter()) && (((Number) (outerIndex())).longValue() < ((Number) (_root().descriptors().size())).longValue()) && (_root().descriptors().get(((Number) (outerIndex())).intValue()).scaleIndex() == noIndex()) && (_root().descriptors().get(((Number) (outerIndex())).intValue()).outerIndex() == noIndex())) ) {
                this.outer = _root().descriptors().get(((Number) (outerIndex())).intValue());
            }
            return this.outer;
        }
        private byte[] payload;

        /**
         * The stored bits. Element i of a b-bit type takes bits i*b to i*b+b-1,
         * where bit 0 is the low bit of byte 0. Bits after the last element
         * carry no meaning.
         */
        public byte[] payload() {
            if (this.payload != null)
                return this.payload;
            if (hasPayload()) {
                KaitaiStream io = _root()._io();
                long _pos = io.pos();
                io.seek(ofsData());
                this.payload = io.readBytes(lenData());
                io.seek(_pos);
            }
            return this.payload;
        }
        private Descriptor scale;

        /**
         * The descriptor of the scale tensor. It can stand later in the
         * directory, so it is there only once the whole directory is read.
         * It is absent where it names a scale or an outer itself: that is a
         * chain, which no sound file has, and a chain can be a cycle.
         */
        public Descriptor scale() {
            if (this.scale != null)
                return this.scale;
            if ( ((hasScale()) && (((Number) (scaleIndex())).longValue() < ((Number) (_root().descriptors().size())).longValue()) && (_root().descriptors().get(((Number) (scaleIndex())).intValue()).scaleIndex() == noIndex()) && (_root().descriptors().get(((Number) (scaleIndex())).intValue()).outerIndex() == noIndex())) ) {
                this.scale = _root().descriptors().get(((Number) (scaleIndex())).intValue());
            }
            return this.scale;
        }
        private Scheme schemeEnum;

        /**
         * The name of `scheme`, where there is one.
         */
        public Scheme schemeEnum() {
            if (this.schemeEnum != null)
                return this.schemeEnum;
            this.schemeEnum = KilnV2.Scheme.byId(scheme());
            return this.schemeEnum;
        }
        private long ofsName;
        private int lenName;
        private int dtype;
        private int rank;
        private int scheme;
        private int quantAxis;
        private int reserved1;
        private long groupSize;
        private long scaleIndex;
        private long outerIndex;
        private long foreignTag;
        private long ofsData;
        private long lenData;
        private long blockElements;
        private long blockBytes;
        private long reserved2;
        private List<Long> shape;
        private KilnV2 _root;
        private KilnV2 _parent;

        /**
         * Where the name starts, in bytes from the start of the name pool.
         */
        public long ofsName() { return ofsName; }

        /**
         * Length of the name in bytes of UTF-8; at least 1.
         */
        public int lenName() { return lenName; }

        /**
         * What one element is. The low byte is its width in bits, the high byte
         * tells apart formats of one width. See `dtype_enum` for the name.
         * @see "docs/kiln-v2-layout.md#dtype"
         */
        public int dtype() { return dtype; }

        /**
         * Number of dimensions, 0 to 8.
         */
        public int rank() { return rank; }

        /**
         * Whether other tensors scale this one: 0 none, 1 scales, 2 scales and
         * outer. See `scheme_enum` for the name.
         */
        public int scheme() { return scheme; }

        /**
         * The axis along which `group_size` elements share a scale; less than
         * `rank`. `no_axis` (0xFFFF) for scheme 0.
         */
        public int quantAxis() { return quantAxis; }

        /**
         * Must be 0.
         */
        public int reserved1() { return reserved1; }

        /**
         * Number of elements that one scale covers along `quant_axis`; the last
         * group may hold fewer. 0 for scheme 0.
         */
        public long groupSize() { return groupSize; }

        /**
         * Index of the descriptor of the scale tensor. `no_index` (0xFFFFFFFF)
         * for scheme 0.
         */
        public long scaleIndex() { return scaleIndex; }

        /**
         * Index of the descriptor of the outer scale, one f32. `no_index`
         * (0xFFFFFFFF) for schemes 0 and 1.
         */
        public long outerIndex() { return outerIndex; }

        /**
         * The writer's own code for the block layout of a foreign tensor; 0 for
         * any other dtype.
         */
        public long foreignTag() { return foreignTag; }

        /**
         * Where the payload starts, in bytes from the start of the file; a multiple of 64.
         */
        public long ofsData() { return ofsData; }

        /**
         * Size of the payload in bytes.
         */
        public long lenData() { return lenData; }

        /**
         * Elements in one block of a foreign tensor; 0 for any other dtype.
         */
        public long blockElements() { return blockElements; }

        /**
         * Bytes in one block of a foreign tensor; 0 for any other dtype.
         */
        public long blockBytes() { return blockBytes; }

        /**
         * Must be 0.
         */
        public long reserved2() { return reserved2; }

        /**
         * Length of each dimension in elements, outermost first, row-major.
         * Entries from `rank` on are 0.
         */
        public List<Long> shape() { return shape; }
        public KilnV2 _root() { return _root; }
        public KilnV2 _parent() { return _parent; }
    }

    /**
     * What kind of file this is, and how long its parts are.
     * @see "docs/kiln-v2-layout.md#header-64-bytes"
     */
    public static class Header extends KaitaiStruct {
        public static Header fromFile(String fileName) throws IOException {
            return new Header(new ByteBufferKaitaiStream(fileName));
        }

        public Header(KaitaiStream _io) {
            this(_io, null, null);
        }

        public Header(KaitaiStream _io, KilnV2 _parent) {
            this(_io, _parent, null);
        }

        public Header(KaitaiStream _io, KilnV2 _parent, KilnV2 _root) {
            super(_io);
            this._parent = _parent;
            this._root = _root;
            _read();
        }
        private void _read() {
            this.magic = this._io.readBytes(8);
            if (!(Arrays.equals(this.magic, new byte[] { -119, 75, 73, 76, 78, 13, 10, 26 }))) {
                throw new KaitaiStream.ValidationNotEqualError(new byte[] { -119, 75, 73, 76, 78, 13, 10, 26 }, this.magic, this._io, "/types/header/seq/0");
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

        public void _fetchInstances() {
        }
        private Long lenDescriptor;

        /**
         * Size of one descriptor in bytes.
         */
        public Long lenDescriptor() {
            if (this.lenDescriptor != null)
                return this.lenDescriptor;
            this.lenDescriptor = ((Number) (((Number) (128)).longValue())).longValue();
            return this.lenDescriptor;
        }
        private Long ofsDescriptors;

        /**
         * Where the directory starts, in bytes from the start of the file.
         */
        public Long ofsDescriptors() {
            if (this.ofsDescriptors != null)
                return this.ofsDescriptors;
            this.ofsDescriptors = ((Number) (((Number) (64)).longValue())).longValue();
            return this.ofsDescriptors;
        }
        private Long ofsNames;

        /**
         * Where the name pool starts, in bytes from the start of the file.
         */
        public Long ofsNames() {
            if (this.ofsNames != null)
                return this.ofsNames;
            this.ofsNames = ((Number) (((Number) (((Number) (64)).longValue() + ((Number) (128)).longValue() * ((Number) (numTensors())).longValue())).longValue())).longValue();
            return this.ofsNames;
        }
        private byte[] magic;
        private int version;
        private int reserved1;
        private long numTensors;
        private long lenNames;
        private long lenFile;
        private byte[] reserved2;
        private KilnV2 _root;
        private KilnV2 _parent;

        /**
         * The signature. Its first byte is not ASCII and its line ends are of
         * both kinds, so that a transfer that changes text is noticed.
         */
        public byte[] magic() { return magic; }

        /**
         * The version of the layout, 2.
         */
        public int version() { return version; }

        /**
         * Must be 0.
         */
        public int reserved1() { return reserved1; }

        /**
         * Number of descriptors in the directory.
         */
        public long numTensors() { return numTensors; }

        /**
         * Size of the name pool in bytes.
         */
        public long lenNames() { return lenNames; }

        /**
         * Size of the whole file in bytes, as its writer left it.
         */
        public long lenFile() { return lenFile; }

        /**
         * Must be 0.
         */
        public byte[] reserved2() { return reserved2; }
        public KilnV2 _root() { return _root; }
        public KilnV2 _parent() { return _parent; }
    }
    private Header header;
    private List<Descriptor> descriptors;
    private byte[] names;
    private KilnV2 _root;
    private KaitaiStruct _parent;

    /**
     * The first 64 bytes, from which everything before the payloads is found.
     * @see "docs/kiln-v2-layout.md#header-64-bytes"
     */
    public Header header() { return header; }

    /**
     * The directory. Indexes (`scale_index`, `outer_index`) count from its
     * first descriptor, which is 0.
     * @see "docs/kiln-v2-layout.md#descriptor-128-bytes"
     */
    public List<Descriptor> descriptors() { return descriptors; }

    /**
     * The name pool, `len_names` bytes: UTF-8 without terminators. Each
     * descriptor says which bytes are its name; names may share bytes, and
     * bytes may be unused.
     * 
     * Where the file is too short for it, one byte more than is left is asked
     * for. That ends the parse in every target language, and without an
     * allocation of `len_names` bytes; some would take it modulo 2^32.
     * @see "docs/kiln-v2-layout.md#file"
     */
    public byte[] names() { return names; }
    public KilnV2 _root() { return _root; }
    public KaitaiStruct _parent() { return _parent; }
}
