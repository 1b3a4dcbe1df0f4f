// SPDX-License-Identifier: Apache-2.0
// What a provider says about itself, before it is asked for anything.
import assert from 'node:assert/strict';
import { commonLabelSet, karpenterGroup } from '../../../api/labels.ts';
import { isQualifiedName } from '../../../kube/labels.ts';
import { type ConformanceCase, casesOf } from '../case.ts';

const camelCase = /^[A-Z][A-Za-z0-9]*$/;
/** Reasons of the core: a provider's own must be told apart from them. */
const coreReasons = ['Drifted', 'Empty', 'Underutilized', 'All'];

function expectUnique(values: readonly string[], what: string): void {
  assert.equal(new Set(values).size, values.length, `${what} must differ: ${values.join(', ')}`);
}

export const identityCases: readonly ConformanceCase[] = [
  ...casesOf('Identity', {
    name: [
      'has a short name that fits a flag and a metric label',
      async ({ provider }) => assert.match(provider.name, /^[a-z][a-z0-9-]{0,30}$/),
    ],
    'node-classes': [
      'serves NodeClasses of a group of its own',
      async ({ provider }) => {
        assert.ok(provider.nodeClasses.length > 0, 'at least one NodeClass');
        for (const { group, kind, namespaced } of provider.nodeClasses) {
          assert.match(group, /^[a-z0-9-]+(\.[a-z0-9-]+)+$/, `${kind} needs a group with a domain`);
          assert.notEqual(group, karpenterGroup, `${karpenterGroup} is the core's own group`);
          assert.match(kind, camelCase);
          assert.equal(namespaced, false, `${kind}: NodePools refer to it without a namespace`);
        }
        expectUnique(
          provider.nodeClasses.map(({ group, kind }) => `${kind}.${group}`),
          'NodeClasses',
        );
      },
    ],
    labels: [
      'knows every label of Kubernetes, and adds only valid ones',
      async ({ provider: { labels } }) => {
        for (const part of ['wellKnown', 'restrictedDomains', 'restricted'] as const)
          for (const key of commonLabelSet[part])
            assert.ok(labels[part].has(key), `${part} must have ${key}: extend commonLabelSet`);
        for (const key of labels.wellKnown) assert.deepEqual(isQualifiedName(key), [], key);
        for (const [from, to] of labels.normalized)
          assert.ok(labels.wellKnown.has(to), `${from} is normalised to ${to}, which is not well known`);
      },
    ],
    'disruption-reasons': [
      'has disruption reasons that are words of their own',
      async ({ provider: { disruptionReasons = [] } }) => {
        for (const reason of disruptionReasons) {
          assert.match(reason, camelCase);
          assert.ok(!coreReasons.includes(reason), `${reason} is the core's own`);
        }
        expectUnique(disruptionReasons, 'disruption reasons');
      },
    ],
  }),
  ...casesOf('RepairPolicies', {
    sane: [
      'name a condition once each, and have some patience',
      async ({ provider: { repairPolicies } }) => {
        for (const { conditionType, conditionStatus, tolerationMs } of repairPolicies) {
          assert.ok(conditionType !== '', 'a condition');
          assert.ok(['True', 'False', 'Unknown'].includes(conditionStatus), conditionStatus);
          assert.ok(Number.isFinite(tolerationMs) && tolerationMs > 0, `${conditionType}: a node must get some time`);
        }
        expectUnique(
          repairPolicies.map(({ conditionType, conditionStatus }) => `${conditionType}=${conditionStatus}`),
          'repair policies',
        );
      },
    ],
  }),
  ...casesOf('RegistrationHooks', {
    answer: [
      'say that they are done, or when to ask again',
      async (subject) => {
        const { registrationHooks = [] } = subject.provider;
        expectUnique(
          registrationHooks.map(({ name }) => name),
          'registration hooks',
        );
        const { claim } = await subject.launched();
        for (const hook of registrationHooks) {
          const answer = await hook.registered(claim, subject.signal);
          assert.ok(
            'done' in answer || answer.requeueAfterMs > 0,
            `${hook.name} must be done, or say when to ask again`,
          );
        }
      },
    ],
  }),
];
