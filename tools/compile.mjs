// Compiles a .ksy for tools/generate.py.
//
// usage: node compile.mjs KSY LANGUAGE...
// Prints {"spec": the .ksy as JSON, "files": {language: {path: text}}}.

import fs from "node:fs";
import compiler from "kaitai-struct-compiler";
import yaml from "js-yaml";

const [ksy, ...languages] = process.argv.slice(2);
const spec = yaml.load(fs.readFileSync(ksy, "utf8"));
const files = {};
for (const language of languages) {
  files[language] = await compiler.compile(language, spec, null, false);
}
process.stdout.write(JSON.stringify({ spec, files }));
