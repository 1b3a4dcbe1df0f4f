// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { nodePool } from '../api/testing/objects.ts';
import { instanceType } from '../controllers/testing/fake-cloud.ts';
import type { Problem } from '../scheduling/problem.ts';
import { solve } from '../scheduling/solve.ts';
import { sanitizeProblem } from './sanitize.ts';
import { boundPod, launchedClaim, node, pendingPod } from './testing/objects.ts';

const secret = 'hunter2';
const containers = [
  {
    name: 'main',
    image: 'app',
    env: [{ name: 'PASSWORD', value: secret }],
    args: [`--token=${secret}`],
    resources: { requests: { cpu: '3', memory: '1Gi' } },
  },
];
const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': secret };
const annotated = <T extends { metadata: object }>(object: T): T => ({
  ...object,
  metadata: { ...object.metadata, annotations },
});

const problem: Problem = {
  nodePools: [annotated(nodePool())],
  instanceTypes: { default: [instanceType(4), instanceType(8)] },
  nodes: [
    annotated(
      node('a', {
        status: {
          capacity: { cpu: '4' },
          allocatable: { cpu: '4', pods: '10', memory: '9Gi' },
          images: [{ names: [secret] }],
        },
      }),
    ),
  ],
  nodeClaims: [annotated(launchedClaim('a'))],
  pods: [
    ...[1, 2, 3].map((i) => annotated(pendingPod(`web-${i}`, { containers }))),
    annotated(boundPod('running', 'a', { containers })),
    annotated(
      pendingPod('db', { containers, volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] }),
    ),
  ],
  daemonSets: [
    annotated({
      metadata: { name: 'agent', namespace: 'default' },
      spec: { selector: {}, template: { metadata: { annotations }, spec: { containers } } },
    }),
  ],
  podDisruptionBudgets: [
    annotated({
      metadata: { name: 'web', namespace: 'default' },
      spec: { maxUnavailable: 1 },
      status: { disruptionsAllowed: 1, disruptedPods: { [secret]: '2026-01-01T00:00:00Z' }, conditions: [secret] },
    }),
  ],
  persistentVolumeClaims: [
    {
      metadata: {
        name: 'data',
        namespace: 'default',
        annotations: { ...annotations, 'pv.kubernetes.io/bind-completed': 'yes' },
      },
      spec: { volumeName: 'pv' },
    },
  ],
  persistentVolumes: [
    annotated({
      metadata: { name: 'pv' },
      spec: {
        csi: { driver: 'ebs.csi.aws.com', volumeHandle: secret, nodeStageSecretRef: { name: secret } },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: 'topology.kubernetes.io/zone', operator: 'In', values: ['zone-b'] }] },
            ],
          },
        },
      },
    }),
  ],
  storageClasses: [annotated({ metadata: { name: 'fast' }, provisioner: 'x', parameters: { password: secret } })],
};

test('a problem that leaves the cluster carries no secrets along', () => {
  expect(JSON.stringify(problem)).toContain(secret);
  expect(JSON.stringify(sanitizeProblem(problem))).not.toContain(secret);
});

test('and has the same solution', () => {
  const clean = solve(sanitizeProblem(problem));
  expect(clean).toEqual(solve(problem));
  expect(clean.newNodeClaims.length).toBeGreaterThan(0);
  expect(clean.objectErrors).toEqual([]);
});

test('and survives the way through a file', () => {
  const clean = sanitizeProblem(problem);
  expect(JSON.parse(JSON.stringify(clean))).toEqual(clean);
});
