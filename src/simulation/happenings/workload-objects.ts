// SPDX-License-Identifier: Apache-2.0
// Workloads as clusters have them: mostly small stateless services, some spread or kept apart, some with volumes, some
// that must not be disturbed. Every pod made here can run in the pool `anchor`, so every pod must run in the end.
import { annotations, labels } from '../../api/labels.ts';
import type { Random } from '../../base/random.ts';
import type {
  DaemonSet,
  Deployment,
  Job,
  PodDisruptionBudget,
  PodSpec,
  PodTemplateSpec,
  StatefulSet,
} from '../../kube/kinds.ts';
import type { PodTerms } from '../contract.ts';
import { between, chance, oneOf, skewed } from '../draw.ts';
import { namespace } from './hands.ts';

/** What pods ask for unless a scenario says otherwise: mostly one, so that a few make a node. */
export const usualCpus = ['100m', '250m', '500m', '500m', '750m', '1', '1', '1500m', '2', '3'] as const;
/** Agents are small, but for some that look into everything. */
const daemonSizes = ['50m', '100m', '200m', '500m', '1'] as const;
const memoryPerCpu = ['512Mi', '1Gi', '1Gi', '2Gi'] as const;

export const priorities = ['low', 'high'] as const;

/** The taint of the pool for batch work. */
export const batchTaint = { key: 'dedicated', value: 'batch', effect: 'NoSchedule' } as const;

function podSpec(random: Random, app: string, { zones, capacityTypes, cpus }: PodTerms): PodSpec {
  const cpu = oneOf(random, cpus);
  const spec: PodSpec = {
    containers: [
      {
        name: 'main',
        image: 'app',
        resources: { requests: { cpu, memory: oneOf(random, memoryPerCpu) } },
      },
    ],
    terminationGracePeriodSeconds: oneOf(random, [0, 5, 30, 30, 30, 120, 300]),
  };
  if (chance(random, 0.15)) spec.priorityClassName = oneOf(random, priorities);
  if (chance(random, 0.2)) {
    spec.topologySpreadConstraints = [
      {
        maxSkew: between(random, 1, 2),
        topologyKey: labels.zone,
        whenUnsatisfiable: chance(random, 0.5) ? 'DoNotSchedule' : 'ScheduleAnyway',
        labelSelector: { matchLabels: { app } },
      },
    ];
  }
  const affinity = affinityOf(random, app, zones, capacityTypes, spec.topologySpreadConstraints !== undefined);
  if (affinity) spec.affinity = affinity;
  const drawn = random.next();
  if (drawn < 0.1 && !affinity?.nodeAffinity) spec.nodeSelector = { [labels.zone]: oneOf(random, zones) };
  else if (drawn >= 0.1 && drawn < 0.2) spec.nodeSelector = { [labels.capacityType]: oneOf(random, capacityTypes) };
  return spec;
}

type Affinity = NonNullable<PodSpec['affinity']>;
type Required = NonNullable<Affinity['nodeAffinity']>['requiredDuringSchedulingIgnoredDuringExecution'];
type Expression = NonNullable<NonNullable<Required>['nodeSelectorTerms'][number]['matchExpressions']>[number];

/** Mostly none. What is required can be had of the pool `anchor`: nobody follows another service that may leave. */
function affinityOf(
  random: Random,
  app: string,
  zones: PodTerms['zones'],
  capacityTypes: PodTerms['capacityTypes'],
  isSpread: boolean,
): Affinity | undefined {
  const affinity: Affinity = {};
  if (chance(random, 0.1)) {
    const term = termOf(app, labels.hostname);
    affinity.podAntiAffinity = chance(random, 0.5)
      ? { requiredDuringSchedulingIgnoredDuringExecution: [term] }
      : { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: term }] };
  } else if (chance(random, 0.07)) {
    // All in one zone: not those that are to be spread over them. Or beside somebody, who may not be there at all.
    const [first, one] = [termOf('first-0', labels.hostname), termOf(app, labels.zone)];
    affinity.podAffinity =
      isSpread || chance(random, 0.5)
        ? { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 10, podAffinityTerm: first }] }
        : { requiredDuringSchedulingIgnoredDuringExecution: [one] };
  }
  if (chance(random, 0.1)) {
    const [key, values] = [labels.zone, [oneOf(random, zones)]];
    affinity.nodeAffinity = {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [expressionOf(random, zones)] }],
      },
    };
    if (chance(random, 0.3)) affinity.nodeAffinity = preferred({ key, operator: 'In', values });
  } else if (chance(random, 0.05)) {
    const values = [oneOf(random, capacityTypes)];
    affinity.nodeAffinity = preferred({ key: labels.capacityType, operator: 'NotIn', values });
  }
  return Object.keys(affinity).length > 0 ? affinity : undefined;
}

function termOf(app: string, topologyKey: string) {
  return { topologyKey, labelSelector: { matchLabels: { app } } };
}

function preferred(expression: Expression): NonNullable<Affinity['nodeAffinity']> {
  const preference = { matchExpressions: [expression] };
  return { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 10, preference }] };
}

/** What some zones have, or all nodes of all pools. */
function expressionOf(random: Random, zones: PodTerms['zones']): Expression {
  const zone = oneOf(random, zones);
  // Where there is one zone, nothing is elsewhere.
  return oneOf<Expression>(random, [
    { key: labels.zone, operator: zones.length > 1 ? 'NotIn' : 'In', values: [zone] },
    { key: labels.zone, operator: 'In', values: zones.filter((other) => other !== zone || zones.length === 1) },
    { key: 'example.com/team', operator: 'Exists' },
    { key: 'example.com/gone', operator: 'DoesNotExist' },
  ]);
}

function templateOf(random: Random, app: string, terms: PodTerms): PodTemplateSpec {
  const protectedPods = chance(random, 0.04);
  const slow = chance(random, 0.3);
  return {
    metadata: {
      labels: { app },
      annotations: {
        ...(protectedPods ? { [annotations.doNotDisrupt]: chance(random, 0.7) ? 'true' : '20m' } : {}),
        // A process that takes its time to end.
        ...(slow ? { 'pod-delete.stage.kwok.x-k8s.io/delay': `${between(random, 1, 90)}s` } : {}),
      },
    },
    spec: podSpec(random, app, terms),
  };
}

export function deploymentOf(random: Random, app: string, terms: PodTerms): Deployment {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: app, namespace },
    spec: {
      replicas: skewed(random, 1, 30),
      selector: { matchLabels: { app } },
      template: templateOf(random, app, terms),
    },
  };
}

/** Pods with a volume each: they stay in the zone of their volume. */
export function statefulSetOf(random: Random, app: string, terms: PodTerms): StatefulSet {
  const template = templateOf(random, app, terms);
  const { topologySpreadConstraints: _, nodeSelector: __, affinity, ...spec } = template.spec!;
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: app, namespace },
    spec: {
      serviceName: app,
      replicas: skewed(random, 1, 8),
      podManagementPolicy: chance(random, 0.5) ? 'Parallel' : 'OrderedReady',
      selector: { matchLabels: { app } },
      template: { ...template, spec: affinity?.podAntiAffinity ? { ...spec, affinity } : spec },
      volumeClaimTemplates: [
        {
          metadata: { name: 'data' },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi' } } },
        },
      ],
    } as StatefulSet['spec'],
  };
}

export function jobOf(random: Random, app: string, terms: PodTerms): Job {
  const parallelism = skewed(random, 1, 8);
  const runs = `${between(random, 1, 25)}m`;
  const { topologySpreadConstraints: _, ...spec } = podSpec(random, app, terms);
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: app, namespace },
    spec: {
      parallelism,
      completions: parallelism * between(random, 1, 2),
      ttlSecondsAfterFinished: 60,
      template: {
        metadata: {
          labels: { app },
          annotations: {
            'pod-complete.stage.kwok.x-k8s.io/delay': runs,
            ...(chance(random, 0.3) ? { [annotations.doNotDisrupt]: 'true' } : {}),
          },
        },
        spec: { ...spec, restartPolicy: 'Never', tolerations: [{ key: batchTaint.key, operator: 'Exists' }] },
      },
    },
  };
}

export function daemonSetOf(random: Random, app: string): DaemonSet {
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: app, namespace: 'kube-system' },
    spec: {
      selector: { matchLabels: { app } },
      template: {
        metadata: { labels: { app } },
        spec: {
          tolerations: [{ operator: 'Exists' }],
          containers: [
            {
              name: 'main',
              image: 'agent',
              resources: { requests: { cpu: oneOf(random, daemonSizes), memory: '100Mi' } },
            },
          ],
        },
      },
    },
  };
}

export function budgetOf(random: Random, app: string): PodDisruptionBudget {
  const bound = oneOf<{ minAvailable?: number | string; maxUnavailable?: number | string }>(random, [
    { maxUnavailable: 1 },
    { maxUnavailable: '25%' },
    { maxUnavailable: '50%' },
    { minAvailable: '50%' },
    { minAvailable: 1 },
  ]);
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: app, namespace },
    spec: { ...bound, selector: { matchLabels: { app } } },
  };
}
