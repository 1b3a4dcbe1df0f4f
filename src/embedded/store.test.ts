// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { KubeObject } from '../kube/object.ts';
import { type Cursor, Store } from './store.ts';

function object(name: string, namespace = 'default', fields: object = {}): KubeObject {
  return { metadata: { name, namespace }, ...fields };
}

function drain(cursor: Cursor): string[] {
  const seen: string[] = [];
  for (let event = cursor.next(); event; event = cursor.next())
    seen.push(`${event.type} ${event.object.metadata.name}`);
  return seen;
}

test('every change takes the next revision, whatever its collection', () => {
  const store = new Store();
  const a = store.collection('pods').insert('default', 'a', object('a'));
  const b = store.collection('nodes').insert('', 'b', object('b', ''));
  expect(Number(b.metadata.resourceVersion)).toBe(Number(a.metadata.resourceVersion) + 1);
  expect(store.revision).toBe(Number(b.metadata.resourceVersion));
});

test('lists come in key order, in which the slash after the namespace counts', () => {
  const pods = new Store().collection('pods');
  for (const [namespace, name] of [
    ['b', 'x'],
    ['a', 'z'],
    ['a-b', 'y'],
    ['a', 'c'],
  ] as const) {
    pods.insert(namespace, name, object(name, namespace));
  }
  expect(pods.list().items.map((item) => `${item.metadata.namespace}/${item.metadata.name}`)).toEqual([
    'a-b/y',
    'a/c',
    'a/z',
    'b/x',
  ]);
  pods.remove('a', 'c');
  pods.insert('a', 'a', object('a', 'a'));
  expect(pods.list('a').items.map((item) => item.metadata.name)).toEqual(['a', 'z']);
});

test('what is stored is frozen all the way down, and shared', () => {
  const pods = new Store().collection('pods');
  const stored = pods.insert('default', 'a', object('a', 'default', { spec: { list: [{ x: 1 }] } }));
  expect(Object.isFrozen((stored as unknown as { spec: { list: object[] } }).spec.list[0])).toBe(true);
  expect(pods.get('default', 'a')).toBe(stored);
  expect(pods.list().items[0]).toBe(stored);
});

test('a snapshot that was handed out does not change', () => {
  const pods = new Store().collection('pods');
  pods.insert('default', 'a', object('a'));
  const before = pods.list().items;
  pods.insert('default', 'b', object('b'));
  expect(before).toHaveLength(1);
  expect(pods.list().items).toHaveLength(2);
});

test('a deletion carries the last state under its own revision', () => {
  const store = new Store();
  const pods = store.collection('pods');
  const cursor = pods.watch()!;
  const stored = pods.insert('default', 'a', object('a', 'default', { spec: 1 }));
  const last = pods.remove('default', 'a');
  expect(last).toMatchObject({ spec: 1, metadata: { resourceVersion: String(store.revision) } });
  expect(Number(last.metadata.resourceVersion)).toBeGreaterThan(Number(stored.metadata.resourceVersion));
  expect(drain(cursor)).toEqual(['ADDED a', 'DELETED a']);
});

test('an index follows its objects', () => {
  const store = new Store();
  const pods = store.collection('pods', {
    indexes: { 'spec.nodeName': (pod) => (pod as { node?: string }).node ?? '' },
  });
  pods.insert('default', 'a', object('a', 'default', { node: 'n1' }));
  pods.insert('default', 'b', object('b', 'default', { node: '' }));
  const on = (node: string): unknown[] =>
    pods.listByIndex('spec.nodeName', node)!.items.map((pod) => pod.metadata.name);
  expect([on('n1'), on('')]).toEqual([['a'], ['b']]);
  pods.replace('default', 'b', object('b', 'default', { node: 'n1' }));
  expect([on('n1'), on('')]).toEqual([['a', 'b'], []]);
  pods.remove('default', 'a');
  expect(on('n1')).toEqual(['b']);
  expect(pods.listByIndex('spec.other', 'x')).toBeUndefined();
});

test('a watch resumes within the history, and not beyond', () => {
  const store = new Store({ history: 3 });
  const pods = store.collection('pods');
  const revisions = ['a', 'b', 'c', 'd', 'e'].map((name) =>
    Number(pods.insert('default', name, object(name)).metadata.resourceVersion),
  );
  expect(drain(pods.watch(revisions[1])!)).toEqual(['ADDED c', 'ADDED d', 'ADDED e']);
  expect(drain(pods.watch(revisions[4])!)).toEqual([]);
  expect(pods.watch(revisions[0])).toBeUndefined();
});

test('changes of other collections do not make a watch too old', () => {
  const store = new Store({ history: 2 });
  const pods = store.collection('pods');
  const { revision } = store;
  for (let i = 0; i < 10; i++) store.collection('nodes').insert('', `n${i}`, object(`n${i}`, ''));
  expect(pods.watch(revision)).toBeDefined();
});

test('a waiting watcher wakes once there is something to see, or when it is closed', async () => {
  const pods = new Store().collection('pods');
  const cursor = pods.watch()!;
  const woken = cursor.wait();
  pods.insert('default', 'a', object('a'));
  await woken;
  expect(drain(cursor)).toEqual(['ADDED a']);
  const closed = cursor.wait();
  cursor.close();
  await closed;
  expect(cursor.closed).toBe(true);
});

test('a watcher that does not move is cut off, so that it cannot keep all history in memory', () => {
  const store = new Store({ history: 10, maxLag: 100 });
  const pods = store.collection('pods');
  const slow = pods.watch()!;
  const fast = pods.watch()!;
  for (let i = 0; i < 3000; i++) {
    pods.insert('default', `p${i}`, object(`p${i}`));
    drain(fast);
  }
  expect([slow.expired, slow.next()]).toEqual([true, undefined]);
  expect(fast.expired).toBe(false);
});
