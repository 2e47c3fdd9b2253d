// SPDX-License-Identifier: Apache-2.0
// What the tests use of Node.js.

declare module "node:test" {
  export function test(name: string, body: () => void | Promise<void>): void;
}

declare module "node:assert/strict" {
  const assert: {
    (value: unknown, message?: string): asserts value;
    equal(actual: unknown, expected: unknown, message?: string): void;
    deepEqual(actual: unknown, expected: unknown, message?: string): void;
    rejects(what: () => Promise<unknown>, expected: RegExp): Promise<void>;
  };
  export default assert;
}
