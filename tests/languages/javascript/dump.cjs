// Prints what the generated JavaScript parser sees in Kiln files, one line of JSON a file.
//
// usage: node dump.cjs FILE...     (NODE_PATH: the folder of the runtime, generated/javascript)
//
// A JavaScript number is exact up to 2^53. The stream below hands the parser numbers
// that remember the integer they were read from, so fields of 64 bits are exact all
// the same; a number that the parser works out from them is null where it can't be.

const crypto = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const KaitaiStream = require("kaitai-struct/KaitaiStream");
const { KilnV2 } = require("KilnV2");

// A number for the parser; `exact` is the BigInt it stands for.
class Wide extends Number {
  constructor(exact) {
    super(Number(exact));
    this.exact = exact;
  }
}

class ExactStream extends KaitaiStream {
  readU8le() {
    const low = BigInt(this.readU4le());
    return new Wide((BigInt(this.readU4le()) << 32n) | low);
  }
}

const HEADER = ["magic", "version", "reserved1", "num_tensors", "len_names", "len_file", "reserved2"];
const DESCRIPTOR = [
  "ofs_name", "len_name", "dtype", "rank", "scheme", "quant_axis", "reserved1", "group_size",
  "scale_index", "outer_index", "foreign_tag", "ofs_data", "len_data", "block_elements", "block_bytes",
  "reserved2", "shape",
];
const PLAIN = [
  "dtype_name", "has_name", "element_bits", "is_foreign", "is_quantized", "has_axis", "has_scale", "has_outer",
  "has_groups", "has_payload",
];

const camel = (id) => id.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const stream = (bytes) =>
  new ExactStream(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), 0);

function dump(bytes) {
  const io = stream(bytes);
  let file;
  try {
    file = new KilnV2(io);
  } catch (error) {
    return stop(bytes, io.pos, error);
  }
  return {
    header: fields(file.header, HEADER),
    stopped: null,
    names: hex(file.names),
    descriptors: file.descriptors.map((one) => descriptor(one, file)),
  };
}

// Says in which part the parser was; the header tells the parts, if it can be read.
function stop(bytes, position, error) {
  const kind = error.name.startsWith("Validation") ? "validation" : "end";
  const stopped = { part: "header", index: null, error: kind };
  let header = null;
  try {
    header = new KilnV2.Header(stream(bytes));
  } catch {
    // the same error: the parser stopped there
  }
  if (header !== null) {
    stopped.part = "names";
    if (position < header.ofsNames) {
      stopped.part = "descriptors";
      stopped.index = Math.floor((position - header.ofsDescriptors) / header.lenDescriptor);
    }
  }
  return { header: header && fields(header, HEADER), stopped, names: null, descriptors: null };
}

function fields(record, names) {
  return Object.fromEntries(names.map((name) => [name, field(record[camel(name)])]));
}

function field(value) {
  if (value instanceof Wide) return value.exact.toString();
  if (value instanceof Uint8Array) return hex(value);
  return Array.isArray(value) ? value.map(field) : value;
}

function descriptor(one, file) {
  const derived = Object.fromEntries(PLAIN.map((name) => [name, one[camel(name)]]));
  const axisIsExact = one.hasGroups && Number.isSafeInteger(Number(one.shape[one.quantAxis]));
  return {
    ...fields(one, DESCRIPTOR),
    ...derived,
    name: one.hasName && isUtf8(one.encodedName) ? one.name : null,
    encoded_name: one.encodedName === undefined ? null : hex(one.encodedName),
    dtype_enum: KilnV2.Dtype[one.dtypeEnum]?.toLowerCase() ?? null,
    scheme_enum: KilnV2.Scheme[one.schemeEnum]?.toLowerCase() ?? null,
    element_count: number(one.elementCount),
    num_groups: axisIsExact ? number(one.numGroups) : null,
    num_scales: axisIsExact ? number(one.numScales) : null,
    scale: link(one.scale, file),
    outer: link(one.outer, file),
    payload: one.payload === undefined ? null : {
      length: String(one.payload.length),
      sha256: crypto.createHash("sha256").update(one.payload).digest("hex"),
    },
  };
}

// Beyond 2^53 a number that was worked out is not exact.
const number = (value) => (Number.isSafeInteger(Number(value)) ? String(value) : null);

// The index of the very descriptor that the parser hands back.
const link = (target, file) => {
  const index = file.descriptors.indexOf(target);
  return index < 0 ? null : index;
};

function isUtf8(bytes) {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

for (const file of process.argv.slice(2))
  console.log(JSON.stringify(sorted({ file: path.basename(file), ...dump(fs.readFileSync(file)) })));
