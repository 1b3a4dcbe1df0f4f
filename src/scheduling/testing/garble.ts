// SPDX-License-Identifier: Apache-2.0
// Problems with broken objects in them: what users write by mistake, and what an API server would not have let pass.
import { deepClone } from '../../base/freeze.ts';
import type { Problem } from '../problem.ts';
import { type Chooser, pick } from './chooser.ts';

type Json = Record<string, unknown> | unknown[];

/** Breaks one to three values of a problem, each in a way that suits its kind. */
export function garble(c: Chooser, problem: Problem): Problem {
  const copy = deepClone(problem) as unknown as Json;
  // The lists of a problem are ours; what is in them is the user's.
  const spots = Object.values(copy).flatMap((part: unknown) => [...breakable(part)]);
  const count = 1 + c.int(3);
  for (let i = 0; i < count && spots.length > 0; i++) {
    const [parent, key, how] = pick(c, spots);
    (parent as Record<string, unknown>)[key] = pick(c, how);
  }
  return copy as unknown as Problem;
}

const quantities = ['-1', 'much', '1e40', '1000000', '', '0.0000000001', 1e308, -5, null, '12MiB'];
const operators = ['Sometimes', '', 'in', 'Gt', 'DoesNotExist'];
const ways: Readonly<Record<string, readonly unknown[]>> = {
  cpu: quantities,
  memory: quantities,
  pods: quantities,
  nodes: quantities,
  operator: operators,
  values: [[], ['a', 'b'], ['not a label value!'], ['-1'], undefined],
  offerings: [[], [null], 'x'],
  price: [-1, Number.NaN, 1e300],
  maxSkew: [0, -1, 1e9],
  minDomains: [0, -3],
  topologyKey: ['', 'no such key', 'a/b/c'],
  whenUnsatisfiable: ['Never', ''],
  labelSelector: [
    null,
    { matchExpressions: [{ key: 'app', operator: 'Like', values: ['a'] }] },
    { matchLabels: { 'bad key!': 'x' } },
  ],
  requirements: [
    [],
    [
      { key: 'kubernetes.io/arch', operator: 'In', values: ['a'] },
      { key: 'kubernetes.io/arch', operator: 'In', values: ['b'] },
    ],
  ],
  containers: [[], undefined],
  resources: [undefined, {}],
  nodeSelectorTerms: [[], [{}]],
  weight: [-1, 1e9],
  minValues: [0, -1, 1000],
  hostPort: [-1, 0, 99_999],
  creationTimestamp: ['yesterday', undefined, ''],
  uid: [undefined, ''],
  volumeName: ['nothing'],
  storageClassName: ['nothing', null],
  claimName: ['nothing', ''],
  nodeName: ['no-such-node'],
  providerID: ['', undefined],
  status: [undefined, {}],
  tolerations: [[], [{ operator: 'Maybe' }], 'x', [null]],
  effect: ['Whenever', ''],
  reservationCapacity: [-1, 1e9],
  allocatable: [undefined, {}],
  labels: [undefined, {}],
  // Other types than they should have: a file that somebody wrote has passed no API server.
  nodeSelector: ['x', ['x'], { a: 3 }, null],
  affinity: ['x', null, { nodeAffinity: 'x' }, { podAffinity: [null] }],
  topologySpreadConstraints: ['x', [null], {}],
  matchExpressions: ['x', [null], [{}], [{ key: 'a', operator: 'In', values: [3] }]],
  preference: [null, 'x'],
  podAffinityTerm: [null, {}],
  namespaceSelector: [{ matchExpressions: [{ key: 'a', operator: 'Like' }] }],
  matchLabelKeys: ['x', ['x y'], [3]],
  taints: ['x', [null], [{}]],
  conditions: ['x', [null]],
  ownerReferences: ['x'],
  volumes: ['x', [null]],
  ports: ['x', [null]],
  drivers: ['x', [null]],
  allowedTopologies: ['x', [null]],
  template: [null, 'x'],
  limits: ['x', { cpu: '-1' }, { cpu: 'many' }],
  overhead: ['x', { kubeReserved: { cpu: '-1' } }, { cpu: '-1' }],
  capacity: [undefined, 'x'],
};

function* breakable(value: unknown): Generator<[Json, string, readonly unknown[]]> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, child] of Object.entries(value)) {
    const how = Array.isArray(value) ? undefined : ways[key];
    if (how) yield [value as Json, key, how];
    yield* breakable(child);
  }
}
