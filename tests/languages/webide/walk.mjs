// Walks Kiln files as the Kaitai Web IDE does, and says what a person would see.
//
// usage: node walk.mjs COMPILER_FOLDER RUNTIME_FOLDER KSY FILE...
//        (the folders hold node_modules with the compiler and with the runtime)
//
// What the IDE does: it compiles the .ksy in debug mode, calls _read() on the root,
// and makes a tree of whatever was read. An object's children are its fields, then
// its instances in the order of the class (alphabetical); a value instance is read
// at once, another one when it is clicked, unless -webide-parse-mode says otherwise
// or lazy parsing is off (which its export to JSON does too). An exception while an
// instance is read marks that instance; one anywhere else empties the tree. Bytes
// get their colours from leaves with a position, in the order of the tree, and a
// leaf that starts before the last one's end gets none.
//
// Prints one line of JSON a file:
//   error      what stopped the parse: null, or its class
//   overflow   whether a walk ran out of stack, by mode: lazy, clicked, eager
//   failures   paths of instances that threw, in any of the three
//   head       bytes of what was read before the payloads: all, those that stand in
//              exactly one field, those that get a colour
//   label      the text of the header's row
//   rows       the text of each row of the directory
//   clicks     paths of the instances that wait for a click

import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const [compilerFolder, runtimeFolder, ksy, ...files] = process.argv.slice(2);
const fromCompiler = createRequire(path.join(path.resolve(compilerFolder), "x.cjs"));
const fromRuntime = createRequire(path.join(path.resolve(runtimeFolder), "x.cjs"));
const compiler = fromCompiler("kaitai-struct-compiler");
const yaml = fromCompiler("js-yaml");
const KaitaiStream = fromRuntime("kaitai-struct/KaitaiStream");

const spec = () => yaml.load(fs.readFileSync(ksy, "utf8"), { schema: yaml.CORE_SCHEMA });
const camel = (id, first) =>
  id.split("_").map((word, i) => (i || first ? word.charAt(0).toUpperCase() + word.slice(1) : word)).join("");

// The types of the .ksy by the name of their class.
const types = new Map();
function collect(id, type) {
  types.set(camel(id, true), type);
  for (const [inner, definition] of Object.entries(type.types ?? {})) collect(inner, definition);
}
const top = spec();
collect(top.meta.id, top);

async function compileForDebugging() {
  const outputs = await compiler.compile("javascript", spec(), null, true);
  const module = {};
  new Function("exports", "require", Object.values(outputs).join("\n"))(module, () => KaitaiStream);
  return module;
}
const generated = await compileForDebugging();
const Root = generated[camel(top.meta.id, true)][camel(top.meta.id, true)]
  ?? generated[camel(top.meta.id, true)];

const visible = (key) => !key.startsWith("_");

class Walk {
  constructor(everything) {
    this.everything = everything;
    this.leaves = [];
    this.failures = [];
    this.unread = [];
  }

  // One node of the tree: {value, label, fields: Map of the nodes that are read}.
  node(value, debug, trail, isSeq) {
    const node = { value, enumName: debug?.enumName, fields: new Map() };
    if (value === undefined) return node;
    if (value instanceof Uint8Array || value === null || typeof value !== "object") {
      if (debug?.start !== undefined && debug.end !== undefined) {
        const offset = debug.ioOffset ?? 0;
        this.leaves.push({ start: offset + debug.start, end: offset + debug.end, isSeq, trail });
      }
    } else if (Array.isArray(value)) {
      value.forEach((item, i) =>
        node.fields.set(String(i), this.node(item, debug?.arr?.[i], [...trail, i], isSeq)));
    } else {
      this.object(node, value, trail, isSeq);
    }
    return node;
  }

  object(node, value, trail, isSeq) {
    node.type = types.get(value.constructor.name);
    const own = new Set([...Object.keys(value), ...Object.keys(value._debug ?? {})].filter(visible));
    for (const key of own)
      node.fields.set(key, this.node(value[key], value._debug?.[key], [...trail, key], isSeq));
    const instances = new Map(
      Object.entries(node.type?.instances ?? {}).map(([id, instance]) => [camel(id, false), instance]));
    for (const key of Object.getOwnPropertyNames(value.constructor.prototype)) {
      if (!visible(key) || key === "constructor" || key === "toString") continue;
      const instance = instances.get(key) ?? {};
      const mode = instance["-webide-parse-mode"];
      const eager = mode === "eager" || (mode !== "lazy" && instance.value !== undefined);
      if (this.everything || eager || Object.hasOwn(value, `_m_${key}`))
        node.fields.set(key, this.instance(value, key, trail));
      else this.unread.push({ value, key, trail });
    }
  }

  instance(value, key, trail) {
    let result;
    try {
      result = value[key];
    } catch (error) {
      this.failures.push([...trail, key].join("/"));
    }
    return this.node(result, value._debug[`_m_${key}`], [...trail, key], false);
  }
}

// The text that -webide-representation gives a node; only fields that are read count.
function representation(node) {
  const pattern = node.type?.["-webide-representation"] ?? "";
  return pattern.replace(/\{([^}]*)\}/g, (_, inside) => {
    const [names, format] = inside.split(":");
    let current = node;
    for (const id of names.split(".")) current = current?.fields.get(camel(id, false));
    return current === undefined ? "" : leafText(current, format);
  });
}

function leafText(node, format) {
  if (node.value === undefined) return "<no value>";
  if (!Number.isInteger(node.value)) return String(node.value);
  if (format === "dec") return String(node.value);
  const label = node.enumName?.split(".").slice(1).reduce((at, name) => at[name], Root)[node.value];
  return label ?? "0x" + node.value.toString(16).toUpperCase();
}

// Of the first `size` bytes: how many stand in exactly one leaf of a seq, and how many get a colour.
function coverage(leaves, size) {
  const times = new Uint32Array(size);
  for (const { start, end, isSeq } of leaves)
    if (isSeq) for (let at = start; at < Math.min(end, size); at++) times[at]++;
  let coloured = 0;
  let last = 0;
  for (const { start, end } of leaves) {
    if (end <= start || start < last) continue;
    if (end <= size) coloured += end - start;
    last = end;
  }
  return { bytes: size, covered: times.filter((n) => n === 1).length, coloured };
}

function overflows(action) {
  try {
    action();
    return false;
  } catch (error) {
    if (error instanceof RangeError && /call stack/.test(error.message)) return true;
    throw error;
  }
}

function look(file) {
  const bytes = fs.readFileSync(file);
  const io = new KaitaiStream(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), 0);
  const root = new Root(io);
  let error = null;
  let read = io.size;
  try {
    root._read();
    read = root._debug.names.end;
  } catch (caught) {
    error = caught.name;
  }
  const walk = new Walk(false);
  let tree;
  const overflow = { lazy: overflows(() => (tree = walk.node(root, undefined, [], true))) };
  const head = coverage(walk.leaves, read);
  const clicked = walk.unread.slice();
  overflow.clicked = overflows(() =>
    clicked.forEach(({ value, key, trail }) => walk.instance(value, key, trail)));
  const all = new Walk(true);
  overflow.eager = overflows(() => all.node(root, undefined, [], true));
  const rows = tree.fields.get("descriptors")?.fields ?? new Map();
  return {
    file: path.basename(file),
    error,
    overflow,
    failures: [...new Set([...walk.failures, ...all.failures])],
    head,
    label: representation(tree.fields.get("header") ?? { fields: new Map() }),
    rows: [...rows.values()].map(representation),
    clicks: clicked.map(({ key, trail }) => [...trail, key].join("/")),
  };
}

for (const file of files) console.log(JSON.stringify(look(file)));
