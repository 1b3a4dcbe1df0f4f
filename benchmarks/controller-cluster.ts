// SPDX-License-Identifier: Apache-2.0
// The cluster that the controller is measured on, in a process of its own: the embedded API server with its control plane,
// full of nodes and pods. Its parent tells it over IPC what to do next (`Command`), it answers with `Answer`.
import { writeFileSync } from 'node:fs';
import { allCrds } from '../src/api/crd.ts';
import { nodePoolHash, nodePoolHashVersion } from '../src/api/hash.ts';
import { kwokNodeClassKind } from '../src/api/kwok-node-class.ts';
import { type NodeClaim, nodeClaimKind } from '../src/api/node-claim.ts';
import { type NodePool, nodePoolKind } from '../src/api/node-pool.ts';
import { RealClock } from '../src/base/clock.ts';
import { SeededRandom } from '../src/base/random.ts';
import { ApiServer } from '../src/embedded/api-server.ts';
import { runControlPlane } from '../src/embedded/workloads/run-control-plane.ts';
import { KubeClient } from '../src/kube/client.ts';
import { Informer } from '../src/kube/informer.ts';
import { kinds, type Pod, type ReplicaSet } from '../src/kube/kinds.ts';
import type { ResourceType } from '../src/kube/object.ts';
import { formatTime } from '../src/kube/time.ts';
import { defaultInstanceTypes } from '../src/providers/kwok/instance-types.ts';
import { kwokLabelSet } from '../src/providers/kwok/labels.ts';
import { nodeFor } from '../src/providers/kwok/machine.ts';
import { silentLogger } from '../src/runtime/logging.ts';

/** What the parent asks for. */
export type Command =
  /** Pods that no node has room for. Answers when every one has been found unschedulable. */
  | { readonly do: 'pend'; readonly pods: number }
  /** Waits until NodeClaims for the pods were made and all of them run. */
  | { readonly do: 'await-running' }
  /** Changes so many running pods, one after the other. Answers when that is done. */
  | { readonly do: 'touch-pods'; readonly count: number }
  /** Nodes report their health as kubelets do, each every five minutes, for so long. */
  | { readonly do: 'heartbeats'; readonly ms: number };

/** Times are milliseconds since 1970. */
export type Answer =
  | { readonly of: 'ready'; readonly nodes: number; readonly pods: number }
  | { readonly of: 'pend'; readonly firstAt: number; readonly lastAt: number }
  | { readonly of: 'await-running'; readonly claims: number; readonly lastClaimAt: number; readonly runningAt: number }
  /** How much JSON its watchers get to read. */
  | { readonly of: 'touch-pods'; readonly bytes: number }
  | { readonly of: 'heartbeats'; readonly sent: number };

const [kubeconfigPath = '', nodesText = '', podsText = ''] = process.argv.slice(2);
const nodeCount = Number(nodesText);
const podCount = Number(podsText);
const podsPerApp = 100;
const teams = 10;
const instanceType = 's-4x-amd64-linux';

const clock = new RealClock();
const random = new SeededRandom(1);
const server = new ApiServer({ clock, random });
const client = new KubeClient({ transport: server.transport(), clock });
const claims = client.resource(nodeClaimKind as ResourceType<NodeClaim>);
const pods = client.resource(kinds.Pod);
const nodes = client.resource(kinds.Node);
const types = new Map(defaultInstanceTypes().map((type) => [type.name, type]));
/** Everything has been as it is for long. */
const hourAgo = formatTime(clock.now() - 3_600_000);
let stamps: Record<string, string> = {};
const team = (app: number): string => `team-${app % teams}`;

function podTemplate(app: string, cpu = '400m') {
  return {
    metadata: {
      labels: { app, 'app.kubernetes.io/name': app, 'app.kubernetes.io/part-of': 'benchmark', tier: 'backend' },
      annotations: {
        'prometheus.io/scrape': 'true',
        'example.com/checksum': '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
      },
    },
    spec: {
      serviceAccountName: 'default',
      priorityClassName: '',
      containers: [
        {
          name: 'app',
          image: `registry.example.com/team/${app}:v1.2.3`,
          args: ['--port=8080', '--log-level=info', `--name=${app}`],
          ports: [{ name: 'http', containerPort: 8080 }],
          env: [
            { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
            ...Array.from({ length: 8 }, (_, i) => ({ name: `SETTING_${i}`, value: `value-${i}-of-${app}` })),
          ],
          resources: { requests: { cpu, memory: '512Mi' }, limits: { memory: '512Mi' } },
          readinessProbe: { httpGet: { path: '/readyz', port: 'http' }, periodSeconds: 10 },
          livenessProbe: { httpGet: { path: '/healthz', port: 'http' }, periodSeconds: 10 },
          volumeMounts: [{ name: 'config', mountPath: '/etc/config' }],
        },
      ],
      volumes: [{ name: 'config', configMap: { name: `${app}-config` } }],
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'topology.kubernetes.io/zone',
          whenUnsatisfiable: 'ScheduleAnyway' as const,
          labelSelector: { matchLabels: { app } },
        },
      ],
    },
  };
}

function replicaSet(app: string, namespace: string, replicas: number, cpu?: string): ReplicaSet {
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: app, namespace },
    spec: { replicas, selector: { matchLabels: { app } }, template: podTemplate(app, cpu) },
  } as ReplicaSet;
}

async function furnish(): Promise<void> {
  for (const crd of allCrds()) await client.resource(kinds.CustomResourceDefinition).create(crd as never);
  await client.resource(kwokNodeClassKind).create({
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'default' },
  } as never);
  const pool = await client.resource(nodePoolKind).create({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'default' },
    spec: {
      // Nothing to improve: what is measured is rest, not the cost of moving pods.
      disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: '30s' },
      template: {
        spec: {
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
          requirements: [
            { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
            { key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] },
            { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
          ],
        },
      },
    },
  } as never);
  stamps = {
    'karpenter.sh/nodepool-hash': nodePoolHash(pool as NodePool),
    'karpenter.sh/nodepool-hash-version': nodePoolHashVersion,
  };
  await client.resource(nodePoolKind).patch('default', { metadata: { annotations: stamps } });
  for (let i = 0; i < teams; i++)
    await client.resource(kinds.Namespace).create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: team(i) } });
}

/** A machine as our own controllers would leave it: NodeClaim and Node, registered and initialized. */
async function createMachine(index: number): Promise<string> {
  const zone = `test-zone-${'abcd'[index % 4]}`;
  const wanted = (key: string, value: string) => ({ key, operator: 'In' as const, values: [value] });
  const labels = { 'karpenter.sh/nodepool': 'default', 'karpenter.kwok.sh/kwoknodeclass': 'default' };
  const claim = await claims.create({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name: `default-${index}`, labels, annotations: stamps, finalizers: ['karpenter.sh/termination'] },
    spec: {
      nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
      requirements: [
        wanted('karpenter.sh/nodepool', 'default'),
        wanted('node.kubernetes.io/instance-type', instanceType),
        wanted('topology.kubernetes.io/zone', zone),
        wanted('karpenter.sh/capacity-type', 'on-demand'),
      ],
      resources: { requests: { cpu: '3700m', memory: '5Gi', pods: '10' } },
      expireAfter: '720h',
    },
  } as NodeClaim);
  const node = nodeFor(claim, types, kwokLabelSet());
  const name = node.metadata.name!;
  const nodeLabels = { ...node.metadata.labels, 'karpenter.sh/registered': 'true', 'karpenter.sh/initialized': 'true' };
  const time = hourAgo;
  await nodes.create({
    ...node,
    metadata: {
      ...node.metadata,
      labels: nodeLabels,
      finalizers: ['karpenter.sh/termination'],
      ownerReferences: [
        {
          apiVersion: 'karpenter.sh/v1',
          kind: 'NodeClaim',
          name: claim.metadata.name!,
          uid: claim.metadata.uid!,
          blockOwnerDeletion: true,
        },
      ],
    },
    status: {
      ...node.status,
      images: Array.from({ length: 30 }, (_, i) => ({
        names: [`registry.example.com/team/image-${i}@sha256:${'0123456789abcdef'.repeat(4)}`],
        sizeBytes: 50_000_000 + i,
      })),
      conditions: ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
        type,
        status: type === 'Ready' ? 'True' : 'False',
        reason: `Kubelet${type}`,
        message: 'kubelet says so',
        lastHeartbeatTime: time,
        lastTransitionTime: time,
      })),
    },
  });
  await nodes.patch(name, { spec: { taints: null } });
  const { labels: claimLabels = {} } = claim.metadata;
  await claims.patch(claim.metadata.name!, { metadata: { labels: { ...node.metadata.labels, ...claimLabels } } });
  const condition = (type: string) => ({
    type,
    status: 'True',
    reason: type,
    message: '',
    lastTransitionTime: time,
    observedGeneration: claim.metadata.generation,
  });
  await claims.patchStatus(claim.metadata.name!, {
    status: {
      providerID: node.spec?.providerID,
      nodeName: name,
      capacity: node.status?.capacity,
      allocatable: node.status?.allocatable,
      lastPodEventTime: time,
      conditions: ['Launched', 'Registered', 'Initialized', 'Ready', 'ConsistentStateFound', 'Consolidatable'].map(
        condition,
      ),
    },
  });
  return name;
}

/** Pods of ReplicaSets that are complete, running, spread evenly over the nodes. */
async function createPods(names: readonly string[]): Promise<void> {
  const ordinary = podCount - nodeCount;
  const time = hourAgo;
  for (let app = 0; app * podsPerApp < ordinary; app++) {
    const name = `app-${app}`;
    const replicas = Math.min(podsPerApp, ordinary - app * podsPerApp);
    const set = await client.resource(kinds.ReplicaSet).create(replicaSet(name, team(app), replicas));
    await client.resource(kinds.PodDisruptionBudget).create({
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name, namespace: team(app) },
      spec: { maxUnavailable: 1, selector: { matchLabels: { app: name } } },
    });
    for (let i = 0; i < replicas; i++)
      await createPod(set, `${name}-${i}`, names[(app * podsPerApp + i) % names.length]!, time);
  }
}

async function createPod(set: ReplicaSet, name: string, nodeName: string, time: string): Promise<void> {
  const namespace = set.metadata.namespace!;
  const template = set.spec!.template!;
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: set.metadata.name!, uid: set.metadata.uid! };
  await pods.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      labels: template.metadata!.labels!,
      annotations: template.metadata!.annotations!,
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
    },
    spec: { ...template.spec!, nodeName },
  } as Pod);
  const condition = (type: string) => ({ type, status: 'True', lastTransitionTime: time });
  const image = template.spec!.containers[0]!.image!;
  await pods.patchStatus(
    name,
    {
      status: {
        phase: 'Running',
        startTime: time,
        podIP: '10.0.0.1',
        conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map(condition),
        containerStatuses: [
          {
            name: 'app',
            image,
            imageID: image,
            ready: true,
            started: true,
            restartCount: 0,
            state: { running: { startedAt: time } },
          },
        ],
      },
    },
    { namespace },
  );
}

async function createDaemons(): Promise<void> {
  const template = podTemplate('agent', '100m');
  await client.resource(kinds.DaemonSet).create({
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'agent', namespace: 'kube-system' },
    spec: {
      selector: { matchLabels: { app: 'agent' } },
      template: {
        ...template,
        spec: { ...template.spec, topologySpreadConstraints: [], tolerations: [{ operator: 'Exists' }] },
      },
    },
  } as never);
}

function send(answer: Answer): void {
  process.send!(answer);
}

const machines: string[] = [];
await furnish();
for (let i = 0; i < nodeCount; i++) machines.push(await createMachine(i));
await createPods(machines);
const plane = await runControlPlane({ client, clock, random, log: silentLogger, certificateAuthority: '' });
const allPods = plane.informers.of(kinds.Pod);
const isRunning = (pod: Pod): boolean => pod.status?.phase === 'Running';
await createDaemons();
await until(() => allPods.size === podCount && allPods.list().every(isRunning));
const listener = await server.listen();
const token = server.authenticator.issue({ username: 'benchmark', groups: ['system:masters'] });
writeFileSync(
  kubeconfigPath,
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'benchmark',
        cluster: {
          server: listener.url,
          'certificate-authority-data': Buffer.from(listener.certificateAuthority).toString('base64'),
        },
      },
    ],
    users: [{ name: 'benchmark', user: { token } }],
    contexts: [{ name: 'benchmark', context: { cluster: 'benchmark', user: 'benchmark' } }],
    'current-context': 'benchmark',
  }),
);

let lastClaimAt = 0;
let newClaims = 0;
let firstWaitingAt = 0;
let lastWaitingAt = 0;
let waiting = 0;
const watched = new Informer({ client, type: nodeClaimKind as ResourceType<NodeClaim>, clock, random });
watched.start(new AbortController().signal);
await watched.waitForSync();
watched.addHandler({
  added: () => {
    newClaims++;
    lastClaimAt = clock.now();
  },
});
allPods.addHandler({
  updated: (pod, old) => {
    if (!isUnschedulable(pod) || isUnschedulable(old)) return;
    lastWaitingAt = clock.now();
    firstWaitingAt ||= lastWaitingAt;
    waiting++;
  },
});
newClaims = 0;
process.on('message', (command: Command) => void obey(command));
process.on('disconnect', () => process.exit(0));
send({ of: 'ready', nodes: nodeCount, pods: allPods.size });

async function obey(command: Command): Promise<void> {
  switch (command.do) {
    case 'pend': {
      await client.resource(kinds.ReplicaSet).create(replicaSet('burst', team(0), command.pods, '900m'));
      await until(() => waiting >= command.pods);
      send({ of: 'pend', firstAt: firstWaitingAt, lastAt: lastWaitingAt });
      return;
    }
    case 'await-running': {
      await until(() => newClaims > 0 && allPods.size > podCount && allPods.list().every(isRunning));
      send({ of: 'await-running', claims: newClaims, lastClaimAt, runningAt: clock.now() });
      return;
    }
    case 'touch-pods': {
      const some = allPods.list().filter(({ metadata }) => metadata.namespace !== 'kube-system');
      let bytes = 0;
      for (let i = 0; i < command.count; i++) {
        const { name = '', namespace } = some[(i * 7919) % some.length]!.metadata;
        const status = {
          conditions: [{ type: 'ContainersReady', status: i % 2 ? 'True' : 'False', message: String(i) }],
        };
        const pod = await pods.patch(name, { status }, { namespace, subresource: 'status', type: 'strategic' });
        bytes += JSON.stringify(pod).length;
        // Lets the watchers be served in between.
        if (i % 100 === 99) await clock.breathe();
      }
      send({ of: 'touch-pods', bytes });
      return;
    }
    case 'heartbeats': {
      const started = clock.monotonic();
      const everyMs = 300_000 / nodeCount;
      let sent = 0;
      while (clock.monotonic() - started < command.ms) {
        const time = formatTime(clock.now());
        const name = machines[sent++ % machines.length]!;
        const conditions = [{ type: 'Ready', lastHeartbeatTime: time }];
        await nodes.patch(name, { status: { conditions } }, { subresource: 'status', type: 'strategic' });
        await clock.sleep(Math.max(0, sent * everyMs - (clock.monotonic() - started)));
      }
      send({ of: 'heartbeats', sent });
      return;
    }
  }
}

function isUnschedulable(pod: Pod): boolean {
  return (
    pod.status?.conditions?.some(({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable') ?? false
  );
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await clock.sleep(20);
}
