// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deepFreeze } from '../base/freeze.ts';
import {
  type Condition,
  type Conditioned,
  type ConditionUpdate,
  clearCondition,
  completeConditions,
  falseCondition,
  getCondition,
  hasTrueConditions,
  setCondition,
  trueCondition,
  nodeClaimConditionTypes as types,
  unknownCondition,
} from './conditions.ts';

const created = '2026-01-01T00:00:00Z';
const at = (minute: number): string => `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`;

interface Claim extends Conditioned {
  metadata: { generation: number; creationTimestamp: string; deletionTimestamp?: string };
  status: { conditions: readonly Condition[] };
}
const claim = (): Claim => ({ metadata: { generation: 1, creationTimestamp: created }, status: { conditions: [] } });

/** The object with one condition set; it must not have been changed in place. */
function after(object: Claim, update: ConditionUpdate, now: string): Claim {
  deepFreeze(object);
  return { ...object, status: { conditions: setCondition(types, object, update, now) } };
}
const summary = (object: Claim): string[] => object.status.conditions.map((c) => `${c.type}=${c.status}`);

describe('a set of conditions', () => {
  test('starts Unknown since the creation of the object, the root last', () => {
    const conditions = completeConditions(types, claim(), at(5));
    expect(conditions.map((c) => c.type)).toEqual(['Initialized', 'Launched', 'Registered', 'Ready']);
    expect(conditions[0]).toEqual({
      type: 'Initialized',
      status: 'Unknown',
      lastTransitionTime: created,
      reason: 'AwaitingReconciliation',
      message: 'object is awaiting reconciliation',
      observedGeneration: 1,
    });
    expect(conditions.at(-1)).toMatchObject({
      lastTransitionTime: created,
      reason: 'ReconcilingDependents',
      message: 'Initialized=Unknown, Launched=Unknown, Registered=Unknown',
    });
  });

  test('becomes Ready when all dependents are True', () => {
    let object = claim();
    for (const [i, type] of types.dependents.entries()) object = after(object, trueCondition(type), at(i + 1));
    expect(summary(object)).toEqual(['Launched=True', 'Registered=True', 'Initialized=True', 'Ready=True']);
    expect(getCondition(object, 'Ready')).toMatchObject({ reason: 'Ready', message: '', lastTransitionTime: at(3) });
    expect(hasTrueConditions(object, 'Launched', 'Ready')).toBe(true);
    expect(hasTrueConditions(object, 'Launched', 'Drifted')).toBe(false);
  });

  test('is False as soon as a dependent is False, naming the latest first', () => {
    let object = after(claim(), trueCondition('Launched'), at(1));
    object = after(object, falseCondition('Registered', 'MultipleNodesFound', 'two nodes'), at(2));
    expect(getCondition(object, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'UnhealthyDependents',
      message: 'Registered=False, Initialized=Unknown',
    });
  });

  test('a dependent that was computed for an older generation makes the root Unknown', () => {
    let object = claim();
    for (const type of types.dependents) object = after(object, trueCondition(type), at(1));
    object = { ...object, metadata: { ...object.metadata, generation: 2 } };
    object = after(object, trueCondition('Launched'), at(2));
    expect(getCondition(object, 'Launched')).toMatchObject({ observedGeneration: 2, lastTransitionTime: at(1) });
    expect(getCondition(object, 'Ready')).toMatchObject({
      status: 'Unknown',
      message: 'Initialized=True, Registered=True',
    });
  });

  test('while the object is being deleted, the other conditions count as up to date', () => {
    let object = claim();
    for (const type of types.dependents) object = after(object, trueCondition(type), at(1));
    object = { ...object, metadata: { ...object.metadata, generation: 2, deletionTimestamp: at(2) } };
    object = after(object, unknownCondition('Drained', 'Draining', ''), at(3));
    expect(object.status.conditions.every((c) => c.observedGeneration === 2)).toBe(true);
    expect(getCondition(object, 'Ready')?.status).toBe('True');
  });

  test('the time moves only with the status', () => {
    let object = after(claim(), unknownCondition('Launched', 'LaunchFailed', 'no capacity'), at(1));
    expect(getCondition(object, 'Launched')?.lastTransitionTime).toBe(created);
    object = after(object, trueCondition('Launched'), at(2));
    object = after(object, trueCondition('Launched', 'Again'), at(3));
    expect(getCondition(object, 'Launched')).toMatchObject({ lastTransitionTime: at(2), reason: 'Again' });
  });

  test('setting what is there already gives the same list', () => {
    const object = after(claim(), trueCondition('Drifted'), at(1));
    expect(setCondition(types, object, trueCondition('Drifted'), at(9))).toBe(object.status.conditions);
    expect(completeConditions(types, object, at(9))).toBe(object.status.conditions);
  });

  test('independent conditions come and go, and do not touch the root', () => {
    const object = after(claim(), falseCondition('ConsistentStateFound', 'ConsistencyCheckFailed', 'x'), at(1));
    expect(getCondition(object, 'Ready')?.status).toBe('Unknown');
    expect(getCondition(object, 'ConsistentStateFound')?.lastTransitionTime).toBe(at(1));
    const left = clearCondition(types, object, 'ConsistentStateFound');
    expect(left.map((c) => c.type)).toEqual(['Initialized', 'Launched', 'Registered', 'Ready']);
    expect(clearCondition(types, object, 'Drifted')).toBe(object.status.conditions);
    expect(() => clearCondition(types, object, 'Launched')).toThrow('cannot be cleared');
    expect(() => clearCondition(types, object, 'Ready')).toThrow('cannot be cleared');
  });

  test('whatever happens: one of each type, the root last and right, ordered by time', () => {
    const step = fc.record({
      type: fc.constantFrom(...types.dependents, 'Drifted', 'Drained'),
      status: fc.constantFrom('True' as const, 'False' as const, 'Unknown' as const),
      reason: fc.constantFrom('A', 'B'),
      bump: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 20 }), (steps) => {
        let object = claim();
        steps.forEach(({ bump, ...update }, i) => {
          if (bump)
            object = { ...object, metadata: { ...object.metadata, generation: object.metadata.generation + 1 } };
          object = after(object, update, at(i));
        });
        const list = object.status.conditions;
        expect(new Set(list.map((c) => c.type)).size).toBe(list.length);
        expect(list.at(-1)?.type).toBe('Ready');
        const times = list.slice(0, -1).map((c) => c.lastTransitionTime);
        expect(times).toEqual([...times].sort());
        const dependents = list.filter((c) => types.dependents.includes(c.type));
        const current = dependents.filter((c) => c.observedGeneration === object.metadata.generation);
        const healthy = current.length === 3 && current.every((c) => c.status === 'True');
        const failed = current.some((c) => c.status === 'False');
        // An unchanged condition gives the same list, so the root is only as fresh as the last change.
        if (getCondition(object, 'Ready')?.observedGeneration === object.metadata.generation)
          expect(getCondition(object, 'Ready')?.status).toBe(healthy ? 'True' : failed ? 'False' : 'Unknown');
      }),
    );
  });
});
