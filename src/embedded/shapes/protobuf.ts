// SPDX-License-Identifier: Apache-2.0
// Protobuf bodies of built-in kinds, as client-go's typed clients (and so kubectl create and drain) send them. Only
// reading: answers are JSON, which the same clients accept.
import { formatMicroTime, formatTime } from '../../kube/time.ts';
import { badRequest } from '../status.ts';
import { type FieldType, type Shape, type ShapeField, shapeOfKind } from './shapes.ts';

const magic = Buffer.from('k8s\0', 'latin1');
/** No real object is nested deeper. */
const deepest = 64;

type Fields = Record<string, unknown>;

/** One field on the wire: a number for varints, bytes for all that has a length. */
type WireValue = bigint | Buffer;

/** Reads a body in the API server's envelope. Throws StatusError (400) on anything that is not one of a kind we know. */
export function decodeProtobuf(bytes: Buffer): Fields {
  if (!bytes.subarray(0, 4).equals(magic)) throw malformed('the prefix of the Kubernetes protobuf encoding is missing');
  let apiVersion = '';
  let kind = '';
  let raw: Buffer = Buffer.alloc(0);
  for (const [number, value] of wireFields(bytes.subarray(4))) {
    if (number === 1 && Buffer.isBuffer(value)) {
      for (const [inner, text] of wireFields(value)) {
        if (inner === 1) apiVersion = String(text);
        else if (inner === 2) kind = String(text);
      }
    } else if (number === 2 && Buffer.isBuffer(value)) raw = value;
  }
  const [version = '', group = ''] = apiVersion.split('/').toReversed();
  const shape = shapeOfKind(group, version, kind);
  if (!shape)
    throw malformed(
      `no kind ${JSON.stringify(kind)} is known for version ${JSON.stringify(apiVersion)}; send it as JSON`,
    );
  return { apiVersion, kind, ...message(shape, raw, 0) };
}

function malformed(why: string): Error {
  return badRequest(`the body is not a protobuf object the server can read: ${why}`);
}

function message(shape: Shape, bytes: Buffer, depth: number): Fields {
  if (depth > deepest) throw malformed('it is nested too deeply');
  const result: Fields = {};
  for (const [number, value] of wireFields(bytes)) {
    const field = shape.numbers.get(number);
    // Fields of a newer client.
    if (field) assign(result, field, value, depth);
  }
  return result;
}

function assign(result: Fields, field: ShapeField, value: WireValue, depth: number): void {
  const { type, name } = field;
  if (field.inline && type.form === 'message') {
    Object.assign(result, message(type.shape, bytesOf(value), depth + 1));
    return;
  }
  if (type.form === 'list') {
    ((result[name] ??= []) as unknown[]).push(decoded(type.item, value, depth));
  } else if (type.form === 'map') {
    const entry = new Map(wireFields(bytesOf(value)));
    const key = String(entry.get(1) ?? '');
    const map = (result[name] ??= {}) as Fields;
    Object.defineProperty(map, key, {
      value: decoded(type.item, entry.get(2) ?? Buffer.alloc(0), depth),
      enumerable: true,
      writable: true,
      configurable: true,
    });
  } else {
    const read = decoded(type, value, depth);
    if (read === undefined || (field.omitsZero && isZero(read))) return;
    result[name] = read;
  }
}

function isZero(value: unknown): boolean {
  return value === '' || value === 0 || value === false;
}

function decoded(type: FieldType, value: WireValue, depth: number): unknown {
  if (type.form === 'message') return message(type.shape, bytesOf(value), depth + 1);
  if (type.form !== 'scalar') throw malformed('a list within a list');
  switch (type.scalar) {
    case 's':
      return bytesOf(value).toString('utf8');
    case 'b':
      return numberOf(value) !== 0;
    case 'i':
      return numberOf(value);
    case 'd':
      return bytesOf(value).readDoubleLE(0);
    case 'y':
      return bytesOf(value).toString('base64');
    case 'T':
      return timeOf(bytesOf(value), false);
    case 'M':
      return timeOf(bytesOf(value), true);
    case 'D':
      return `${numberOf(new Map(wireFields(bytesOf(value))).get(1) ?? 0n)}ns`;
    case 'Q':
      return String(new Map(wireFields(bytesOf(value))).get(1) ?? '0');
    case 'I': {
      const parts = new Map(wireFields(bytesOf(value)));
      return numberOf(parts.get(1) ?? 0n) === 0 ? numberOf(parts.get(2) ?? 0n) : String(parts.get(3) ?? '');
    }
    case 'R':
      return rawJson(bytesOf(value));
  }
}

/** Raw JSON travels in a message with one field. */
function rawJson(bytes: Buffer): unknown {
  const raw = new Map(wireFields(bytes)).get(1);
  if (!Buffer.isBuffer(raw) || raw.length === 0) return undefined;
  try {
    return JSON.parse(raw.toString('utf8')) as unknown;
  } catch {
    throw malformed('a raw field is not JSON');
  }
}

/** An empty message is a time that is not set. */
function timeOf(bytes: Buffer, micros: boolean): string | undefined {
  if (bytes.length === 0) return undefined;
  const parts = new Map(wireFields(bytes));
  const seconds = numberOf(parts.get(1) ?? 0n);
  const nanos = numberOf(parts.get(2) ?? 0n);
  if (!micros) return formatTime(seconds * 1000);
  return formatMicroTime(seconds * 1000 + Math.floor(nanos / 1e6), Math.floor((nanos % 1e6) / 1000));
}

function numberOf(value: WireValue): number {
  if (typeof value !== 'bigint') throw malformed('a number is missing where one belongs');
  return Number(BigInt.asIntN(64, value));
}

function bytesOf(value: WireValue): Buffer {
  if (!Buffer.isBuffer(value)) throw malformed('a number stands where a text or message belongs');
  return value;
}

function* wireFields(bytes: Buffer): Generator<[number, WireValue]> {
  let at = 0;
  const varint = (): bigint => {
    let result = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw malformed('it ends in the middle of a number');
      result |= BigInt(byte & 0x7f) << shift;
      if ((byte & 0x80) === 0) return result;
    }
    throw malformed('a number has too many digits');
  };
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw malformed('it ends in the middle of a field');
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const number = tag >>> 3;
    switch (tag & 7) {
      case 0:
        yield [number, varint()];
        break;
      case 1:
        yield [number, take(8)];
        break;
      case 2:
        yield [number, take(Number(varint()))];
        break;
      case 5:
        yield [number, take(4)];
        break;
      default:
        throw malformed('it has a field of an unknown form');
    }
  }
}
