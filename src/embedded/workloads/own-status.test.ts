// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { ReplicaSet } from '../../kube/kinds.ts';
import { OwnStatus } from './own-status.ts';

function set(replicas: number, ready: number, labels: Record<string, string> = {}): ReplicaSet {
  return {
    metadata: { name: 'web', uid: 'u', resourceVersion: String(ready), labels },
    spec: { replicas, selector: {}, template: {} },
    status: { replicas, readyReplicas: ready },
  } as unknown as ReplicaSet;
}

test('only a change to what was written itself is an echo', () => {
  let goes: ((object: ReplicaSet) => void) | undefined;
  const own = new OwnStatus<ReplicaSet>({ addHandler: (handler) => (goes = (object) => handler.deleted(object)) });
  expect(own.isEcho(set(2, 1), set(2, 0))).toBe(false);
  own.note(set(2, 0), { replicas: 2, readyReplicas: 1 });
  expect(own.isEcho(set(2, 1), set(2, 0))).toBe(true);
  expect(own.isEcho(set(2, 1), undefined)).toBe(false);
  // Somebody else's status, another size, other labels.
  expect(own.isEcho(set(2, 2), set(2, 0))).toBe(false);
  expect(own.isEcho(set(3, 1), set(2, 0))).toBe(false);
  expect(own.isEcho(set(2, 1, { a: 'b' }), set(2, 0))).toBe(false);
  goes?.(set(2, 1));
  expect(own.isEcho(set(2, 1), set(2, 0))).toBe(false);
});
