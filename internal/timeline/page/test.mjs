// SPDX-License-Identifier: Apache-2.0
//
// Runs the unit tests in test/ with Node's own test runner. esbuild, which the page is made with, takes the types away. Arguments go to
// Node: npm test -- --test-name-pattern=ticks
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const tests = readdirSync(join(here, "test")).filter((f) => f.endsWith(".test.ts"));
if (tests.length === 0) throw new Error("there are no tests");
const out = mkdtempSync(join(tmpdir(), "timeline-page-"));
try {
  await build({
    entryPoints: tests.map((f) => join(here, "test", f)), outdir: out, outExtension: { ".js": ".mjs" }, bundle: true, format: "esm", platform: "node", target: "es2022",
    sourcemap: "inline", logLevel: "warning",
  });
  const files = tests.map((f) => join(out, basename(f, ".ts") + ".mjs"));
  const args = ["--enable-source-maps", "--test", "--test-reporter=tap", ...process.argv.slice(2), ...files];
  const run = spawnSync(process.execPath, args, { encoding: "utf8", maxBuffer: 1 << 26 });
  const passed = /^# pass (\d+)$/m.exec(run.stdout)?.[1] ?? "0";
  if (run.status === 0 && passed !== "0") console.log(`internal/timeline/page: ${passed} unit tests pass`);
  else {
    console.log(run.stdout + run.stderr);
    process.exitCode = 1;
  }
} finally {
  rmSync(out, { recursive: true });
}
