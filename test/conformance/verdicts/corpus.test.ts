// SPDX-License-Identifier: Apache-2.0
// Our schema validation gives every verdict of the corpus.
import { describe, expect, test } from 'vitest';
import { allCrds } from '../../../src/api/crd.ts';
import { deepClone } from '../../../src/base/freeze.ts';
import { formatFieldErrors, StructuralSchema } from '../../../src/kube/schema/index.ts';
import { type CandidateObject, corpus, type VerdictCase } from './corpus.ts';

/** By served version and kind. */
const schemas = new Map(
  allCrds().flatMap(({ spec }) =>
    spec.versions.map((version) => [
      `${spec.group}/${version.name} ${spec.names.kind}`,
      new StructuralSchema(version.schema.openAPIV3Schema),
    ]),
  ),
);
const kindOf = ({ object }: VerdictCase): string => `${object.apiVersion} ${object.kind}`;

/** An object as it reaches validation: pruned and defaulted. */
function admitted(schema: StructuralSchema, object: CandidateObject): unknown {
  return schema.default(schema.prune(deepClone(object)).value);
}

describe('the corpus', () => {
  test('covers all kinds in all versions, both verdicts and updates, under unique names', () => {
    expect(new Set(corpus.map(({ id }) => id)).size).toBe(corpus.length);
    for (const kind of schemas.keys()) {
      const cases = corpus.filter((verdictCase) => kindOf(verdictCase) === kind);
      expect(cases.some(({ valid }) => valid) && cases.some(({ valid }) => !valid), kind).toBe(true);
      expect(
        cases.some(({ old }) => old),
        kind,
      ).toBe(true);
    }
  });

  test.each(corpus.filter(({ beyondSchema }) => !beyondSchema))('$id: $why', (verdictCase) => {
    const { object, old, valid } = verdictCase;
    const schema = schemas.get(kindOf(verdictCase))!;
    const before = old && admitted(schema, old);
    if (old) expect(formatFieldErrors(schema.validate(before))).toBe('');
    const errors = schema.validate(admitted(schema, object), before);
    expect(errors.length === 0, formatFieldErrors(errors) || 'no errors').toBe(valid);
  });
});
