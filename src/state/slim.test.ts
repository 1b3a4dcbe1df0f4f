// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { deepFreeze } from '../base/freeze.ts';
import { kinds, type Pod } from '../kube/kinds.ts';
import { slimNode, slimPod, slimTransforms } from './slim.ts';
import { boundPod, node } from './testing/objects.ts';

const full: Pod = {
  ...boundPod('web', 'node-1'),
  metadata: {
    ...boundPod('web', 'node-1').metadata,
    labels: { app: 'web' },
    annotations: { 'karpenter.sh/do-not-disrupt': 'true', 'example.com/token': 'hunter2' },
    managedFields: [{}],
  },
  spec: {
    nodeName: 'node-1',
    priority: 7,
    terminationGracePeriodSeconds: 30,
    serviceAccountName: 'web',
    imagePullSecrets: [{ name: 'registry' }],
    tolerations: [{ key: 'team', operator: 'Exists' }],
    nodeSelector: { disk: 'ssd' },
    containers: [
      {
        name: 'main',
        image: 'app',
        command: ['run'],
        env: [{ name: 'PASSWORD', value: 'hunter2' }],
        ports: [{ containerPort: 80 }, { containerPort: 443, hostPort: 443 }],
        resources: { requests: { cpu: '1' } },
      },
    ],
    volumes: [
      { name: 'secret', secret: { secretName: 'hunter2' } },
      { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
    ],
  },
  status: {
    phase: 'Running',
    startTime: '2026-01-01T00:00:00Z',
    podIP: '10.0.0.1',
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    containerStatuses: [
      { name: 'main', image: 'app', imageID: '', ready: true, restartCount: 0, resources: { requests: { cpu: '2' } } },
    ],
  },
};

describe('a pod in memory', () => {
  test('is the new one also when a list that was cut short is read again', () => {
    const keep = slimTransforms()(kinds.Pod)!;
    const waiting = deepFreeze({ ...full, spec: { ...full.spec, nodeName: undefined } } as unknown as Pod);
    const placed = deepFreeze({ ...full, spec: { ...full.spec, nodeName: 'node-2' } });
    const stored = keep(waiting);
    expect(keep(placed, stored).spec.nodeName).toBe('node-2');
    expect(keep(placed, stored).spec.nodeName).toBe('node-2');
  });

  test('keeps what scheduling and draining look at', () => {
    expect(slimPod(full)).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'web',
        namespace: 'default',
        uid: 'uid-web',
        creationTimestamp: '2026-01-01T00:00:00Z',
        labels: { app: 'web' },
        annotations: { 'karpenter.sh/do-not-disrupt': 'true' },
      },
      spec: {
        nodeName: 'node-1',
        priority: 7,
        terminationGracePeriodSeconds: 30,
        tolerations: [{ key: 'team', operator: 'Exists' }],
        nodeSelector: { disk: 'ssd' },
        containers: [
          { name: 'main', ports: [{ containerPort: 443, hostPort: 443 }], resources: { requests: { cpu: '1' } } },
        ],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
      },
      status: {
        phase: 'Running',
        startTime: '2026-01-01T00:00:00Z',
        conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
        containerStatuses: [{ name: 'main', resources: { requests: { cpu: '2' } } }],
      },
    });
  });

  test('keeps nothing that could be a secret', () => {
    expect(JSON.stringify(slimPod(full))).not.toMatch(/hunter2|PASSWORD|registry/);
  });

  test('shares its parts with others like it', () => {
    const slim = slimTransforms()(kinds.Pod)!;
    const [one, other] = [slim(full), slim(structuredClone(full))];
    expect(other.spec.containers).toBe(one.spec.containers);
    expect(other.metadata.labels).toBe(one.metadata.labels);
    expect(Object.isFrozen(one.spec.containers)).toBe(true);
  });

  test('keeps the parts that did not change', () => {
    const slim = slimTransforms()(kinds.Pod)!;
    const one = slim(full);
    const ready = slim({ ...structuredClone(full), status: { phase: 'Running', conditions: [] } }, one);
    expect(ready.spec).toBe(one.spec);
    expect(ready.metadata.labels).toBe(one.metadata.labels);
    const resized = structuredClone(full);
    resized.spec.containers[0]!.resources = { requests: { cpu: '3' } };
    const changed = slim(resized, one);
    expect(changed.spec.containers[0]!.resources).toEqual({ requests: { cpu: '3' } });
    expect(changed.spec.tolerations).toBe(one.spec.tolerations);
    const { nodeSelector: _, ...rest } = structuredClone(full.spec);
    expect(slim({ ...full, spec: rest }, one).spec).not.toHaveProperty('nodeSelector');
  });

  describe('of which a new version came', () => {
    const slim = slimTransforms()(kinds.Pod)!;
    const next = (): Pod => ({ ...structuredClone(full), metadata: { ...full.metadata, resourceVersion: '2' } });
    const old = slim({ ...full, metadata: { ...full.metadata, resourceVersion: '1', finalizers: ['own'] } });

    test('is the one it was while nothing that is kept changed', () => {
      const pod = next();
      pod.metadata.finalizers = ['own'];
      pod.status!.podIP = '10.0.0.2';
      pod.status!.conditions!.push({ type: 'ContainersReady', status: 'False' });
      pod.spec.containers[0]!.env = [];
      expect(slim(pod, old)).toBe(old);
    });

    test('is another one while it waits for a node: a scheduler has looked at it again', () => {
      const waiting = (resourceVersion: string, message: string): Pod => ({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'web', resourceVersion },
        spec: { containers: [{ name: 'main' }] },
        status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }] },
      });
      const first = slim(waiting('1', '0/1 nodes are available'));
      expect(slim(waiting('2', '0/2 nodes are available'), first).metadata.resourceVersion).toBe('2');
    });

    // An informer takes two of the same version for the same: whatever changed must come with the new one.
    const changes: Readonly<Record<string, (pod: Pod) => void>> = {
      'a label': (pod) => (pod.metadata.labels = { app: 'other' }),
      'its labels': (pod) => delete pod.metadata.labels,
      'an annotation': (pod) => (pod.metadata.annotations = { 'karpenter.sh/do-not-disrupt': 'false' }),
      'its end': (pod) => (pod.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'),
      'its finalizers': (pod) => (pod.metadata.finalizers = []),
      'its uid': (pod) => (pod.metadata.uid = 'another'),
      'its node': (pod) => (pod.spec.nodeName = 'node-2'),
      'its tolerations': (pod) => delete pod.spec.tolerations,
      'its requests': (pod) => (pod.spec.containers[0]!.resources = {}),
      'its phase': (pod) => (pod.status!.phase = 'Failed'),
      'a condition': (pod) => (pod.status!.conditions![0]!.status = 'False'),
      'one condition more': (pod) => pod.status!.conditions!.push({ type: 'PodScheduled', status: 'True' }),
      'a resize': (pod) => delete pod.status!.containerStatuses![0]!.resources,
      'its status': (pod) => delete pod.status,
    };
    test.each(Object.keys(changes))('is another one with %s', (name) => {
      const pod = next();
      pod.metadata.finalizers = ['own'];
      changes[name]!(pod);
      expect(slim(pod, old)).toEqual(slimPod(pod));
      expect(slim(pod, old).metadata.resourceVersion).toBe('2');
    });
  });

  test('keeps the conditions that are read', () => {
    const condition = (type: string) => ({ type, status: 'True' as const });
    const types = ['Initialized', 'PodScheduled', 'ContainersReady', 'Ready'];
    const own = slimPod({ ...full, status: { conditions: types.map(condition) } });
    expect(own.status?.conditions?.map(({ type }) => type)).toEqual(['PodScheduled', 'Ready']);
  });

  test('is not changed on the way', () => {
    const before = structuredClone(full);
    slimPod(full);
    expect(full).toEqual(before);
  });
});

test('a node in memory has no list of images', () => {
  const own = node('a', { status: { images: [{ names: ['app'] }], capacity: { cpu: '1' } } });
  expect(slimNode(own).status).toEqual({ capacity: { cpu: '1' } });
});

test('other kinds are kept as they are', () => {
  expect(slimTransforms()(kinds.Deployment)).toBeUndefined();
});
