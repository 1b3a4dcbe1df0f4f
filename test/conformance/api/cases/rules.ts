// SPDX-License-Identifier: Apache-2.0
// CEL rules of definitions: which are refused before anything is stored, in which words, and what those that stand do to objects.
import { type ConformanceCase, eventually, has, missing, ok, refused, same } from '../case.ts';
import { crd, define, established } from '../objects.ts';

const text = { type: 'string' };
const number = { type: 'integer' };
const at = 'spec.validation.openAPIV3Schema.properties[spec]';

type Fields = Readonly<Record<string, unknown>>;

interface BadRules {
  readonly id: string;
  readonly title: string;
  /** The schema of `spec`. */
  readonly spec: Fields;
  /** `field: body` of each cause, in order. */
  readonly causes: readonly string[];
  /** What makes it right again, laid over the schema. */
  readonly repair: Fields;
}

const schema = (properties: Fields, ...rules: Fields[]): Fields => ({
  'x-kubernetes-preserve-unknown-fields': undefined,
  properties,
  'x-kubernetes-validations': rules,
});

/** A rule as the server shows it. */
const shown = (rule: Fields): string =>
  JSON.stringify({
    Rule: rule['rule'],
    Message: rule['message'] ?? '',
    MessageExpression: rule['messageExpression'] ?? '',
    Reason: null,
    FieldPath: '',
    OptionalOldSelf: null,
  }).replaceAll(/[<>&]/g, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`);

const notCompiled = (
  rule: Fields,
  column: number,
  problem: string,
  where = `${at}.x-kubernetes-validations[0].rule`,
) => {
  const line = String(rule['rule']);
  const mark = `${'.'.repeat(column - 1)}^`;
  return `${where}: Invalid value: ${shown(rule)}: compilation failed: ERROR: <input>:1:${column}: ${problem}\n | ${line}\n | ${mark}`;
};

const advice =
  '(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)';
const ruleField = `${at}.x-kubernetes-validations[0].rule`;

const plain = (
  id: string,
  title: string,
  properties: Fields,
  rule: string,
  column: number,
  problem: string,
): BadRules => ({
  id,
  title,
  spec: schema(properties, { rule }),
  causes: [notCompiled({ rule }, column, problem)],
  repair: { 'x-kubernetes-validations': [{ rule: 'true' }] },
});

const bad: readonly BadRules[] = [
  plain(
    'types-equal',
    'compares a number with a text',
    { n: number },
    "self.n == 'x'",
    8,
    "found no matching overload for '_==_' applied to '(int, string)'",
  ),
  plain(
    'types-add',
    'adds a text to a number',
    { n: number },
    "self.n + 'x' == 'y'",
    8,
    "found no matching overload for '_+_' applied to '(int, string)'",
  ),
  plain(
    'types-logic',
    'takes a text for a truth value',
    { s: text },
    "self.s == 'x' || self.s",
    22,
    "expected type 'bool' but found 'string'",
  ),
  plain(
    'types-method',
    'calls a method of another type',
    { n: number },
    'self.n.startsWith("x")',
    18,
    "found no matching overload for 'startsWith' applied to 'int.(string)'",
  ),
  plain(
    'types-range',
    'loops over a text',
    { s: text },
    'self.s.all(c, c == "x")',
    5,
    "expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)",
  ),
  plain(
    'types-branches',
    'has branches of two types',
    { n: number },
    'self.n > 1 ? true : "no"',
    12,
    "found no matching overload for '_?_:_' applied to '(bool, bool, string)'",
  ),
  plain(
    'types-list',
    'mixes types in a list',
    { n: number },
    'self.n in [1, "two"]',
    15,
    "expected type 'int' but found 'string'",
  ),
  plain(
    'deep-field',
    'reads a field of a field that is not there',
    { o: { type: 'object', properties: { a: text } } },
    'self.o.b == "x"',
    7,
    "undefined field 'b'",
  ),
  plain(
    'unknown-name',
    'uses a name that nobody declared',
    { n: number },
    'itself.n > 1',
    1,
    "undeclared reference to 'itself' (in container '')",
  ),
  plain(
    'unknown-function',
    'calls a function that is not there',
    { s: text },
    'capitalised(self.s)',
    12,
    "undeclared reference to 'capitalised' (in container '')",
  ),
  plain(
    'bad-duration',
    'has a duration that is none',
    { s: text },
    'duration("soon") > duration(self.s)',
    10,
    'invalid duration argument',
  ),
  plain(
    'bad-expression',
    'has a pattern that is none',
    { s: text },
    'self.s.matches("(")',
    16,
    'invalid matches argument',
  ),
  {
    id: 'several',
    title: 'has two rules that do not compile, both of them told',
    spec: schema({ n: number }, { rule: 'self.n' }, { rule: 'self.m > 1' }, { rule: 'self.n > 1' }),
    causes: [
      `${at}.x-kubernetes-validations[0].rule: Invalid value: ${shown({ rule: 'self.n' })}: cel expression must evaluate to a bool`,
      notCompiled({ rule: 'self.m > 1' }, 5, "undefined field 'm'", `${at}.x-kubernetes-validations[1].rule`),
    ],
    repair: { 'x-kubernetes-validations': [{ rule: 'self.n > 1' }] },
  },
  {
    id: 'message-type',
    title: 'has a message that is no text',
    spec: schema({ n: number }, { rule: 'self.n > 1', messageExpression: 'self.n' }),
    causes: [
      `${at}.x-kubernetes-validations[0].messageExpression: Invalid value: ${shown({ rule: 'self.n > 1', messageExpression: 'self.n' })}: messageExpression must evaluate to a string`,
    ],
    repair: { 'x-kubernetes-validations': [{ rule: 'self.n > 1', messageExpression: '"n is too small"' }] },
  },
  {
    id: 'message-breaks',
    title: 'has a message of two lines',
    spec: schema({ n: number }, { rule: 'self.n > 1', message: 'two\nlines' }),
    causes: [`${at}.x-kubernetes-validations[0].message: Invalid value: "two\\nlines": must not contain line breaks`],
    repair: { 'x-kubernetes-validations': [{ rule: 'self.n > 1', message: 'one line' }] },
  },
  {
    id: 'empty',
    title: 'is empty',
    spec: schema({ n: number }, { rule: ' ' }),
    causes: [`${ruleField}: Required value: rule is not specified`],
    repair: { 'x-kubernetes-validations': [{ rule: 'true' }] },
  },
  {
    id: 'reason',
    title: 'gives a reason that is not there',
    spec: schema({ n: number }, { rule: 'self.n > 1', reason: 'Because', fieldPath: '.m' }),
    causes: [
      `${at}.x-kubernetes-validations[0].reason: Unsupported value: "Because": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"`,
      `${at}.x-kubernetes-validations[0].fieldPath: Invalid value: ".m": must be a valid path`,
    ],
    repair: {
      'x-kubernetes-validations': [{ rule: 'self.n > 1', reason: 'FieldValueForbidden', fieldPath: '.n' }],
    },
  },
  {
    id: 'cost-nested',
    title: 'compares all items with all items of a list without end',
    spec: schema({ l: { type: 'array', items: text } }, { rule: 'self.l.all(x, self.l.exists_one(y, x == y))' }),
    causes: [
      `${ruleField}: Forbidden: estimated rule cost exceeds budget by factor of more than 100x ${advice}`,
      `${ruleField}: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema`,
      `spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x ${advice}`,
    ],
    repair: { properties: { l: { type: 'array', maxItems: 20, items: { type: 'string', maxLength: 20 } } } },
  },
  {
    id: 'cost-below',
    title: 'is cheap, but on each item of a list without end',
    spec: {
      'x-kubernetes-preserve-unknown-fields': undefined,
      properties: {
        l: {
          type: 'array',
          items: { type: 'string', maxLength: 40, 'x-kubernetes-validations': [{ rule: "self.matches('^[a-z]+$')" }] },
        },
      },
    },
    causes: [
      `${at}.properties[l].items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 3.7x ${advice}`,
    ],
    repair: {
      properties: {
        l: {
          type: 'array',
          maxItems: 100,
          items: { type: 'string', maxLength: 40, 'x-kubernetes-validations': [{ rule: "self.matches('^[a-z]+$')" }] },
        },
      },
    },
  },
  {
    id: 'old-uncorrelated',
    title: 'compares items of a list that cannot be told apart with old ones',
    spec: {
      'x-kubernetes-preserve-unknown-fields': undefined,
      properties: {
        l: {
          type: 'array',
          maxItems: 5,
          items: { type: 'string', maxLength: 5, 'x-kubernetes-validations': [{ rule: 'self == oldSelf' }] },
        },
      },
    },
    causes: [
      `${at}.properties[l].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within ${at}.properties[l]`,
    ],
    repair: {
      properties: {
        l: { type: 'array', items: text, 'x-kubernetes-validations': [{ rule: 'self.size() >= oldSelf.size()' }] },
      },
    },
  },
  {
    id: 'old-optional',
    title: 'makes an old value optional that it does not look at',
    spec: schema({ n: number }, { rule: 'self.n > 1', optionalOldSelf: true }),
    causes: [
      `${at}.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule`,
    ],
    repair: {
      'x-kubernetes-validations': [
        { rule: '!oldSelf.hasValue() || self.n >= oldSelf.value().n', optionalOldSelf: true },
      ],
    },
  },
];

const refusedCases: readonly ConformanceCase[] = bad.map(({ id, title, spec, causes, repair }) => ({
  id: `rules/refused-${id}`,
  title: `a rule that ${title} is refused, and taken when it is put right`,
  run: async (context) => {
    const { a, b, c, namespace, path } = context;
    const group = `${namespace}.example.com`;
    const name = `gadgets.${group}`;
    const { details } = await refused(
      a.post(path('customresourcedefinitions'), crd(group, { spec })),
      422,
      'Invalid',
      `CustomResourceDefinition.apiextensions.k8s.io "${name}" is invalid: ${
        causes.length === 1 ? causes[0] : `[${causes.join(', ')}]`
      }`,
    );
    same(
      (details['causes'] as { field: string; message: string }[]).map(({ field, message }) => `${field}: ${message}`),
      causes,
      'the causes',
    );
    await missing(b.get(path('customresourcedefinitions', name)));
    const right = crd(group, { spec: { ...spec, ...repair } });
    await ok(c.post(path('customresourcedefinitions'), right));
    // What stands cannot be broken later either.
    const stored = await established(context, name);
    const broken = { ...crd(group, { spec }), metadata: stored.metadata };
    await refused(a.put(path('customresourcedefinitions', name), broken), 422, 'Invalid');
  },
}));

interface BadSchema {
  readonly id: string;
  readonly title: string;
  readonly field: Fields;
  readonly cause: string;
}

const list = (more: Fields): Fields => ({ type: 'array', items: { type: 'object', properties: { k: text } }, ...more });
const inField = `${at}.properties[f]`;

const badSchemas: readonly BadSchema[] = [
  {
    id: 'unique-items',
    title: 'asks for unique items',
    field: { type: 'array', items: text, uniqueItems: true },
    cause: `${inField}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`,
  },
  {
    id: 'properties-and-more',
    title: 'has both properties and additional ones',
    field: { type: 'object', properties: { a: text }, additionalProperties: text },
    cause: `${inField}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`,
  },
  {
    id: 'list-type-on-text',
    title: 'calls a text a set',
    field: { type: 'string', 'x-kubernetes-list-type': 'set' },
    cause: `${inField}.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified`,
  },
  {
    id: 'map-type-unknown',
    title: 'has an unknown type of map',
    field: { type: 'object', 'x-kubernetes-map-type': 'loose' },
    cause: `${inField}.x-kubernetes-map-type: Unsupported value: "loose": supported values: "atomic", "granular"`,
  },
  {
    id: 'map-without-keys',
    title: 'has a list by keys without keys',
    field: list({ 'x-kubernetes-list-type': 'map' }),
    cause: `${inField}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`,
  },
  {
    id: 'keys-without-map',
    title: 'has keys of a list that is none by keys',
    field: list({ 'x-kubernetes-list-type': 'atomic', 'x-kubernetes-list-map-keys': ['k'] }),
    cause: `${inField}.x-kubernetes-list-type: Invalid value: "atomic": must be map if x-kubernetes-list-map-keys is non-empty`,
  },
  {
    id: 'key-not-required',
    title: 'has a key that may be missing',
    field: list({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'] }),
    cause: `${inField}.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
  },
  {
    id: 'set-of-objects',
    title: 'has a set of objects',
    field: list({ 'x-kubernetes-list-type': 'set' }),
    cause: `${inField}.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set`,
  },
];

const schemaCases: readonly ConformanceCase[] = badSchemas.map(({ id, title, field, cause }) => ({
  id: `rules/schema-${id}`,
  title: `a schema that ${title} is refused`,
  run: async ({ a, b, c, namespace, path }) => {
    const group = `${namespace}.example.com`;
    const parts = { spec: { 'x-kubernetes-preserve-unknown-fields': undefined, properties: { f: field } } };
    const { message } = await refused(a.post(path('customresourcedefinitions'), crd(group, parts)), 422, 'Invalid');
    if (!message.includes(cause)) throw new Error(`${cause} is not in: ${message}`);
    await missing(b.get(path('customresourcedefinitions', `gadgets.${group}`)));
    await ok(c.post(path('customresourcedefinitions'), crd(group, { spec: { properties: { f: text } } })));
  },
}));

export const ruleCases: readonly ConformanceCase[] = [
  ...refusedCases,
  ...schemaCases,
  {
    id: 'rules/keyword-fields',
    title: 'a field named like a word of the language goes by both of its names',
    run: async (context) => {
      const { a, b, c } = context;
      const { path: gadgets, make } = await define(context, {
        spec: schema(
          { namespace: text, 'with-dash': text },
          {
            rule: 'self.namespace == self.__namespace__ && self.namespace != self.with__dash__dash',
            message: 'must differ',
          },
        ),
      });
      await ok(a.post(gadgets, make('x', { spec: { namespace: 'a', 'with-dash': 'b' } })));
      await refused(
        b.post(gadgets, make('y', { spec: { namespace: 'a', 'with-dash': 'a' } })),
        422,
        'Invalid',
        /spec: Invalid value: must differ|spec: Invalid value: "object": must differ/,
      );
      await missing(c.get(`${gadgets}/y`));
    },
  },
  {
    id: 'rules/optionals-of-lists',
    title: 'rules may ask for the first and last of a list that may be empty',
    run: async (context) => {
      const { a, b, c } = context;
      const { path: gadgets, make } = await define(context, {
        spec: schema(
          { l: { type: 'array', maxItems: 9, items: { type: 'string', maxLength: 9 } } },
          {
            rule: "self.l.first().orValue('a') == 'a' && self.l.last().optMap(x, x != 'z').orValue(true)",
            message: 'from a',
          },
        ),
      });
      await ok(a.post(gadgets, make('empty', { spec: { l: [] } })));
      await ok(b.post(gadgets, make('good', { spec: { l: ['a', 'y'] } })));
      for (const l of [['b'], ['a', 'z']]) {
        await refused(c.post(gadgets, make('bad', { spec: { l } })), 422, 'Invalid', /from a/);
      }
      await missing(b.get(`${gadgets}/bad`));
    },
  },
  {
    id: 'rules/unchanged-schema',
    title: 'a definition keeps its rules through updates that do not touch them',
    run: async (context) => {
      const { a, b, c, path } = context;
      const {
        name,
        path: gadgets,
        make,
      } = await define(context, {
        spec: schema({ n: number }, { rule: 'self.n < 10', message: 'too many' }),
      });
      await ok(b.merge(path('customresourcedefinitions', name), { metadata: { labels: { a: 'b' } } }));
      await refused(c.post(gadgets, make('x', { spec: { n: 10 } })), 422, 'Invalid', /too many/);
      await ok(c.post(gadgets, make('x', { spec: { n: 9 } })));
      await ok(
        a.patch('json', path('customresourcedefinitions', name), [
          {
            op: 'replace',
            path: '/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/rule',
            value: 'self.n < 5',
          },
        ]),
      );
      await eventually(() =>
        refused(b.post(gadgets, make('y', { spec: { n: 7 } }), { dryRun: 'All' }), 422, 'Invalid'),
      );
      // What was there before and does not change is not judged anew.
      const kept = await ok(c.merge(`${gadgets}/x`, { metadata: { labels: { k: 'v' } } }));
      has(kept, { spec: { n: 9 } });
      await refused(c.merge(`${gadgets}/x`, { spec: { n: 8 } }), 422, 'Invalid', /too many/);
    },
  },
];
