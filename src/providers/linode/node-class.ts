// SPDX-License-Identifier: Apache-2.0
// What a LinodeNodeClass comes to: whether it may be used, the hash by which drift is told, its tags.
import { readyCondition } from '../../api/conditions.ts';
import type { LinodeNodeClass } from '../../api/linode-node-class.ts';
import { compareStrings } from '../../base/order.ts';
import { CreateError, InsufficientCapacityError, NodeClassNotReadyError } from '../../cloud/errors.ts';
import { sha256 } from './names.ts';

/** The algorithm of `nodeClassHash`; another one than upstream's, so its hashes are replaced and make nothing drift. */
export const nodeClassHashVersion = 'v1';

/** Everything in the spec that makes machines differ. Tags are changed in place, so they are left out. Digits. */
export function nodeClassHash({ spec = {} }: LinodeNodeClass): string {
  const { tags: _, swap_size, swapSize = swap_size, ...rest } = spec;
  const text = canonical({ ...rest, ...(swapSize === undefined ? {} : { swapSize }) });
  return BigInt(`0x${sha256(text).slice(0, 16)}`).toString();
}

/** Lists whose order means nothing. */
const sets: ReadonlySet<string> = new Set(['authorizedKeys', 'authorizedUsers']);

/** The same text for the same meaning: keys in order, sets in order, nothing for what is empty. */
function canonical(value: unknown, name = ''): string {
  if (Array.isArray(value)) {
    const texts = value.map((entry) => canonical(entry));
    return `[${(sets.has(name) ? texts.sort(compareStrings) : texts).join(',')}]`;
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value)
    .filter(([, field]) => !isEmpty(field))
    .sort(([a], [b]) => compareStrings(a, b));
  return `{${entries.map(([key, field]) => `${JSON.stringify(key)}:${canonical(field, key)}`).join(',')}}`;
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  return typeof value === 'object' && Object.values(value).every(isEmpty);
}

/** The class, if machines may be made of it. Throws what a launch is to be told otherwise. */
export function usable(nodeClass: LinodeNodeClass | undefined, name: string): LinodeNodeClass {
  if (!nodeClass) throw new InsufficientCapacityError(`LinodeNodeClass ${name} does not exist`);
  const { deletionTimestamp, generation } = nodeClass.metadata;
  if (deletionTimestamp !== undefined) throw new InsufficientCapacityError(`LinodeNodeClass ${name} is being deleted`);
  const ready = nodeClass.status?.conditions?.find(({ type }) => type === readyCondition);
  if (ready?.status === 'False') {
    const why = nodeClass.status?.conditions?.find(({ type, status }) => type !== readyCondition && status === 'False');
    throw new NodeClassNotReadyError(`LinodeNodeClass ${name} is not ready: ${why?.message ?? ready.message}`);
  }
  if (ready?.status !== 'True') {
    const message = `LinodeNodeClass ${name} has not been checked yet`;
    throw new CreateError(message, { reason: 'NodeClassReadinessUnknown', message });
  }
  if (ready.observedGeneration !== generation) {
    throw new NodeClassNotReadyError(`LinodeNodeClass ${name} has changed and has not been checked since`);
  }
  return nodeClass;
}
