// SPDX-License-Identifier: Apache-2.0
// What the whole program does with Cluster API, as a list of scenarios that two runners play: one on our model of its
// managers, in virtual time, one on the real managers. Both must come to the same outcome; where they differ, the model is
// wrong.
import { clusterApiNodeClassKind } from '../../../api/cluster-api-node-class.ts';
import { type NodeClaim, nodeClaimKind } from '../../../api/node-claim.ts';
import { compareStrings } from '../../../base/order.ts';
import { typesOf } from '../../../embedded/clouds/cluster-api/objects.ts';
import { ignoreNotFound } from '../../../kube/api-error.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { kinds, type Node, type Pod } from '../../../kube/kinds.ts';
import type { ResourceType } from '../../../kube/object.ts';
import { capiKinds, type Machine } from '../kinds.ts';
import { annotations, capacityAnnotations, capi, memberLabel } from '../names.ts';

/** Two clusters, the managers of Cluster API, machines that come up, and the controller, all running. */
export interface Rig {
  readonly hub: KubeClient;
  readonly workload: KubeClient;
  /** Lets time pass until it holds. Fails with the state of things when it does not in time. */
  until(what: string, holds: () => Promise<boolean>, withinMs?: number): Promise<void>;
  pass(ms: number): Promise<void>;
  /** The managers stand still in the middle of what they do. */
  freezeManagers(): Promise<void>;
  thawManagers(): Promise<void>;
  /** The API server of the management cluster goes away and comes back some seconds later. */
  restartHub(): Promise<void>;
  /** Every Machine that was ever there since the scenario began, by UID. */
  readonly seen: ReadonlySet<string>;
  /** How long the managers are kept from working. */
  readonly frozenMs: number;
}

export interface Scenario {
  readonly name: string;
  run(rig: Rig): Promise<unknown>;
  readonly outcome: unknown;
  /** On the real managers it takes minutes: only the nights play it there. */
  readonly isLong?: boolean;
}

const namespace = 'default';
const clusterName = 'workload';
const types = capiKinds('v1beta1');
const templates = typesOf('v1beta1').machineClass;
const infrastructure = 'infrastructure.cluster.x-k8s.io/v1beta1';

interface MemberOptions {
  readonly price?: string;
  readonly strategy?: 'RollingUpdate' | 'OnDelete';
  /** What somebody else wants of it. */
  readonly replicas?: number;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly templateLabels?: Readonly<Record<string, string>>;
  /** Its machines never get an id. */
  readonly isStuck?: boolean;
  readonly kind?: 'MachineDeployment' | 'MachineSet';
}

const refTo = (name: string): object => ({
  apiVersion: infrastructure,
  kind: 'EmbeddedMachineTemplate',
  name,
  namespace,
});

async function template(rig: Rig, name: string, metadata: object = {}, behavior: object = {}): Promise<void> {
  await rig.hub.resource(templates).create({
    apiVersion: infrastructure,
    kind: 'EmbeddedMachineTemplate',
    metadata: { ...metadata, name, namespace },
    spec: { template: { spec: { behavior } } },
  } as never);
}

/** What a machine is like: 2 CPUs, as the guide writes it. */
const told = (price: string): Record<string, string> => ({
  [capacityAnnotations.maxPods]: '100',
  [capacityAnnotations.memory]: '8G',
  [capacityAnnotations.cpu]: '2',
  [capacityAnnotations.labels]: 'kubernetes.io/arch=amd64',
  [annotations.price]: price,
});

/** As the guide writes it, with what the webhooks of Cluster API would fill in. */
async function member(rig: Rig, name: string, options: MemberOptions = {}): Promise<void> {
  const { price = '1', strategy = 'RollingUpdate', replicas = 0, kind = 'MachineDeployment' } = options;
  const isSet = kind === 'MachineSet';
  const identity = { [capi.clusterName]: clusterName, [isSet ? capi.setName : capi.deploymentName]: name };
  const rollingUpdate = { maxSurge: 1, maxUnavailable: 0 };
  const how = { type: strategy, ...(strategy === 'RollingUpdate' ? { rollingUpdate } : {}) };
  await template(rig, name, {}, options.isStuck ? { neverProvisions: true } : {});
  await rig.hub.resource(isSet ? types.machineSet : types.machineDeployment).create({
    apiVersion: 'cluster.x-k8s.io/v1beta1',
    kind,
    metadata: {
      name,
      namespace,
      labels: { [memberLabel]: '', [capi.clusterName]: clusterName },
      annotations: { ...told(price), ...options.annotations },
    },
    spec: {
      clusterName,
      replicas,
      selector: { matchLabels: identity },
      ...(isSet ? { deletePolicy: 'Random' } : { strategy: how }),
      template: {
        metadata: { labels: { ...options.templateLabels, ...identity } },
        spec: { clusterName, bootstrap: { dataSecretName: 'user-data' }, infrastructureRef: refTo(name) },
      },
    },
  } as never);
}

/** Pods of which one machine holds one. */
async function deploy(rig: Rig, replicas: number, nodeSelector: Record<string, string> = {}): Promise<void> {
  await rig.workload.resource(kinds.Deployment).create({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace },
    spec: {
      replicas,
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app: 'web' } },
        spec: {
          terminationGracePeriodSeconds: 0,
          nodeSelector,
          containers: [{ name: 'c', image: 'i', resources: { requests: { cpu: '1200m' } } }],
        },
      },
    },
  });
}

const scale = (rig: Rig, replicas: number): Promise<unknown> =>
  rig.workload.resource(kinds.Deployment).updateScale('web', replicas, { namespace });

async function pods(rig: Rig): Promise<Pod[]> {
  const { items } = await rig.workload.resource(kinds.Pod).list({ namespace, labelSelector: 'app=web' });
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;

async function nodes(rig: Rig): Promise<Node[]> {
  return (await rig.workload.resource(kinds.Node).list()).items;
}

async function claims(rig: Rig): Promise<NodeClaim[]> {
  return (await rig.workload.resource(nodeClaimKind as ResourceType<NodeClaim>).list()).items;
}

async function machines(rig: Rig): Promise<Machine[]> {
  const { items } = await rig.hub.resource(types.machine).list();
  return items.sort((a, b) => compareStrings(a.metadata.name!, b.metadata.name!));
}

const claimUid = ({ metadata }: Machine): string | undefined => metadata.annotations?.[annotations.claimUid];

async function replicasOf(rig: Rig, name: string): Promise<number | undefined> {
  return (await ignoreNotFound(rig.hub.resource(types.machineDeployment).get(name, { namespace })))?.spec?.replicas;
}

/** One look at everything that must agree. */
export async function stateOf(rig: Rig): Promise<Record<string, unknown>> {
  const { items } = await rig.hub.resource(types.machineDeployment).list();
  const all = await machines(rig);
  return {
    replicas: Object.fromEntries(items.map(({ metadata, spec }) => [metadata.name, spec?.replicas])),
    machines: all.map((machine) => `${machine.metadata.name} ${machine.status?.phase} ${claimUid(machine) ?? '-'}`),
    claims: (await claims(rig)).map(({ metadata, status }) => `${metadata.name} ${metadata.uid} ${status?.providerID}`),
    nodes: (await nodes(rig)).map(({ metadata }) => metadata.name),
    pods: (await pods(rig)).map((pod) => `${pod.metadata.name} ${isReady(pod) ? 'ready' : 'waits'}`),
  };
}

/** Whether replicas, Machines, NodeClaims, Nodes and pods are `count`, and each Machine is that of one NodeClaim and one Node. */
async function isExact(rig: Rig, name: string, count: number): Promise<boolean> {
  if ((await replicasOf(rig, name)) !== count) return false;
  const [all, ours, there, running] = await Promise.all([machines(rig), claims(rig), nodes(rig), pods(rig)]);
  if ([all, ours, there, running].some(({ length }) => length !== count) || !running.every(isReady)) return false;
  const owners = new Map(ours.map(({ metadata, status }) => [metadata.uid, status?.providerID]));
  const ids = new Set(there.map(({ spec }) => spec?.providerID));
  const matched = all.filter((machine) => {
    const id = machine.spec?.providerID;
    return id !== undefined && owners.get(claimUid(machine)) === id && ids.has(id);
  });
  return new Set(matched.map(claimUid)).size === count;
}

const exactly = (rig: Rig, name: string, count: number, withinMs?: number): Promise<void> =>
  rig.until(`${count} machines of ${name}, each of one NodeClaim`, () => isExact(rig, name, count), withinMs);

const areReady = async (rig: Rig, count: number): Promise<boolean> => {
  const running = await pods(rig);
  return running.length === count && running.every(isReady);
};

/** The pods go, and the NodeClaims with them. */
async function undeploy(rig: Rig): Promise<void> {
  await rig.workload.resource(kinds.Deployment).delete('web', { namespace });
  await rig.until('the pods gone', async () => (await pods(rig)).length === 0);
  for (const { metadata } of await claims(rig)) {
    await ignoreNotFound(rig.workload.resource(nodeClaimKind).delete(metadata.name!));
  }
}

/** The pods go and their machines with them, without waiting for somebody to find them empty; then the members. */
async function clean(rig: Rig, ...members: string[]): Promise<void> {
  await undeploy(rig);
  for (const name of members) await exactly(rig, name, 0, 120_000);
  for (const name of members) await rig.hub.resource(types.machineDeployment).delete(name, { namespace });
  const deployments = rig.hub.resource(types.machineDeployment);
  await rig.until('the MachineDeployments gone', async () => (await deployments.list()).items.length === 0);
}

/** Drains, the disruption's own pauses and the managers' back-offs: twice as long as it has ever taken. */
const replaced = 180_000;

export const scenarios: readonly Scenario[] = [
  {
    name: 'from nothing to five machines and back',
    async run(rig) {
      await member(rig, 'guide');
      await deploy(rig, 5);
      await exactly(rig, 'guide', 5);
      await scale(rig, 0);
      await exactly(rig, 'guide', 0, replaced);
      await clean(rig, 'guide');
      return { machinesEver: rig.seen.size };
    },
    outcome: { machinesEver: 5 },
  },
  {
    name: 'a Node that is deleted takes its Machine along, and its pod gets another',
    async run(rig) {
      await member(rig, 'gone');
      await deploy(rig, 2);
      await exactly(rig, 'gone', 2);
      const [first] = await nodes(rig);
      await rig.workload.resource(kinds.Node).delete(first!.metadata.name!);
      const isGone = async (): Promise<boolean> =>
        (await machines(rig)).every(({ spec }) => spec?.providerID !== first!.spec!.providerID) &&
        isExact(rig, 'gone', 2);
      await rig.until('another machine in its place', isGone, replaced);
      await clean(rig, 'gone');
      return { machinesEver: rig.seen.size };
    },
    outcome: { machinesEver: 3 },
  },
  {
    name: 'machines move to a MachineDeployment that is cheaper',
    async run(rig) {
      await member(rig, 'dear', { price: '1' });
      await deploy(rig, 2);
      await exactly(rig, 'dear', 2);
      await member(rig, 'cheap', { price: '0.1' });
      // The third one is bought there at once; the others are looked at again when something changes.
      await scale(rig, 3);
      await rig.until(
        'all on the cheaper',
        async () => (await replicasOf(rig, 'dear')) === 0 && isExact(rig, 'cheap', 3),
        replaced,
      );
      await clean(rig, 'cheap', 'dear');
      return { machinesEver: rig.seen.size };
    },
    outcome: { machinesEver: 5 },
  },
  {
    name: 'machines follow a new template where Karpenter replaces them (OnDelete)',
    async run(rig) {
      await member(rig, 'drifts', { strategy: 'OnDelete' });
      await deploy(rig, 2);
      await exactly(rig, 'drifts', 2);
      await retemplate(rig, 'drifts');
      await lookAgain(rig);
      await rig.until('two machines of the new template', () => areOf(rig, 'drifts', 2), replaced);
      await clean(rig, 'drifts');
      await rig.hub.resource(templates).delete('drifts-2', { namespace });
      return { machinesEver: rig.seen.size };
    },
    outcome: { machinesEver: 4 },
  },
  {
    name: 'a rollout of Cluster API itself ends with as many machines as NodeClaims',
    async run(rig) {
      await member(rig, 'rolls');
      await deploy(rig, 2);
      await exactly(rig, 'rolls', 2);
      await retemplate(rig, 'rolls');
      await rig.until('two machines of the new template', () => areOf(rig, 'rolls', 2), replaced);
      await clean(rig, 'rolls');
      await rig.hub.resource(templates).delete('rolls-2', { namespace });
      return {};
    },
    outcome: {},
    isLong: true,
  },
  {
    name: 'a machine that somebody else has in the same MachineDeployment stays theirs',
    async run(rig) {
      await member(rig, 'shared', { replicas: 1 });
      const isUp = async (): Promise<boolean> => (await machines(rig))[0]?.status?.nodeRef !== undefined;
      await rig.until("the other's machine", isUp);
      const [theirs] = await machines(rig);
      await deploy(rig, 1, { 'karpenter.sh/nodepool': 'default' });
      await rig.until(
        'a machine of our own',
        async () => (await pods(rig)).length === 1 && (await pods(rig)).every(isReady),
      );
      const during = [await replicasOf(rig, 'shared'), (await machines(rig)).filter(claimUid).length];
      await rig.workload.resource(kinds.Deployment).delete('web', { namespace });
      for (const { metadata } of await claims(rig)) await rig.workload.resource(nodeClaimKind).delete(metadata.name!);
      await rig.until(
        'ours gone',
        async () => (await claims(rig)).length === 0 && (await machines(rig)).length === 1,
        replaced,
      );
      const [left] = await machines(rig);
      const after = [await replicasOf(rig, 'shared'), left?.metadata.uid === theirs?.metadata.uid];
      await rig.hub.resource(types.machineDeployment).delete('shared', { namespace });
      await rig.until('all gone', async () => (await machines(rig)).length === 0 && (await nodes(rig)).length === 0);
      return { during, after, machinesEver: rig.seen.size };
    },
    outcome: { during: [2, 1], after: [1, true], machinesEver: 2 },
  },
  {
    name: 'a maximum size is kept inside one batch, and the rest goes elsewhere',
    async run(rig) {
      await member(rig, 'small', { price: '0.1', annotations: { [capi.maxSize]: '2' } });
      await member(rig, 'other');
      await deploy(rig, 4);
      await rig.until('four machines', () => areReady(rig, 4), replaced);
      const during = [await replicasOf(rig, 'small'), await replicasOf(rig, 'other')];
      await clean(rig, 'small', 'other');
      return { during, machinesEver: rig.seen.size };
    },
    outcome: { during: [2, 2], machinesEver: 4 },
    isLong: true,
  },
  {
    name: 'a minimum size is kept: the machine goes, and Cluster API has another',
    async run(rig) {
      await member(rig, 'least', { annotations: { [capi.minSize]: '1' } });
      await deploy(rig, 1);
      await exactly(rig, 'least', 1);
      const [first] = await machines(rig);
      await undeploy(rig);
      const isOther = async (): Promise<boolean> => {
        const [left, ...more] = await machines(rig);
        const isSame = left?.metadata.uid === first!.metadata.uid;
        return left !== undefined && more.length === 0 && !isSame && claimUid(left) === undefined;
      };
      await rig.until('another machine, of nobody', isOther, replaced);
      await rig.until('the NodeClaim gone', async () => (await claims(rig)).length === 0);
      const after = await replicasOf(rig, 'least');
      await rig.hub.resource(types.machineDeployment).delete('least', { namespace });
      await rig.until('all gone', () => isEmpty(rig), replaced);
      return { after, machinesEver: rig.seen.size };
    },
    outcome: { after: 1, machinesEver: 2 },
    isLong: true,
  },
  {
    name: 'the member label may be in the template as well',
    async run(rig) {
      await member(rig, 'labelled', { templateLabels: { [memberLabel]: '' } });
      await deploy(rig, 2);
      await exactly(rig, 'labelled', 2);
      await clean(rig, 'labelled');
      return { machinesEver: rig.seen.size };
    },
    outcome: { machinesEver: 2 },
    isLong: true,
  },
  {
    name: 'a NodeClaim that ends before its machine has an id leaves nothing behind',
    async run(rig) {
      await member(rig, 'stuck', { isStuck: true });
      await deploy(rig, 1);
      await rig.until('a machine of the NodeClaim', async () => (await machines(rig)).some(claimUid));
      const during = [await replicasOf(rig, 'stuck'), (await claims(rig))[0]?.status?.providerID];
      await clean(rig, 'stuck');
      return { during, machinesEver: rig.seen.size };
    },
    outcome: { during: [1, undefined], machinesEver: 1 },
    isLong: true,
  },
  {
    name: 'a Machine that somebody deletes is made up for, and the count is exact again',
    async run(rig) {
      await member(rig, 'robbed');
      await deploy(rig, 2);
      await exactly(rig, 'robbed', 2);
      const [first] = await machines(rig);
      await rig.hub.resource(types.machine).delete(first!.metadata.name!, { namespace });
      const isMadeUpFor = async (): Promise<boolean> =>
        (await machines(rig)).every(({ metadata }) => metadata.uid !== first!.metadata.uid) &&
        isExact(rig, 'robbed', 2);
      await rig.until('another machine in its place', isMadeUpFor, replaced);
      await clean(rig, 'robbed');
      return {};
    },
    outcome: {},
    isLong: true,
  },
  {
    name: 'a MachineDeployment that is deleted takes its Machines along, and hides no others',
    async run(rig) {
      await member(rig, 'doomed', { price: '0.1', annotations: { [capi.maxSize]: '1' } });
      await member(rig, 'stays');
      await deploy(rig, 2);
      await rig.until('two machines', () => areReady(rig, 2), replaced);
      const during = [await replicasOf(rig, 'doomed'), await replicasOf(rig, 'stays')];
      await rig.hub.resource(types.machineDeployment).delete('doomed', { namespace });
      await rig.until('both of the other', () => isExact(rig, 'stays', 2), replaced);
      await clean(rig, 'stays');
      return { during, machinesEver: rig.seen.size };
    },
    outcome: { during: [1, 1], machinesEver: 3 },
    isLong: true,
  },
  {
    name: 'somebody scales the same MachineDeployment while machines come and go',
    async run(rig) {
      await member(rig, 'both');
      await rig.freezeManagers();
      await deploy(rig, 2, { 'karpenter.sh/nodepool': 'default' });
      await rig.until('replicas raised', async () => (await replicasOf(rig, 'both')) === 2);
      await rig.hub.resource(types.machineDeployment).updateScale('both', 3, { namespace });
      await rig.thawManagers();
      await rig.until('three machines', async () => (await machines(rig)).length === 3 && areReady(rig, 2), replaced);
      const during = [await replicasOf(rig, 'both'), (await machines(rig)).filter(claimUid).length];
      await undeploy(rig);
      const isLeft = async (): Promise<boolean> =>
        (await machines(rig)).length === 1 && (await claims(rig)).length === 0 && (await replicasOf(rig, 'both')) === 1;
      await rig.until('theirs left', isLeft, replaced);
      const isTheirs = (await machines(rig)).every((machine) => claimUid(machine) === undefined);
      await rig.hub.resource(types.machineDeployment).delete('both', { namespace });
      await rig.until('all gone', () => isEmpty(rig), replaced);
      return { during, isTheirs, machinesEver: rig.seen.size };
    },
    outcome: { during: [3, 2], isTheirs: true, machinesEver: 3 },
    isLong: true,
  },
  {
    name: 'a MachineSet of its own is a member too',
    async run(rig) {
      const sets = rig.hub.resource(types.machineSet);
      const count = async (): Promise<number | undefined> => (await sets.get('set', { namespace })).spec?.replicas;
      await member(rig, 'set', { kind: 'MachineSet' });
      await deploy(rig, 2);
      await rig.until('two machines', () => areReady(rig, 2), replaced);
      const during = [await count(), (await machines(rig)).filter(claimUid).length];
      await undeploy(rig);
      await rig.until('all gone', () => isEmpty(rig), replaced);
      const after = await count();
      await sets.delete('set', { namespace });
      return { during, after, machinesEver: rig.seen.size };
    },
    outcome: { during: [2, 2], after: 0, machinesEver: 2 },
    isLong: true,
  },
  {
    name: 'machines without an owner are made from a template, one for each NodeClaim',
    async run(rig) {
      const classes = rig.workload.resource(clusterApiNodeClassKind);
      await classes.patch('default', { spec: { orphanMachines: 'Enabled' } });
      await template(rig, 'alone', {
        labels: { [memberLabel]: '', [capi.clusterName]: clusterName },
        annotations: { ...told('1'), [annotations.bootstrapTemplate]: 'Secret/user-data' },
      });
      await deploy(rig, 2);
      await rig.until('two machines', () => areReady(rig, 2), replaced);
      const all = await machines(rig);
      const hasScaler = all.some(({ metadata }) => metadata.ownerReferences?.some(({ kind }) => kind === 'MachineSet'));
      const during = [all.length, new Set(all.map(claimUid)).size, hasScaler];
      await undeploy(rig);
      await rig.until('all gone', () => isEmpty(rig), replaced);
      const { items } = await rig.hub.resource(typesOf('v1beta1').infrastructure).list();
      await rig.hub.resource(templates).delete('alone', { namespace });
      await classes.patch('default', { spec: { orphanMachines: null } });
      return { during, left: items.length, machinesEver: rig.seen.size };
    },
    outcome: { during: [2, 2, false], left: 0, machinesEver: 2 },
    isLong: true,
  },
  {
    name: 'the management cluster restarts in the middle of a launch',
    async run(rig) {
      await member(rig, 'away');
      await deploy(rig, 3);
      await rig.until('replicas raised', async () => (await replicasOf(rig, 'away')) === 3);
      await rig.restartHub();
      await exactly(rig, 'away', 3, 120_000);
      await clean(rig, 'away');
      return { machinesEver: rig.seen.size };
    },
    outcome: { machinesEver: 3 },
  },
  {
    name: 'managers that stand still in the middle of launching and of removing',
    async run(rig) {
      await member(rig, 'still');
      await rig.freezeManagers();
      await deploy(rig, 4);
      await rig.until('replicas raised', async () => (await replicasOf(rig, 'still')) === 4);
      await rig.pass(rig.frozenMs);
      const raised = [await replicasOf(rig, 'still'), rig.seen.size];
      await rig.thawManagers();
      await exactly(rig, 'still', 4, 120_000);
      await rig.freezeManagers();
      await scale(rig, 1);
      await rig.until('replicas lowered', async () => (await replicasOf(rig, 'still')) === 1, replaced);
      const [survivor] = await pods(rig);
      // A deletion is asked for every five seconds all this while.
      await rig.pass(rig.frozenMs);
      const lowered = [await replicasOf(rig, 'still'), (await machines(rig)).length];
      await rig.thawManagers();
      await exactly(rig, 'still', 1, 120_000);
      const [left] = await pods(rig);
      const isSame = survivor!.metadata.uid === left!.metadata.uid;
      await clean(rig, 'still');
      return { raised, lowered, survivorStays: isSame, machinesEver: rig.seen.size };
    },
    outcome: { raised: [4, 0], lowered: [1, 4], survivorStays: true, machinesEver: 4 },
  },
];

async function isEmpty(rig: Rig): Promise<boolean> {
  const all = await Promise.all([machines(rig), claims(rig), nodes(rig)]);
  return all.every(({ length }) => length === 0);
}

async function retemplate(rig: Rig, name: string): Promise<void> {
  await template(rig, `${name}-2`);
  const spec = { template: { spec: { infrastructureRef: refTo(`${name}-2`) } } };
  await rig.hub.resource(types.machineDeployment).patch(name, { spec }, { namespace });
}

/** Drift is looked for every five minutes, and at once when the NodeClass changes. */
async function lookAgain(rig: Rig): Promise<void> {
  await rig.pass(3000);
  const metadata = { annotations: { 'example.com/looked-at': 'again' } };
  await rig.workload.resource(clusterApiNodeClassKind).patch('default', { metadata });
}

/** Whether the machines are exactly `count`, all of the second template. */
async function areOf(rig: Rig, name: string, count: number): Promise<boolean> {
  const { items } = await rig.hub.resource(types.machineSet).list();
  const current = items.filter(
    ({ spec }) => (spec?.template?.spec?.infrastructureRef as { name?: string } | undefined)?.name === `${name}-2`,
  );
  const sets = new Set(current.map(({ metadata }) => metadata.uid));
  const isNew = (machine: Machine): boolean =>
    machine.metadata.ownerReferences?.some(({ uid }) => sets.has(uid)) ?? false;
  return (await machines(rig)).every(isNew) && isExact(rig, name, count);
}
