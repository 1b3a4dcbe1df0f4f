// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { allCrds } from '../../api/crd.ts';
import { compileJsonPath } from './json-path.ts';

const object = {
  metadata: { labels: { 'node.kubernetes.io/instance-type': 'm5.large', plain: 'x' }, name: 'a' },
  spec: { list: [1, 2, 3], 'odd key': true },
  status: {
    conditions: [
      { type: 'Ready', status: 'True' },
      { type: 'Drifted', status: 'False' },
    ],
  },
};

test.each([
  ['.metadata.name', ['a']],
  ['{.metadata.name}', ['a']],
  ['.metadata.labels.node\\.kubernetes\\.io/instance-type', ['m5.large']],
  [".metadata.labels['node.kubernetes.io/instance-type']", ['m5.large']],
  ['.metadata.labels.missing', []],
  ['.spec.list[0]', [1]],
  ['.spec.list[-1]', [3]],
  ['.spec.list[*]', [1, 2, 3]],
  ["['spec']['odd key']", [true]],
  ['.status.conditions[?(@.type=="Ready")].status', ['True']],
  ['.status.conditions[?(@.type!="Ready")].status', ['False']],
  ['.status.conditions[*].type', ['Ready', 'Drifted']],
  ['.metadata.name(', []],
])('%s finds %j', (path, found) => {
  expect(compileJsonPath(path)(object)).toEqual(found);
});

test('every column of our own kinds finds what it names', () => {
  const everywhere: unknown = new Proxy(
    {},
    { get: () => everywhere, getOwnPropertyDescriptor: () => ({ configurable: true, enumerable: true, value: 1 }) },
  );
  for (const crd of allCrds()) {
    for (const { jsonPath, name } of crd.spec.versions[0]?.additionalPrinterColumns ?? []) {
      if (jsonPath.includes('[')) continue; // Filters and lists are above.
      expect(compileJsonPath(jsonPath)(everywhere), `${crd.spec.names.kind} ${name}`).toHaveLength(1);
    }
  }
});
