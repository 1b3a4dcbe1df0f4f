// SPDX-License-Identifier: Apache-2.0
// The drift hash of a NodePool, bit for bit the one upstream writes: a cluster can change hands in either direction
// without every node drifting. The algorithm is that of hashstructure v2 (FNV-1, 64 bit) over upstream's Go structs,
// with zero values left out and slices taken as sets; field names, their order and type names are part of the hash.
import { durationNanos, never } from './duration.ts';
import type { NodeClaimTemplate, NodeClaimTemplateSpec, NodePool } from './node-pool.ts';
import type { NodeClassRef, Taint } from './shared-schemas.ts';

/** What the annotation `karpenter.sh/nodepool-hash-version` says about hashes made here. */
export const nodePoolHashVersion = 'v3';

/**
 * The hash of everything in `spec.template` that makes existing nodes drift when it changes: labels, annotations,
 * taints, node class, durations; not the requirements. Throws DurationError for a duration that cannot be read.
 */
export function nodePoolHash(pool: { readonly spec: Pick<NodePool['spec'], 'template'> }): string {
  return templateHash(pool.spec.template).toString();
}

/** The hash of a template as a number of 64 bits. */
export function templateHash(template: NodeClaimTemplate): bigint {
  const { metadata, spec } = template;
  const hasMetadata = metadata?.labels != null || metadata?.annotations != null;
  return hashStruct('NodeClaimTemplate', [
    ['ObjectMeta', hasMetadata ? hashMetadata(metadata) : undefined],
    ['Spec', spec == null || isZeroSpec(spec) ? undefined : hashSpec(spec)],
  ]);
}

function hashMetadata(metadata: NonNullable<NodeClaimTemplate['metadata']>): bigint {
  return hashStruct('ObjectMeta', [
    ['Labels', present(metadata.labels, hashMap)],
    ['Annotations', present(metadata.annotations, hashMap)],
  ]);
}

// Requirements are left out of the hash, yet their presence makes the struct non-zero.
function isZeroSpec(spec: NodeClaimTemplateSpec): boolean {
  return (
    spec.taints == null &&
    spec.startupTaints == null &&
    spec.requirements == null &&
    spec.nodeClassRef == null &&
    spec.terminationGracePeriod == null &&
    isNever(spec.expireAfter)
  );
}

function hashSpec(spec: NodeClaimTemplateSpec): bigint {
  return hashStruct('NodeClaimTemplateSpec', [
    ['Taints', present(spec.taints, hashTaints)],
    ['StartupTaints', present(spec.startupTaints, hashTaints)],
    ['NodeClassRef', present(spec.nodeClassRef, hashNodeClassRef)],
    ['TerminationGracePeriod', present(spec.terminationGracePeriod, hashDuration)],
    ['ExpireAfter', isNever(spec.expireAfter) ? undefined : hashNillableDuration(spec.expireAfter)],
  ]);
}

function hashTaints(taints: readonly Taint[]): bigint {
  // A set of this library is the XOR of its items, so the same taint twice counts as none.
  return taints.reduce((all, taint) => all ^ hashTaint(taint), 0n);
}

function hashTaint(taint: Taint): bigint {
  return hashStruct('Taint', [
    ['Key', text(taint.key)],
    ['Value', text(taint.value)],
    ['Effect', text(taint.effect)],
    ['TimeAdded', present(taint.timeAdded, (time) => hashStruct('Time', [['Time', hashTime(time)]]))],
  ]);
}

function hashNodeClassRef(ref: NodeClassRef): bigint {
  return hashStruct('NodeClassReference', [
    ['Kind', text(ref.kind)],
    ['Name', text(ref.name)],
    ['Group', text(ref.group)],
  ]);
}

function hashDuration(duration: string): bigint {
  const nanos = durationNanos(duration);
  return hashStruct('Duration', [['Duration', nanos === 0n ? undefined : hashInt64(nanos)]]);
}

// Here zero counts: upstream holds a pointer to the number.
function hashNillableDuration(duration: string): bigint {
  return hashStruct('NillableDuration', [['Duration', hashInt64(durationNanos(duration))]]);
}

function isNever(duration: string | undefined): duration is undefined | typeof never {
  return duration == null || duration === never;
}

const secondsFromYear1To1970 = 62_135_596_800n;

/** Go's binary form of a time in the local zone of a machine that runs on UTC. */
function hashTime(time: string): bigint {
  const [, seconds = '', fraction = '', zone = ''] = /^([^.]*?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/i.exec(time) ?? [];
  const bytes = new DataView(new ArrayBuffer(15));
  bytes.setUint8(0, 1);
  bytes.setBigInt64(1, BigInt(Date.parse(seconds + zone) / 1000) + secondsFromYear1To1970);
  bytes.setInt32(9, Number(fraction.slice(0, 9).padEnd(9, '0')));
  return fnv1(new Uint8Array(bytes.buffer));
}

function present<T>(value: T | null | undefined, hash: (value: T) => bigint): bigint | undefined {
  return value == null ? undefined : hash(value);
}

function text(value: string | undefined): bigint | undefined {
  return value ? hashString(value) : undefined;
}

/** Fields without a hash are zero in Go, and left out. */
function hashStruct(type: string, fields: readonly (readonly [name: string, hash: bigint | undefined])[]): bigint {
  let hash = hashString(type);
  for (const [name, value] of fields) {
    if (value !== undefined) hash = hashWords(hash ^ hashWords(hashString(name), value));
  }
  return hash;
}

function hashMap(entries: Readonly<Record<string, string>>): bigint {
  let hash = 0n;
  for (const [key, value] of Object.entries(entries)) hash ^= hashWords(hashString(key), hashString(value));
  return hashWords(hash);
}

const utf8 = new TextEncoder();

function hashString(value: string): bigint {
  return fnv1(utf8.encode(value));
}

function hashInt64(value: bigint): bigint {
  return hashWords(value);
}

function hashWords(...words: readonly bigint[]): bigint {
  const bytes = new DataView(new ArrayBuffer(words.length * 8));
  words.forEach((word, i) => bytes.setBigUint64(i * 8, BigInt.asUintN(64, word), true));
  return fnv1(new Uint8Array(bytes.buffer));
}

/** FNV-1 with 64 bits, in two halves of 32: the prime is 2^40 + 0x1b3. */
function fnv1(bytes: Uint8Array): bigint {
  let high = 0xcbf29ce4;
  let low = 0x84222325;
  for (const byte of bytes) {
    const product = low * 0x1b3;
    high = (Math.imul(high, 0x1b3) + (low << 8) + Math.floor(product / 2 ** 32)) >>> 0;
    low = (product ^ byte) >>> 0;
  }
  return (BigInt(high) << 32n) | BigInt(low);
}
