// SPDX-License-Identifier: Apache-2.0
// Cuts a stream of bytes into lines. Bytes become text only when their line is whole, so a character that falls
// between two chunks stays whole; a line over many chunks is joined once, not again with every chunk.

const newline = 0x0a;

/** The non-empty lines of a UTF-8 stream without their ends; a last line need not be ended. */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  let pending: Buffer[] = [];
  for await (const bytes of chunks) {
    const chunk = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      const line = textOf(pending, chunk, start, end);
      pending = [];
      start = end + 1;
      if (line !== '') yield line;
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
  }
  const rest = textOf(pending, Buffer.alloc(0), 0, 0);
  if (rest !== '') yield rest;
}

function textOf(pending: Buffer[], chunk: Buffer, start: number, end: number): string {
  const text =
    pending.length === 0
      ? chunk.toString('utf8', start, end)
      : Buffer.concat([...pending, chunk.subarray(start, end)]).toString('utf8');
  return text.trim();
}
