// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { deepClone } from '../../base/freeze.ts';
import type { Node } from '../../kube/kinds.ts';
import { NodesBesideHeartbeats } from './heartbeats.ts';

function node(name: string, change: (node: Node) => void = () => {}): Node {
  const made = deepClone({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, uid: name, resourceVersion: '1', labels: { zone: 'a' } },
    spec: { providerID: `kwok://${name}` },
    status: {
      allocatable: { cpu: '4' },
      conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: '2026-01-01T00:00:00Z' }],
    },
  }) as Node;
  change(made);
  return made;
}

const report = (of: Node): void => {
  of.metadata.resourceVersion = '2';
  of.status!.conditions![0]!.lastHeartbeatTime = '2026-01-01T00:05:00Z';
};

describe('a list of nodes', () => {
  const changes: Record<string, (of: Node) => void> = {
    'another label': (of) => {
      of.metadata.labels = { zone: 'b' };
    },
    'a taint': (of) => {
      of.spec = { ...of.spec, taints: [{ key: 'a', effect: 'NoSchedule' }] };
    },
    'less room': (of) => {
      of.status!.allocatable = { cpu: '2' };
    },
    'a condition that turned': (of) => {
      of.status!.conditions![0]!.status = 'False';
    },
    'another node of the same name': (of) => {
      of.metadata.uid = 'other';
    },
  };

  test('is the same after heartbeats', () => {
    const nodes = new NodesBesideHeartbeats();
    const first = nodes.settled([node('a'), node('b')]);
    expect(nodes.settled([node('a', report), node('b')])).toBe(first);
    expect(nodes.settled([node('b', report), node('a', report)])).toBe(first);
  });

  test.each(Object.entries(changes))('is another with %s', (_name, change) => {
    const nodes = new NodesBesideHeartbeats();
    const first = nodes.settled([node('a'), node('b')]);
    const next = [node('a', change), node('b')];
    expect(nodes.settled(next)).toBe(next);
    expect(nodes.settled([node('a', change), node('b', report)])).toBe(next);
    expect(next).not.toBe(first);
  });

  test('is another when a node comes, goes or is replaced', () => {
    const nodes = new NodesBesideHeartbeats();
    for (const names of [['a'], ['a', 'b'], ['b'], ['c'], []]) {
      const list = names.map((name) => node(name));
      expect(nodes.settled(list)).toBe(list);
    }
  });
});
