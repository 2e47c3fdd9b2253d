// SPDX-License-Identifier: Apache-2.0
// Unpacking data in the page: Base64 of raw deflate.

export async function inflate(packed: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

type FromBase64 = { fromBase64?: (text: string) => Uint8Array };

export function decode(text: string): Uint8Array {
  const fast = (Uint8Array as unknown as FromBase64).fromBase64;
  if (fast) return fast.call(Uint8Array, text);
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}
