// Prints what the generated Java parser sees in Kiln files, one line of JSON a file.
//
// usage: java -cp CLASSES:RUNTIME Dump FILE...
//
// Java's 64-bit integers are signed: they are printed as the unsigned integer of the
// same bits, and a quotient of one that Java takes for negative is null.

import io.kaitai.struct.ByteBufferKaitaiStream;
import io.kaitai.struct.KaitaiStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import kiln.KilnV2;

public class Dump {
    public static void main(String[] paths) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String path : paths) {
            Map<String, Object> dump = dump(Files.readAllBytes(Path.of(path)));
            dump.put("file", Path.of(path).getFileName().toString());
            out.println(json(dump));
        }
        out.flush();
    }

    static Map<String, Object> dump(byte[] data) throws Exception {
        KaitaiStream io = new ByteBufferKaitaiStream(data);
        KilnV2 file;
        try {
            file = new KilnV2(io);
        } catch (RuntimeException error) {
            return stop(data, io.pos(), error);
        }
        Map<String, Object> dump = new TreeMap<>();
        dump.put("header", header(file.header()));
        dump.put("stopped", null);
        dump.put("names", hex(file.names()));
        List<Object> descriptors = new ArrayList<>();
        for (KilnV2.Descriptor one : file.descriptors()) descriptors.add(descriptor(one, file));
        dump.put("descriptors", descriptors);
        return dump;
    }

    /** Says in which part the parser was; the header tells the parts, if it can be read. */
    static Map<String, Object> stop(byte[] data, long position, RuntimeException error) {
        Map<String, Object> stopped = new TreeMap<>();
        stopped.put("part", "header");
        stopped.put("index", null);
        stopped.put("error", error instanceof KaitaiStream.ValidationFailedError ? "validation" : "end");
        Map<String, Object> dump = new TreeMap<>();
        dump.put("header", null);
        try {
            KilnV2.Header header = new KilnV2.Header(new ByteBufferKaitaiStream(data));
            dump.put("header", header(header));
            stopped.put("part", "names");
            if (position < header.ofsNames()) {
                stopped.put("part", "descriptors");
                stopped.put("index", (position - header.ofsDescriptors()) / header.lenDescriptor());
            }
        } catch (RuntimeException same) {
            // the parser stopped in the header
        }
        dump.put("stopped", stopped);
        dump.put("names", null);
        dump.put("descriptors", null);
        return dump;
    }

    static Map<String, Object> header(KilnV2.Header header) {
        Map<String, Object> fields = new TreeMap<>();
        fields.put("magic", hex(header.magic()));
        fields.put("version", header.version());
        fields.put("reserved1", header.reserved1());
        fields.put("num_tensors", header.numTensors());
        fields.put("len_names", wide(header.lenNames()));
        fields.put("len_file", wide(header.lenFile()));
        fields.put("reserved2", hex(header.reserved2()));
        return fields;
    }

    static Map<String, Object> descriptor(KilnV2.Descriptor one, KilnV2 file) throws Exception {
        Map<String, Object> fields = new TreeMap<>();
        fields.put("ofs_name", one.ofsName());
        fields.put("len_name", one.lenName());
        fields.put("dtype", one.dtype());
        fields.put("rank", one.rank());
        fields.put("scheme", one.scheme());
        fields.put("quant_axis", one.quantAxis());
        fields.put("reserved1", one.reserved1());
        fields.put("group_size", one.groupSize());
        fields.put("scale_index", one.scaleIndex());
        fields.put("outer_index", one.outerIndex());
        fields.put("foreign_tag", one.foreignTag());
        fields.put("ofs_data", wide(one.ofsData()));
        fields.put("len_data", wide(one.lenData()));
        fields.put("block_elements", one.blockElements());
        fields.put("block_bytes", one.blockBytes());
        fields.put("reserved2", wide(one.reserved2()));
        fields.put("shape", one.shape().stream().map(Dump::wide).collect(Collectors.toList()));

        fields.put("name", isUtf8(one.encodedName()) ? one.name() : null);
        fields.put("encoded_name", hex(one.encodedName()));
        fields.put("has_name", one.hasName());
        fields.put("dtype_enum", label(one.dtypeEnum()));
        fields.put("scheme_enum", label(one.schemeEnum()));
        fields.put("dtype_name", one.dtypeName());
        fields.put("element_bits", one.elementBits());
        fields.put("element_count", wide(one.elementCount()));
        fields.put("is_foreign", one.isForeign());
        fields.put("is_quantized", one.isQuantized());
        fields.put("has_axis", one.hasAxis());
        fields.put("has_scale", one.hasScale());
        fields.put("has_outer", one.hasOuter());
        fields.put("has_groups", one.hasGroups());
        boolean axisFits = one.hasGroups() && one.shape().get(one.quantAxis()) >= 0;
        fields.put("num_groups", axisFits ? wide(one.numGroups()) : null);
        fields.put("num_scales", axisFits ? wide(one.numScales()) : null);
        fields.put("scale", link(one.scale(), file));
        fields.put("outer", link(one.outer(), file));
        fields.put("has_payload", one.hasPayload());
        fields.put("payload", payload(one.payload()));
        return fields;
    }

    static Map<String, Object> payload(byte[] bytes) throws Exception {
        if (bytes == null) return null;
        Map<String, Object> payload = new TreeMap<>();
        payload.put("length", String.valueOf(bytes.length));
        payload.put("sha256", hex(MessageDigest.getInstance("SHA-256").digest(bytes)));
        return payload;
    }

    /** The index of the very descriptor that the parser hands back. */
    static Integer link(KilnV2.Descriptor target, KilnV2 file) {
        for (int i = 0; i < file.descriptors().size(); i++)
            if (file.descriptors().get(i) == target) return i;
        return null;
    }

    static String wide(Long value) {
        return value == null ? null : Long.toUnsignedString(value);
    }

    static String label(Enum<?> value) {
        return value == null ? null : value.name().toLowerCase(Locale.ROOT);
    }

    static String hex(byte[] bytes) {
        if (bytes == null) return null;
        StringBuilder text = new StringBuilder();
        for (byte one : bytes) text.append(String.format("%02x", one));
        return text.toString();
    }

    static boolean isUtf8(byte[] bytes) {
        if (bytes == null) return false;
        try {
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes));
            return true;
        } catch (CharacterCodingException error) {
            return false;
        }
    }

    static String json(Object value) {
        if (value instanceof Map)
            return ((Map<?, ?>) value).entrySet().stream()
                .map(entry -> json(entry.getKey()) + ":" + json(entry.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
        if (value instanceof Collection)
            return ((Collection<?>) value).stream().map(Dump::json).collect(Collectors.joining(",", "[", "]"));
        return value instanceof String ? quoted((String) value) : String.valueOf(value);
    }

    static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char one : text.toCharArray()) {
            if (one == '"' || one == '\\') quoted.append('\\').append(one);
            else if (one < 0x20) quoted.append(String.format("\\u%04x", (int) one));
            else quoted.append(one);
        }
        return quoted.append('"').toString();
    }
}
