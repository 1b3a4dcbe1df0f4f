// SPDX-License-Identifier: Apache-2.0
// Machines that are up and in service, for tests of how they go: instance, NodeClaim and Node, as the controllers
// that made them would leave them.
import { getCondition } from '../../../api/conditions.ts';
import { labels, nodeClassLabel, terminationFinalizer } from '../../../api/labels.ts';
import { type NodeClaim, nodeClaimKind } from '../../../api/node-claim.ts';
import { disruptedTaint } from '../../../api/taints.ts';
import { kinds, type Node, type Pod } from '../../../kube/kinds.ts';
import type { KubeObject, ObjectMeta, OwnerReference } from '../../../kube/object.ts';
import { formatTime } from '../../../kube/time.ts';
import type { Controller } from '../../../runtime/controller.ts';
import { boundPod, launchedClaim, node } from '../../../state/testing/objects.ts';
import { ControllerContext } from '../../nodeclaim/context.ts';
import type { TestWorld } from '../../testing/world.ts';

export interface MachineParts {
  readonly pool?: string;
  readonly annotations?: Record<string, string>;
  readonly taints?: NonNullable<Node['spec']>['taints'];
  readonly spec?: Partial<NodeClaim['spec']>;
  readonly ready?: boolean;
  /** Whether no pod came or went for long enough. */
  readonly consolidatable?: boolean;
  readonly type?: string;
  readonly zone?: string;
  readonly capacityType?: string;
  readonly initialized?: boolean;
}

const nodeClass = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' };

/** A machine in service: its NodeClaim and its Node have the same name. */
export async function machine(world: TestWorld, name: string, parts: MachineParts = {}): Promise<void> {
  const { pool = 'default', ready = true, consolidatable = true, type = 'c-4x', spec = {}, initialized = true } = parts;
  const own = {
    [labels.nodePool]: pool,
    [labels.instanceType]: type,
    [labels.zone]: parts.zone ?? 'zone-a',
    [labels.capacityType]: parts.capacityType ?? 'on-demand',
    [nodeClassLabel(nodeClass)]: nodeClass.name,
  };
  const lastTransitionTime = formatTime(world.clock.now());
  const trueCondition = (of: string) =>
    ({ type: of, status: 'True', reason: of, message: '', lastTransitionTime, observedGeneration: 1 }) as const;
  const conditions = ['Launched', 'Registered', 'Initialized', 'Ready', ...(consolidatable ? ['Consolidatable'] : [])];
  const claim = launchedClaim(name, { nodeName: name, spec });
  const cpus = Number(/^c-(\d+)x$/.exec(type)?.[1] ?? 4);
  const resources = { cpu: String(cpus), memory: `${cpus * 2}Gi`, pods: '110' };
  world.cloud.instances.set(`fake://${name}`, {
    providerID: `fake://${name}`,
    labels: own,
    capacity: resources,
    allocatable: resources,
  });
  await world.apply(
    {
      ...claim,
      metadata: { name, labels: own, finalizers: [terminationFinalizer] },
      status: { ...claim.status, conditions: conditions.map(trueCondition) },
    },
    {
      ...node(name),
      metadata: {
        name,
        labels: {
          ...own,
          [labels.hostname]: name,
          [labels.registered]: 'true',
          ...(initialized ? { [labels.initialized]: 'true' } : {}),
        },
        annotations: parts.annotations ?? {},
        finalizers: [terminationFinalizer],
      },
      spec: { providerID: `fake://${name}` },
      status: {
        capacity: resources,
        allocatable: resources,
        conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime }],
      },
    },
  );
  // A new Node is born with the taint of one that is not ready.
  await world.workload.resource(kinds.Node).patch(name, { spec: { taints: parts.taints ?? [] } });
  await world.settle();
}

export interface PodParts {
  readonly annotations?: Record<string, string>;
  readonly labels?: Record<string, string>;
  readonly owner?: 'DaemonSet' | 'StatefulSet';
  readonly spec?: Partial<Pod['spec']>;
}

/** A pod that runs on a node. */
export async function runningPod(world: TestWorld, name: string, on: string, parts: PodParts = {}): Promise<Pod> {
  const { owner, annotations = {}, labels: own = {}, spec = {} } = parts;
  const pod = boundPod(name, on, { terminationGracePeriodSeconds: 30, ...spec });
  const ownerReferences = owner ? [await ownerOf(world, owner)] : [];
  const startTime = formatTime(world.clock.now());
  const [stored] = await world.apply({
    ...pod,
    metadata: { name, namespace: 'default', labels: own, annotations, ownerReferences },
    status: { phase: 'Running', startTime, conditions: [{ type: 'Ready', status: 'True' }] },
  });
  await world.settle();
  return stored;
}

/** A controller that exists: the pods of one that does not are collected as garbage. */
async function ownerOf(world: TestWorld, kind: 'DaemonSet' | 'StatefulSet'): Promise<OwnerReference> {
  const labelsOfPods = { owner: kind.toLowerCase() };
  const apiVersion = 'apps/v1';
  const [owner] = await world.apply({
    apiVersion,
    kind,
    metadata: { name: 'owner', namespace: 'default' },
    spec: {
      serviceName: 'owner',
      selector: { matchLabels: labelsOfPods },
      template: { metadata: { labels: labelsOfPods }, spec: { containers: [{ name: 'main', image: 'app' }] } },
    },
  } as KubeObject);
  return { apiVersion, kind, name: 'owner', uid: owner.metadata.uid ?? '', controller: true };
}

/** A budget over pods with the label `app` that allows so many disruptions now. */
export async function budget(world: TestWorld, app: string, disruptionsAllowed: number, name = app): Promise<void> {
  const [stored] = await world.apply({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'default' },
    spec: { selector: { matchLabels: { app } }, maxUnavailable: 1 },
  });
  const status = {
    disruptionsAllowed,
    currentHealthy: 1,
    desiredHealthy: 1,
    expectedPods: 1,
    observedGeneration: (stored.metadata as ObjectMeta).generation ?? 1,
  };
  await world.workload.resource(kinds.PodDisruptionBudget).patchStatus(name, { status }, { namespace: 'default' });
  await world.settle();
}

/** The names of pods that are not being deleted. */
export async function standing(world: TestWorld): Promise<string[]> {
  const pods = await world.pods();
  return pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined).map(({ metadata }) => metadata.name!);
}

/** Plays the kubelet: pods whose deletion was asked for are gone. */
export async function letPodsGo(world: TestWorld): Promise<void> {
  for (const { metadata } of await world.pods()) {
    if (metadata.deletionTimestamp === undefined) continue;
    const { name = '', namespace } = metadata;
    await world.workload.resource(kinds.Pod).delete(name, { namespace, gracePeriodSeconds: 0 });
  }
  await world.settle();
}

export function claimOf(world: TestWorld, name: string): Promise<NodeClaim | undefined> {
  return world.find(nodeClaimKind as never, name);
}

export function contextOf(world: TestWorld): ControllerContext {
  return new ControllerContext(world);
}

/** Runs controllers until the function it gives is called: as if the program were killed. */
export function runUntilKilled(world: TestWorld, controllers: readonly Controller[]): () => void {
  const killed = new AbortController();
  for (const controller of controllers) void controller.start(AbortSignal.any([killed.signal, world.signal]));
  return () => killed.abort(new Error('killed'));
}

/** A ready pool without budgets, unless told. */
export async function openPool(world: TestWorld, options: Parameters<TestWorld['pool']>[0] = {}): Promise<void> {
  const { spec } = options;
  await world.pool({ ...options, spec: { ...spec, disruption: { budgets: [], ...spec?.disruption } } });
}

/** Names of the machines whose deletion was asked for. */
export async function going(world: TestWorld): Promise<string[]> {
  const claims = await world.claims();
  return claims.filter(({ metadata }) => metadata.deletionTimestamp).map(({ metadata }) => metadata.name!);
}

/** What everybody can see of a disruption: the taint of the Node and the reason on the NodeClaim. */
export async function marksOf(
  world: TestWorld,
  name: string,
): Promise<{ tainted: boolean; reason: string | undefined }> {
  const node = await world.find(kinds.Node, name);
  const claim = await claimOf(world, name);
  return {
    tainted: node?.spec?.taints?.some(({ key }) => key === disruptedTaint.key) ?? false,
    reason: claim && getCondition(claim, 'DisruptionReason')?.reason,
  };
}

export const unmarked = { tainted: false, reason: undefined };

/** Plays the lifecycle: the machine of a NodeClaim is in service. */
export async function initialize(world: TestWorld, name: string): Promise<void> {
  const claim = (await claimOf(world, name))!;
  const lastTransitionTime = formatTime(world.clock.now());
  const conditions = ['Launched', 'Registered', 'Initialized', 'Ready'].map((type) => ({
    type,
    status: 'True',
    reason: type,
    message: '',
    lastTransitionTime,
    observedGeneration: claim.metadata.generation ?? 1,
  }));
  await world.karpenter.resource(nodeClaimKind as never).patchStatus(name, { status: { conditions } });
  await world.settle();
}
