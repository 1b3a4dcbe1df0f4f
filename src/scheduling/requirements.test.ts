// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { commonLabelSet } from '../api/labels.ts';
import {
  compatible,
  conflict,
  impossibleKey,
  mergeRequirements,
  Requirement,
  requirementsOf,
  undefinedKey,
} from './requirements.ts';

const parse = (operator: string, ...values: string[]): Requirement =>
  Requirement.parse({ key: 'k', operator, values })!;

describe('a requirement', () => {
  test.each([
    ['In', ['a', 'b'], 'a', true],
    ['In', ['a', 'b'], 'c', false],
    ['NotIn', ['a'], 'a', false],
    ['NotIn', ['a'], 'b', true],
    ['Exists', [], 'anything', true],
    ['DoesNotExist', [], 'anything', false],
    ['Gt', ['4'], '5', true],
    ['Gt', ['4'], '4', false],
    ['Lt', ['4'], '3', true],
    ['Lt', ['4'], '4', false],
    ['Gte', ['4'], '4', true],
    ['Lte', ['4'], '4', true],
    ['Gt', ['4'], 'five', false],
  ])('%s %j has %s: %s', (operator, values, value, expected) => {
    expect(parse(operator, ...values).has(value)).toBe(expected);
  });

  test('of an unknown operator or with a bound that is no integer is not one', () => {
    expect(Requirement.parse({ key: 'k', operator: 'Like', values: ['a'] })).toBeUndefined();
    expect(Requirement.parse({ key: 'k', operator: 'Gt', values: ['many'] })).toBeUndefined();
  });

  test('greater than the largest integer cannot be satisfied', () => {
    expect(parse('Gt', '9223372036854775807').operator).toBe('DoesNotExist');
  });

  test('takes the new name of a deprecated label', () => {
    const spec = { key: 'failure-domain.beta.kubernetes.io/zone', operator: 'In', values: ['a'] };
    expect(Requirement.parse(spec, commonLabelSet)?.key).toBe('topology.kubernetes.io/zone');
  });

  test('is written with bounds first and values sorted', () => {
    const both = parse('Gt', '1')
      .intersection(parse('Lt', '9'))
      .intersection(parse('NotIn', '5', '3'));
    expect(both.toSpecs()).toEqual([
      { key: 'k', operator: 'Gte', values: ['2'] },
      { key: 'k', operator: 'Lte', values: ['8'] },
      { key: 'k', operator: 'NotIn', values: ['3', '5'] },
    ]);
  });

  test('that forbids a value and wants the label to be there says both', () => {
    const both = parse('NotIn', 'a').intersection(parse('Exists'));
    expect(both.toSpecs().map(({ operator }) => operator)).toEqual(['NotIn', 'Exists']);
    expect(both.mustExist).toBe(true);
  });

  test('keeps the larger minValues', () => {
    const few = Requirement.parse({ key: 'k', operator: 'Exists', minValues: 2 })!;
    const many = Requirement.parse({ key: 'k', operator: 'In', values: ['a', 'b', 'c'], minValues: 3 })!;
    expect(few.intersection(many).minValues).toBe(3);
  });
});

const values = ['1', '2', '3', '4', '5', 'x'];
const anyRequirement = fc
  .record({
    operator: fc.constantFrom('In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt', 'Gte', 'Lte'),
    values: fc.subarray(values, { minLength: 1 }),
    bound: fc.constantFrom('1', '2', '3', '4', '5'),
  })
  .map(({ operator, values: some, bound }) => {
    const takesBound = /^[GL]t/.test(operator);
    return parse(operator, ...(takesBound ? [bound] : operator.endsWith('In') || operator === 'In' ? some : []));
  });

describe('the intersection of two requirements', () => {
  test('has exactly the values that both have', () => {
    fc.assert(
      fc.property(anyRequirement, anyRequirement, fc.constantFrom(...values, 'never-named'), (a, b, value) => {
        expect(a.intersection(b).has(value)).toBe(a.has(value) && b.has(value));
      }),
    );
  });

  test('does not depend on the order, and is empty exactly when they do not intersect', () => {
    fc.assert(
      fc.property(anyRequirement, anyRequirement, (a, b) => {
        expect(a.intersection(b).signature).toBe(b.intersection(a).signature);
        if (!a.complement || !b.complement) expect(a.intersects(b)).toBe(a.intersection(b).values.size > 0);
      }),
    );
  });
});

describe('requirements of a node against those of a pod', () => {
  const of = (operator: string, ...list: string[]) => requirementsOf([{ key: 'team', operator, values: list }]);

  test.each([
    ['In', ['a'], false],
    ['Exists', [], false],
    ['NotIn', ['a'], true],
    ['DoesNotExist', [], true],
  ])('a label that the node does not have: %s %j fits: %s', (operator, list, expected) => {
    expect(compatible(new Map(), of(operator, ...list))).toBe(expected);
  });

  test('a label that the cloud decides later may be asked for', () => {
    expect(compatible(new Map(), of('In', 'a'), new Set(['team']))).toBe(true);
  });

  test('that another pod forbids a value does not give the node the label', () => {
    expect(undefinedKey(of('NotIn', 'a'), of('In', 'b'), new Set())).toBe('team');
  });

  test('two that only forbid never conflict', () => {
    expect(conflict(of('NotIn', 'a'), of('DoesNotExist'))).toBeUndefined();
  });

  test('demands that contradict each other are impossible', () => {
    expect(impossibleKey(mergeRequirements(of('Exists'), of('DoesNotExist')))).toBe('team');
    expect(impossibleKey(mergeRequirements(of('In', 'a'), of('NotIn', 'a')))).toBe('team');
    expect(impossibleKey(mergeRequirements(of('NotIn', 'a'), of('DoesNotExist')))).toBeUndefined();
  });
});
