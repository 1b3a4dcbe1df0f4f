// SPDX-License-Identifier: Apache-2.0
// `karpenter convert` as a command.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';

const folder = mkdtempSync(join(tmpdir(), 'karpenter-convert-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function convert(args: string[], input = ''): { code: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['bin/karpenter.js', 'convert', ...args], {
    input,
    encoding: 'utf8',
  });
  return { code: status, stdout, stderr };
}

/** The guide's two manifests, word for word. */
const guide = `apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata:
  name: default
spec:
  template:
    spec:
      requirements:
        - key: "kubernetes.io/arch"
          operator: In
          values: ["amd64"]
      nodeClassRef:
        apiVersion: karpenter.cluster.x-k8s.io/v1alpha1
        kind: ClusterAPINodeClass
        name: default
---
apiVersion: karpenter.cluster.x-k8s.io/v1alpha1
kind: ClusterAPINodeClass
metadata:
  name: default
spec: {}
`;

const converted = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: {
    template: {
      spec: {
        requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }],
        nodeClassRef: { group: 'karpenter.cluster.x-k8s.io', kind: 'ClusterAPINodeClass', name: 'default' },
        expireAfter: '720h',
      },
    },
  },
};

test("turns the guide's NodePool into v1 and leaves its NodeClass alone", () => {
  const { code, stdout, stderr } = convert([], guide);
  expect([code, stderr]).toEqual([0, '']);
  const [pool, nodeClass] = parseAllDocuments(stdout).map((document) => document.toJS());
  expect(pool).toEqual(converted);
  expect(nodeClass).toEqual(parse(guide.split('---\n')[1]!));
});

test('reads files and Lists, JSON as well, and writes JSON when told', () => {
  const [yaml, json] = [join(folder, 'pool.yaml'), join(folder, 'list.json')];
  writeFileSync(yaml, guide.split('---\n')[0]!);
  writeFileSync(json, JSON.stringify({ kind: 'List', apiVersion: 'v1', items: [parse(guide.split('---\n')[0]!)] }));
  expect(JSON.parse(convert([yaml, '-o', 'json']).stdout)).toEqual(converted);
  expect(JSON.parse(convert([yaml, json, '-o', 'json']).stdout)).toEqual({
    apiVersion: 'v1',
    kind: 'List',
    items: [converted, converted],
  });
});

test('says what is lost and what is still wrong, and ends with 1 when something is', () => {
  const lost = convert([], guide.replace('      nodeClassRef:', '      kubelet: { maxPods: 20 }\n      nodeClassRef:'));
  expect(lost).toMatchObject({ code: 0, stderr: expect.stringContaining('kubelet was left out') });
  const wrong = convert([], guide.replace('operator: In', 'operator: Sometimes'));
  expect(wrong.code).toBe(1);
  expect(wrong.stderr).toContain('NodePool default is not valid: spec.template.spec.requirements[0]');
  expect(convert([], 'apiVersion: karpenter.sh/v1alpha5\nkind: NodePool\n').stderr).toContain('v1alpha5 is not served');
});

test.each([
  ['nothing', '', 'there is nothing in it'],
  ['no YAML', 'a: [', 'standard input: '],
  ['no object', '[1, 2]', 'not a Kubernetes object'],
  ['an apiVersion that is no text', '{apiVersion: [{toString: 1}], kind: NodePool}', 'apiVersion and kind have to say'],
  ['a later document without a kind', 'apiVersion: v1\nkind: Pod\n---\na: b\n', 'document 2: not a Kubernetes object'],
  ['a List without items', '{apiVersion: v1, kind: List}', 'a List without items'],
  ['an odd one in a List', '{apiVersion: v1, kind: List, items: [{kind: Pod}]}', 'items[0]: not a Kubernetes object'],
])('refuses %s', (_, input, message) => {
  expect(convert([], input)).toMatchObject({ code: 1, stderr: expect.stringContaining(message) });
});

test('refuses a text that means more than it should, in one sentence', () => {
  const names = 'a b c d e f g h i'.split(' ');
  const lines = names.map(
    (name, i) =>
      `${name}: &${name} [${Array(9)
        .fill(i === 0 ? 'x' : `*${names[i - 1]}`)
        .join()}]`,
  );
  const { code, stderr } = convert([], `apiVersion: v1\nkind: List\n${lines.join('\n')}\n`);
  expect([code, stderr.trim().split('\n').length]).toEqual([1, 1]);
});

test('a name that is none is told as one', () => {
  const named = convert([], 'apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: [{toString: 1}]}\n');
  expect(named).toMatchObject({ code: 1, stderr: expect.stringContaining('NodePool ? is not valid: ') });
});

test('refuses a file that is not there', () => {
  expect(convert(['/nowhere/pool.yaml'])).toMatchObject({ code: 1, stderr: expect.stringContaining('ENOENT') });
});
