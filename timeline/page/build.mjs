// SPDX-License-Identifier: Apache-2.0
//
// Makes ../asset/page.html of src/: one file with markup, style and program. Called by `make page`. With --check it
// writes nothing and fails where the file is not what it would write.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "../asset/page.html");

// Everything that the page depends on, in the order of the names. ../asset_test.go computes the same.
const sources = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json", ...readdirSync(join(here, "src")).map((f) => "src/" + f)].sort();
const hash = createHash("sha256");
for (const name of sources) {
  const content = readFileSync(join(here, name));
  hash.update(`${name} ${content.length}\n`);
  hash.update(content);
}

async function bundle(entry) {
  const out = await build({
    entryPoints: [join(here, "src", entry)], bundle: true, write: false, minify: true, format: "iife", target: "es2022", charset: "ascii", legalComments: "none",
  });
  return out.outputFiles[0].text.trim();
}

const script = (await bundle("main.ts")).replaceAll("</script", "<\\/script");
const style = await bundle("style.css");
const sha = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = `default-src 'none'; script-src ${sha(script)}; style-src ${sha(style)}; img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'`;

// Functions, because $ means something in replacement texts.
const page = readFileSync(join(here, "src/page.html"), "utf8")
  .replace("<!--policy-->", () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
  .replace("<!--sources-->", () => `<meta name="sources" content="sha256:${hash.digest("hex")}">`)
  .replace("<!--style-->", () => `<style>${style}</style>`)
  .replace("<!--script-->", () => `<script>${script}</script>`);

if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== page) {
    console.error("timeline/asset/page.html is not what timeline/page gives: make page");
    process.exit(1);
  }
} else {
  writeFileSync(target, page);
  console.log(`timeline/asset/page.html: ${Math.round(page.length / 1024)} KiB`);
}
