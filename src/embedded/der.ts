// SPDX-License-Identifier: Apache-2.0
// The few forms of DER (ASN.1) that a certificate is made of.

/** A value under a tag: tag, length, bytes. */
export function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOf(body.length), body]);
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let left = length; left > 0; left >>= 8) bytes.unshift(left & 0xff);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

export function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, ...parts);
}

export function set(...parts: readonly Buffer[]): Buffer {
  return tagged(0x31, ...parts);
}

export function boolean(value: boolean): Buffer {
  return tagged(0x01, Buffer.from([value ? 0xff : 0]));
}

/** A number that is not negative, big-endian. */
export function integer(bytes: Buffer): Buffer {
  return tagged(0x02, (bytes[0]! & 0x80) === 0 ? bytes : Buffer.concat([Buffer.from([0]), bytes]));
}

export function octetString(bytes: Buffer): Buffer {
  return tagged(0x04, bytes);
}

/** `unused` bits at the end do not count. */
export function bitString(bytes: Buffer, unused: number): Buffer {
  return tagged(0x03, Buffer.from([unused]), bytes);
}

export function utf8(text: string): Buffer {
  return tagged(0x0c, Buffer.from(text, 'utf8'));
}

/** `2.5.4.3` and the like. */
export function objectId(id: string): Buffer {
  const [first = 0, second = 0, ...rest] = id.split('.').map(Number);
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let left = value >> 7; left > 0; left >>= 7) bytes.unshift(0x80 | (left & 0x7f));
  return bytes;
}

/** Whole seconds: two digits of the year until 2049, four from then on, as X.509 wants it. */
export function time(ms: number): Buffer {
  const text = `${new Date(ms).toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)}Z`;
  const short = Number(text.slice(0, 4)) < 2050;
  return tagged(short ? 0x17 : 0x18, Buffer.from(short ? text.slice(2) : text, 'ascii'));
}
