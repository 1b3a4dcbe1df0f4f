// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { deepFreeze } from '../../base/freeze.ts';
import { kinds, type Pod } from '../../kube/kinds.ts';
import { slimTransforms } from '../../state/slim.ts';
import { boundPod } from '../../state/testing/objects.ts';
import { UnchangedPods } from './unchanged-pods.ts';

/** As an informer keeps it: a new version shares what did not change. */
function versions(change: (pod: Pod) => void): [before: Pod, after: Pod] {
  const slim = slimTransforms()(kinds.Pod)!;
  const full = (): Pod => {
    const made = structuredClone(boundPod('web', 'node-1'));
    made.metadata.labels = { app: 'web' };
    made.status = {
      phase: 'Running',
      podIP: '10.0.0.1',
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    };
    return made;
  };
  const before = deepFreeze(slim(full()));
  const next = full();
  next.metadata.resourceVersion = '2';
  change(next);
  return [before, deepFreeze(slim(next, before))];
}

const reports: Record<string, (pod: Pod) => void> = {
  'another address': (pod) => {
    pod.status!.podIP = '10.0.0.2';
  },
  'a condition nobody reads': (pod) => {
    pod.status!.conditions!.push({ type: 'ContainersReady', status: 'False' });
  },
  'a restart': (pod) => {
    pod.status!.containerStatuses = [{ name: 'main', image: 'app', imageID: '', ready: false, restartCount: 3 }];
  },
};

const changes: Record<string, (pod: Pod) => void> = {
  'another label': (pod) => {
    pod.metadata.labels = { app: 'db' };
  },
  'a protection': (pod) => {
    pod.metadata.annotations = { 'karpenter.sh/do-not-disrupt': 'true' };
  },
  'its end': (pod) => {
    pod.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  },
  'its completion': (pod) => {
    pod.status!.phase = 'Succeeded';
  },
  'a probe that fails': (pod) => {
    pod.status!.conditions![0]!.status = 'False';
  },
  'another size': (pod) => {
    pod.spec.containers[0]!.resources = { requests: { cpu: '7' } };
  },
  'another pod of the same name': (pod) => {
    pod.metadata.uid = 'other';
  },
};

test.each(Object.entries(reports))('%s is no change', (_name, change) => {
  const pods = new UnchangedPods();
  const [before, after] = versions(change);
  const first = pods.settled([before]);
  expect(pods.settled([after])).toBe(first);
});

test.each(Object.entries(changes))('%s is a change', (_name, change) => {
  const pods = new UnchangedPods();
  const [before, after] = versions(change);
  pods.settled([before]);
  const list = [after];
  expect(pods.settled(list)).toBe(list);
});

test('a pod that comes or goes is a change', () => {
  const pods = new UnchangedPods();
  for (const names of [['a'], ['a', 'b'], ['b'], []]) {
    const list = names.map((name) => boundPod(name, 'node-1'));
    expect(pods.settled(list)).toBe(list);
  }
});
