// SPDX-License-Identifier: Apache-2.0
//
// Makes of src/ ../asset/page.html, with markup, the style of its first moment and what unpacks the program,
// ../asset/page.js, the program with its style, which the tool packs into the page,
// ../asset/waiting.html, which is served until there is a page, and ../asset/beside.html, in which two pages lie.
// Called by `make page`. With --check it writes nothing and fails where a file is not what it would write.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));

// Everything that the page depends on, in the order of the names. ../asset_test.go computes the same.
const sources = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json", ...readdirSync(join(here, "src")).map((f) => "src/" + f)].sort();
const hash = createHash("sha256");
for (const name of sources) {
  const content = readFileSync(join(here, name));
  hash.update(`${name} ${content.length}\n`);
  hash.update(content);
}
const made = hash.digest("hex");

async function bundle(entry, define = {}) {
  const out = await build({
    entryPoints: [join(here, "src", entry)], bundle: true, write: false, minify: true, format: "iife", target: "es2022", charset: "ascii", legalComments: "none", define,
  });
  return out.outputFiles[0].text.trim();
}

const sha = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const check = process.argv.includes("--check");

function put(name, content) {
  const target = join(here, "../asset", name);
  if (!check) {
    writeFileSync(target, content);
    console.log(`internal/timeline/asset/${name}: ${Math.round(content.length / 1024)} KiB`);
  } else if (readFileSync(target, "utf8") !== content) {
    console.error(`internal/timeline/asset/${name} is not what internal/timeline/page gives: make page`);
    process.exitCode = 1;
  }
}

// make makes a file. Its policy lets nothing run but its own programs, and those of what lies in it, and the same for styles.
// packed: what lies packed in it.
async function make(name, entry, style, packed = { scripts: [], styles: [] }, inside = []) {
  const script = (await bundle(entry)).replaceAll("</script", "<\\/script");
  const first = await bundle(style);
  const own = { scripts: [script, ...packed.scripts], styles: [first, ...packed.styles] };
  const all = [own, ...inside];
  const policy = [
    "default-src 'none'", `script-src ${all.flatMap((a) => a.scripts).map(sha).join(" ")}`, `style-src ${all.flatMap((a) => a.styles).map(sha).join(" ")}`,
    "img-src data:", "connect-src 'none'", "base-uri 'none'", "form-action 'none'",
  ].join("; ");
  // Functions, because $ means something in replacement texts.
  const page = readFileSync(join(here, "src", name), "utf8")
    .replace(/\n +/g, "\n")
    .replace("<!--policy-->", () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
    .replace("<!--sources-->", () => `<meta name="sources" content="sha256:${made}">`)
    .replace("<!--style-->", () => `<style>${first}</style>`)
    .replace("<!--script-->", () => `<script>${script}</script>`);
  put(name, page);
  return own;
}

const style = await bundle("style.css");
const program = await bundle("main.ts", { STYLE: JSON.stringify(style) });
put("page.js", program);
const page = await make("page.html", "loader.ts", "first.css", { scripts: [program], styles: [style] });
await make("waiting.html", "waiting.ts", "waiting.css");
await make("beside.html", "beside.ts", "beside.css", undefined, [page]);
