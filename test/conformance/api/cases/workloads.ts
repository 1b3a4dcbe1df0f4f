// SPDX-License-Identifier: Apache-2.0
// Workloads as far as they go without machines: rollouts with history, Jobs, StatefulSets, volumes that wait.

import type { Thing } from '../caller.ts';
import { type ConformanceCase, type Context, eventually, has, missing, ok, same } from '../case.ts';
import { container, deployment, pod } from '../objects.ts';

const slow = 30_000;
const labels = { app: 'x' };
const template = (restartPolicy = 'Always') => ({
  metadata: { labels },
  spec: { restartPolicy, containers: [container] },
});

async function podsOf({ b, path }: Context): Promise<readonly Thing[]> {
  return (await ok(b.get(path('pods')))).items;
}

/** Waits until there are as many pods, and gives them. */
function eventuallyPods(context: Context, count: number): Promise<readonly Thing[]> {
  return eventually(async () => {
    const pods = await podsOf(context);
    same(pods.length, count, 'pods');
    return pods;
  }, slow);
}

function job(spec: object) {
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'x' },
    spec: { template: template('Never'), ...spec },
  };
}

const claim = (name: string, storageClassName: string) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
});

const volume = (name: string, storageClassName: string) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: {
    storageClassName,
    capacity: { storage: '2Gi' },
    accessModes: ['ReadWriteOnce'],
    hostPath: { path: '/nowhere' },
  },
});

const storageClass = (name: string, volumeBindingMode: string) => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name },
  provisioner: 'kubernetes.io/no-provisioner',
  volumeBindingMode,
});

/** A volume that only the machine of this label reaches. */
const localVolume = (name: string, storageClassName: string, key: string, value: string) => {
  const nodeSelectorTerms = [{ matchExpressions: [{ key, operator: 'In', values: [value] }] }];
  const made = volume(name, storageClassName);
  return { ...made, spec: { ...made.spec, nodeAffinity: { required: { nodeSelectorTerms } } } };
};

export const workloadCases: readonly ConformanceCase[] = [
  {
    id: 'workloads/rollout-history',
    title: 'each template of a Deployment is a revision, and an old one that comes back gets a new number',
    controllers: true,
    run: async (context) => {
      const { a, b, c, path } = context;
      const revisions = async (): Promise<string[]> =>
        (await ok(b.get(path('replicasets')))).items
          .map(({ metadata }) => metadata.annotations['deployment.kubernetes.io/revision'] ?? '')
          .sort();
      await ok(a.post(path('deployments'), deployment('x')));
      await eventually(async () => same(await revisions(), ['1']), slow);
      const image = (name: string) => ({
        spec: { template: { spec: { containers: [{ ...container, image: name }] } } },
      });
      await ok(c.patch('strategic', path('deployments', 'x'), image('two')));
      await eventually(async () => same(await revisions(), ['1', '2']), slow);
      await ok(c.patch('strategic', path('deployments', 'x'), image(container.image)));
      await eventually(async () => same(await revisions(), ['2', '3']), slow);
      await eventually(
        () =>
          ok(b.get(path('deployments', 'x')), {
            metadata: { annotations: { 'deployment.kubernetes.io/revision': '3' } },
            status: { observedGeneration: 3 },
          }),
        slow,
      );
    },
  },
  {
    id: 'workloads/rollout-paused',
    title: 'a paused Deployment takes changes but does not roll them out',
    controllers: true,
    run: async ({ a, b, c, path }) => {
      const sets = async (): Promise<number> => (await ok(b.get(path('replicasets')))).items.length;
      await ok(a.post(path('deployments'), deployment('x')));
      await eventually(async () => same(await sets(), 1), slow);
      await ok(c.merge(path('deployments', 'x'), { spec: { paused: true, minReadySeconds: 1 } }));
      const change = { spec: { template: { metadata: { annotations: { changed: 'yes' } } } } };
      await ok(c.merge(path('deployments', 'x'), change));
      await eventually(() => ok(b.get(path('deployments', 'x')), { status: { observedGeneration: 3 } }), slow);
      same(await sets(), 1);
      await ok(c.merge(path('deployments', 'x'), { spec: { paused: null } }));
      await eventually(async () => same(await sets(), 2), slow);
    },
  },
  {
    id: 'workloads/job-counts',
    title: 'a Job counts pods that ended, lets them go, and is complete when enough have succeeded',
    controllers: true,
    run: async (context) => {
      const { a, b, c, path } = context;
      await ok(a.post(path('jobs'), job({ completions: 2, parallelism: 2 })));
      const pods = await eventuallyPods(context, 2);
      for (const { metadata } of pods) {
        same(metadata.finalizers, ['batch.kubernetes.io/job-tracking']);
        await ok(c.merge(path('pods', metadata.name, 'status'), { status: { phase: 'Succeeded' } }));
      }
      const done = await eventually(() => ok(b.get(path('jobs', 'x')), { status: { succeeded: 2 } }), slow);
      await eventually(async () => {
        const { status } = await ok(b.get(path('jobs', 'x')));
        const types = (status['conditions'] as { type: string }[]).map(({ type }) => type);
        same(types.sort(), ['Complete', 'SuccessCriteriaMet']);
      }, slow);
      has(done, { metadata: { name: 'x' } });
      for (const { metadata } of await podsOf(context)) same(metadata.finalizers, undefined);
    },
  },
  {
    id: 'workloads/job-deleted',
    title: 'the pods of a Job that is deleted go with it, counted or not',
    controllers: true,
    run: async (context) => {
      const { a, b, c, path } = context;
      await ok(a.post(path('jobs'), job({ completions: 3, parallelism: 3 })));
      await eventuallyPods(context, 3);
      await ok(c.delete(path('jobs', 'x'), { propagationPolicy: 'Background' }));
      await eventuallyPods(context, 0);
      await missing(b.get(path('jobs', 'x')));
    },
  },
  {
    id: 'workloads/job-orphaned',
    title: 'the pods of a Job that is deleted alone stay, without its mark on them',
    controllers: true,
    run: async (context) => {
      const { a, b, c, path } = context;
      await ok(a.post(path('jobs'), job({ parallelism: 1 })));
      await eventuallyPods(context, 1);
      await ok(c.delete(path('jobs', 'x'), { propagationPolicy: 'Orphan' }));
      await eventually(() => missing(b.get(path('jobs', 'x'))), slow);
      await eventually(async () => {
        const [left] = await podsOf(context);
        has(left, { metadata: { finalizers: undefined, ownerReferences: undefined } });
      }, slow);
    },
  },
  {
    id: 'workloads/job-suspended',
    title: 'a suspended Job has no pods until it is resumed',
    controllers: true,
    run: async (context) => {
      const { a, b, c, path } = context;
      await ok(a.post(path('jobs'), job({ suspend: true })));
      await eventually(
        () => ok(b.get(path('jobs', 'x')), { status: { conditions: [{ type: 'Suspended', status: 'True' }] } }),
        slow,
      );
      same((await podsOf(context)).length, 0);
      await ok(c.merge(path('jobs', 'x'), { spec: { suspend: false } }));
      await eventuallyPods(context, 1);
      await ok(c.merge(path('jobs', 'x'), { spec: { suspend: true } }));
      await eventuallyPods(context, 0);
    },
  },
  {
    id: 'workloads/stateful-set',
    title:
      'a StatefulSet makes its pods by number, one after the other unless told otherwise, with claims of their own',
    controllers: true,
    run: async (context) => {
      const { a, b, c, path } = context;
      const set = (podManagementPolicy: string) => ({
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: { name: 'x' },
        spec: {
          serviceName: 'x',
          replicas: 3,
          podManagementPolicy,
          selector: { matchLabels: labels },
          template: template(),
          volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim('data', 'none').spec }],
        },
      });
      await ok(a.post(path('statefulsets'), set('OrderedReady')));
      const [first] = await eventuallyPods(context, 1);
      same(first?.metadata.name, 'x-0');
      has(first?.metadata.labels, { 'statefulset.kubernetes.io/pod-name': 'x-0', 'apps.kubernetes.io/pod-index': '0' });
      await ok(b.get(path('persistentvolumeclaims', 'data-x-0')), { metadata: { labels } });
      await missing(b.get(path('persistentvolumeclaims', 'data-x-1')));
      await ok(c.delete(path('statefulsets', 'x'), { propagationPolicy: 'Foreground' }));
      await eventually(() => missing(b.get(path('statefulsets', 'x'))), slow);
      await ok(c.post(path('statefulsets'), set('Parallel')));
      const pods = await eventuallyPods(context, 3);
      same(pods.map(({ metadata }) => metadata.name).sort(), ['x-0', 'x-1', 'x-2']);
      // Claims outlive the set that made them.
      await ok(b.get(path('persistentvolumeclaims', 'data-x-0')));
    },
  },
  {
    id: 'workloads/volume-binding',
    title: 'a claim binds to a volume that fits, at once or, where its class says so, not before a pod needs it',
    controllers: true,
    run: async ({ a, b, c, path, unique }) => {
      const [now, later] = [unique('now').slice(0, 60), unique('later').slice(0, 60)];
      await ok(a.post(path('storageclasses'), storageClass(now, 'Immediate')));
      await ok(a.post(path('storageclasses'), storageClass(later, 'WaitForFirstConsumer')));
      await ok(b.post(path('persistentvolumes'), volume(now, now)));
      await ok(b.post(path('persistentvolumes'), volume(later, later)));
      await ok(c.post(path('persistentvolumeclaims'), claim('now', now)));
      await ok(c.post(path('persistentvolumeclaims'), claim('later', later)));
      await eventually(
        () =>
          ok(b.get(path('persistentvolumeclaims', 'now')), { spec: { volumeName: now }, status: { phase: 'Bound' } }),
        slow,
      );
      await eventually(() => ok(b.get(path('persistentvolumes', now)), { status: { phase: 'Bound' } }), slow);
      await ok(a.get(path('persistentvolumeclaims', 'later')), { status: { phase: 'Pending' } });
      await ok(a.get(path('persistentvolumes', later)), { status: { phase: 'Available' } });
      await ok(a.delete(path('persistentvolumes', later)));
    },
  },
  {
    id: 'workloads/volume-waits-for-consumer',
    title: 'a claim that waits binds once a pod wants it, to the volume that the machine of this pod reaches',
    controllers: true,
    run: async ({ a, b, c, path, unique }) => {
      const [later, far, near] = ['later', 'far', 'near'].map((name) => unique(name).slice(0, 60)) as [
        string,
        string,
        string,
      ];
      const key = 'conformance.example.com/rack';
      // Tainted: pods of others are not to land here.
      const taint = { key, value: near, effect: 'NoSchedule' };
      const size = { cpu: '4', memory: '8Gi', pods: '10' };
      await ok(a.post(path('nodes'), { metadata: { name: near, labels: { [key]: near } }, spec: { taints: [taint] } }));
      await ok(
        a.patch('strategic', path('nodes', near, 'status'), {
          status: { capacity: size, allocatable: size, conditions: [{ type: 'Ready', status: 'True' }] },
        }),
      );
      await ok(a.post(path('storageclasses'), storageClass(later, 'WaitForFirstConsumer')));
      await ok(b.post(path('persistentvolumes'), localVolume(far, later, key, far)));
      await ok(b.post(path('persistentvolumes'), localVolume(near, later, key, near)));
      await ok(b.post(path('persistentvolumeclaims'), claim('data', later)));
      await eventually(() => ok(c.get(path('persistentvolumes', near)), { status: { phase: 'Available' } }), slow);
      await ok(c.get(path('persistentvolumeclaims', 'data')), {
        spec: { volumeName: undefined },
        status: { phase: 'Pending' },
      });
      const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
      // Whatever else the machine is tainted with while nobody runs it.
      await ok(
        c.post(
          path('pods'),
          pod('consumer', { volumes, tolerations: [{ operator: 'Exists' }], nodeSelector: { [key]: near } }),
        ),
      );
      await eventually(
        () =>
          ok(a.get(path('persistentvolumeclaims', 'data')), {
            metadata: { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
            spec: { volumeName: near },
            status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '2Gi' } },
          }),
        slow,
      );
      await ok(a.get(path('persistentvolumes', near)), {
        spec: { claimRef: { kind: 'PersistentVolumeClaim', name: 'data' } },
        status: { phase: 'Bound' },
      });
      await ok(a.get(path('persistentvolumes', far)), {
        spec: { claimRef: undefined },
        status: { phase: 'Available' },
      });
      await eventually(() => ok(b.get(path('pods', 'consumer')), { spec: { nodeName: near } }), slow);
      await ok(b.delete(path('pods', 'consumer'), { gracePeriodSeconds: 0 }));
      await ok(b.delete(path('nodes', near)));
      await ok(b.delete(path('persistentvolumes', far)));
    },
  },
];
