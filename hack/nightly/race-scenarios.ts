// SPDX-License-Identifier: Apache-2.0
// What the race asks of both controllers, as data: the cluster's set-up, and steps that each change something and are
// over when a condition holds.
import type { RaceWorld } from './race-world.ts';

/** One change and how it ends. */
export interface Step {
  readonly name: string;
  start(world: RaceWorld): Promise<void>;
  /** The step is over; its time counts until this holds for the first time. */
  done(world: RaceWorld): boolean;
  readonly limitSeconds: number;
}

export interface Scenario {
  readonly what: string;
  /** There before the controller starts. */
  readonly setup: readonly object[];
  readonly steps: readonly Step[];
}

const nodeClass = { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass', metadata: { name: 'race' } };

const nodePool = (name: string, consolidateAfter: string) => ({
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name },
  spec: {
    disruption: { consolidationPolicy: 'WhenEmptyOrUnderutilized', consolidateAfter, budgets: [{ nodes: '100%' }] },
    template: {
      spec: {
        expireAfter: 'Never',
        nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'race' },
        requirements: [
          { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
          { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
        ],
      },
    },
  },
});

const shapes = [
  { name: 'small', cpu: '250m', memory: '512Mi' },
  { name: 'web', cpu: '500m', memory: '1Gi' },
  { name: 'worker', cpu: '1', memory: '2Gi' },
  { name: 'cache', cpu: '1', memory: '4Gi' },
] as const;

const deployment = (shape: (typeof shapes)[number], replicas: number) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: shape.name, namespace: 'default' },
  spec: {
    replicas,
    selector: { matchLabels: { app: shape.name } },
    template: {
      metadata: { labels: { app: shape.name } },
      spec: {
        terminationGracePeriodSeconds: 0,
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'topology.kubernetes.io/zone',
            whenUnsatisfiable: 'DoNotSchedule',
            labelSelector: { matchLabels: { app: shape.name } },
          },
        ],
        containers: [
          {
            name: 'main',
            image: 'pause',
            resources: { requests: { cpu: shape.cpu, memory: shape.memory } },
          },
        ],
      },
    },
  },
});

/** Scales the four deployments so that they have so many pods together. */
const pods = (count: number): Step => ({
  name: `${count} pods`,
  start: (world) => world.apply(shapes.map((shape) => deployment(shape, count / shapes.length))),
  done: (world) => world.pods === count && world.readyPods === count,
  limitSeconds: 300,
});

export const scenarios: Readonly<Record<string, Scenario>> = {
  up: {
    what: '1,000 pods of four shapes with zone spread, from pending to ready',
    // Nothing is consolidated while the clock runs: this one is about buying.
    setup: [nodeClass, nodePool('race', '10m')],
    steps: [pods(1000)],
  },
};
