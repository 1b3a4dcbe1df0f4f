// SPDX-License-Identifier: Apache-2.0
// The CEL rules of a definition's schema, judged as a real API server judges them: their types, what they cost each and
// together, and whether what they compare with can be found.
import { checkRule, type RuleVerdict } from '../../kube/schema/check-rule.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import type { JsonSchema, ValidationRule } from '../../kube/schema/json-schema.ts';
import { maxRequestBytes, type RuleType, ruleType } from '../../kube/schema/rule-types.ts';

const mostPerRule = 10_000_000;
const mostOfAll = 100_000_000;
/** Rules that cost less than this are not to blame for the sum. */
const notable = mostOfAll / 100;
const advice =
  '(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)';

/** What is wrong with the rules of a schema; `at` is its place in the definition. */
export function ruleErrors(schema: JsonSchema, at: string): FieldError[] {
  const judge = new Judge();
  judge.walk({ schema, at, cardinality: 1, uncorrelated: undefined, type: undefined, resource: true });
  return [...judge.errors, ...judge.sumErrors(at)];
}

/** A place in the schema. */
interface Place {
  readonly schema: JsonSchema;
  readonly at: string;
  /** How often such a value can come in one object; undefined when nothing bounds it but the size of a request. */
  readonly cardinality: number | undefined;
  /** The list or map above, whose items cannot be found again in the old object. */
  readonly uncorrelated: string | undefined;
  /** What the place above already knows of this one's type. */
  readonly type: RuleType | undefined;
  readonly resource: boolean;
}

class Judge {
  readonly errors: FieldError[] = [];
  #total = 0;
  readonly #expensive: { readonly field: string; readonly cost: number }[] = [];

  walk(place: Place): void {
    const { schema, at, uncorrelated } = place;
    const own = schema['x-kubernetes-validations'] ?? [];
    const type = place.type ?? ruleType(schema, place.resource);
    const inner = this.#childPlace(place, type);
    if (typeof schema.additionalProperties === 'object') {
      this.walk({ ...inner(schema.additionalProperties, 'additionalProperties', type?.items), uncorrelated });
    }
    const fields = schema['x-kubernetes-map-type'] === 'atomic' ? (uncorrelated ?? at) : uncorrelated;
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      this.walk({ ...inner(property, `properties[${name}]`, type?.fields?.get(name)), uncorrelated: fields });
    }
    if (schema.items) {
      const items = schema['x-kubernetes-list-type'] === 'map' ? uncorrelated : (uncorrelated ?? at);
      this.walk({ ...inner(schema.items, 'items', type?.items), uncorrelated: items });
    }
    if (own.length === 0) return;
    if (type === undefined) {
      this.errors.push({
        field: `${at}.x-kubernetes-validations`,
        type: 'Internal',
        detail:
          'internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations',
      });
      return;
    }
    for (const [i, rule] of own.entries()) this.#rule(rule, `${at}.x-kubernetes-validations[${i}]`, place, type);
  }

  #childPlace(place: Place, type: RuleType | undefined) {
    const factor = mostInside(place.schema);
    const cardinality =
      place.cardinality === undefined || factor === undefined ? undefined : place.cardinality * factor;
    return (schema: JsonSchema, part: string, known: RuleType | undefined): Place => ({
      schema,
      at: `${place.at}.${part}`,
      cardinality,
      uncorrelated: undefined,
      type: type === undefined ? undefined : known,
      resource: schema['x-kubernetes-embedded-resource'] ?? false,
    });
  }

  #rule(rule: ValidationRule, at: string, { cardinality, uncorrelated }: Place, type: RuleType): void {
    const often = cardinality ?? Math.floor(maxRequestBytes / (type.minBytes + 1));
    const verdict = checkRule(rule.rule, type, 'bool', rule.optionalOldSelf ?? false);
    this.#observe(`${at}.rule`, 'estimated rule cost', verdict.cost * often);
    this.#problem(`${at}.rule`, rule, verdict);
    if (verdict.problem === undefined && rule.messageExpression) {
      const message = checkRule(rule.messageExpression, type, 'string', rule.optionalOldSelf ?? false);
      this.#problem(`${at}.messageExpression`, rule, message);
      this.#observe(`${at}.messageExpression`, 'estimated messageExpression cost', message.cost);
    }
    if (verdict.usesOldSelf && uncorrelated !== undefined) {
      const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelated}`;
      this.errors.push({ field: `${at}.rule`, type: 'Invalid', value: rule.rule, detail });
    } else if (!verdict.usesOldSelf && rule.optionalOldSelf !== undefined) {
      const detail = 'may not be set if oldSelf is not used in rule';
      this.errors.push({ field: `${at}.optionalOldSelf`, type: 'Invalid', value: rule.optionalOldSelf, detail });
    }
  }

  #problem(field: string, rule: ValidationRule, { problem }: RuleVerdict): void {
    if (problem === undefined) return;
    this.errors.push({ field, type: 'Invalid', value: shown(rule), detail: problem });
  }

  #observe(field: string, what: string, cost: number): void {
    if (cost > mostPerRule) {
      this.errors.push({ field, type: 'Forbidden', detail: exceeded(what, cost / mostPerRule) });
    }
    this.#total += cost;
    if (cost < notable) return;
    this.#expensive.push({ field, cost });
    this.#expensive.sort((a, b) => b.cost - a.cost).splice(4);
  }

  sumErrors(at: string): FieldError[] {
    if (this.#total <= mostOfAll) return [];
    const detail = 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema';
    const all = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema';
    return [
      ...this.#expensive.map(({ field }): FieldError => ({ field, type: 'Forbidden', detail })),
      { field: at, type: 'Forbidden', detail: exceeded(all, this.#total / mostOfAll) },
    ];
  }
}

function exceeded(what: string, factor: number): string {
  let times = `${factor.toFixed(1)}x`;
  if (factor > 100) times = 'more than 100x';
  else if (factor < 1.5) times = `${factor.toFixed(6)}x`;
  return `${what} exceeds budget by factor of ${times} ${advice}`;
}

/** How many values a schema may hold; undefined when it does not say. */
function mostInside({ type, additionalProperties, maxProperties, maxItems }: JsonSchema): number | undefined {
  if (type === 'object' && additionalProperties !== undefined) return maxProperties && Math.max(maxProperties, 0);
  return type === 'array' ? maxItems && Math.max(maxItems, 0) : 1;
}

/** A rule as the API server shows it: all of its fields, in Go's order. */
function shown(rule: ValidationRule): ReadonlyMap<string, unknown> {
  return new Map<string, unknown>([
    ['Rule', rule.rule],
    ['Message', rule.message ?? ''],
    ['MessageExpression', rule.messageExpression ?? ''],
    ['Reason', rule.reason ?? null],
    ['FieldPath', rule.fieldPath ?? ''],
    ['OptionalOldSelf', rule.optionalOldSelf ?? null],
  ]);
}
