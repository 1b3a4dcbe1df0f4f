// SPDX-License-Identifier: Apache-2.0
// What people give on the command line and in settings: manifests, and the scheduler config.
import { stringify } from 'yaml';
import { convertText } from '../../src/cli/convert-text.ts';
import { readSchedulerConfig } from '../../src/runtime/scheduler-config.ts';
import { json, type Parser } from './reader.ts';

const nodePool = {
  apiVersion: 'karpenter.sh/v1beta1',
  kind: 'NodePool',
  metadata: { name: 'p', annotations: { 'karpenter.sh/nodepool-hash': '1' } },
  spec: {
    template: {
      metadata: { labels: { a: 'b' } },
      spec: {
        requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }],
        nodeClassRef: { apiVersion: 'karpenter.k8s.aws/v1beta1', kind: 'EC2NodeClass', name: 'd' },
        kubelet: { maxPods: 10 },
        resources: { requests: { cpu: '1' } },
      },
    },
    disruption: { consolidationPolicy: 'WhenUnderutilized', expireAfter: '720h', budgets: [{ nodes: '10%' }] },
    limits: { cpu: '10' },
  },
};
const nodeClaim = {
  apiVersion: 'karpenter.sh/v1beta1',
  kind: 'NodeClaim',
  metadata: { name: 'c' },
  spec: { ...nodePool.spec.template.spec },
};
const spread = {
  podTopologySpread: {
    defaultConstraints: [
      { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway', minDomains: 2 },
    ],
  },
};

function convert(file: string): string[] {
  return convertText('file', file).objects.map((object) => stringify(object, { aliasDuplicateObjects: false }));
}

const text = (value: unknown): string => JSON.stringify(value);
const bomb = `apiVersion: v1\nkind: a\na: &a [x]\n${Array.from({ length: 12 }, (_, i) => `${'bcdefghijklm'[i]}: &${'bcdefghijklm'[i]} [${Array(9).fill(`*${'abcdefghijkl'[i]}`).join()}]`).join('\n')}\n`;

export const manifests: readonly Parser[] = [
  {
    name: 'manifest to convert',
    seeds: [`${stringify(nodePool)}---\n${stringify(nodeClaim)}`, text({ kind: 'List', items: [nodePool] }), bomb],
    words: [
      'kind: NodePool\n',
      '---\n',
      '- ',
      '&a ',
      '*a ',
      '[',
      '{',
      ': ',
      '"',
      '!!js/function ',
      '<<: *a\n',
      '__proto__: ',
    ],
    parse: convert,
  },
  {
    name: 'objects to convert',
    structured: true,
    seeds: [text(nodePool), text(nodeClaim)],
    parse: json((value) => convert(text(value))),
  },
  {
    name: 'scheduler config',
    seeds: [stringify(spread), text(spread), bomb],
    words: ['podTopologySpread', ': ', '\n  ', '- ', '&a ', '*a ', '[', '{', '__proto__: ', 'null'],
    parse: readSchedulerConfig,
  },
  {
    name: 'object of a scheduler config',
    structured: true,
    seeds: [text(spread)],
    parse: readSchedulerConfig,
  },
];
