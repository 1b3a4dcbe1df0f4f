// SPDX-License-Identifier: Apache-2.0
// Every reader of bytes from outside, and texts to damage: what each must do with any text is give a value or throw an
// error of ours, in a time that its size explains.
import { durationMs } from '../../src/api/duration.ts';
import { RealClock } from '../../src/base/clock.ts';
import { KarpenterError } from '../../src/base/errors.ts';
import { SeededRandom } from '../../src/base/random.ts';
import { parseProblem } from '../../src/cli/problem-file.ts';
import { isInWindow } from '../../src/controllers/disruption/cron-window.ts';
import { ApiServer } from '../../src/embedded/api-server.ts';
import { compileCel } from '../../src/kube/cel.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { type CredentialIo, ExecCredentials } from '../../src/kube/credentials.ts';
import { parseFieldSelector } from '../../src/kube/fields.ts';
import { applyJsonPatch } from '../../src/kube/json-patch.ts';
import { kinds } from '../../src/kube/kinds.ts';
import { findConnection } from '../../src/kube/kubeconfig.ts';
import { compileLabelSelector, isQualifiedName, isValidLabelValue, parseLabelSelector } from '../../src/kube/labels.ts';
import { applyMergePatch } from '../../src/kube/merge-patch.ts';
import { keyOf } from '../../src/kube/object.ts';
import { patchSchemaFor } from '../../src/kube/patch-schemas.ts';
import { canonicalQuantity, Quantity } from '../../src/kube/quantity.ts';
import { compileRegexp } from '../../src/kube/regexp.ts';
import { StructuralSchema } from '../../src/kube/schema/index.ts';
import { applyStrategicMergePatch } from '../../src/kube/strategic-merge-patch.ts';
import { parseDuration, parseTime } from '../../src/kube/time.ts';
import type { Transport, WatchStream } from '../../src/kube/transport.ts';
import type { Scalable } from '../../src/providers/cluster-api/kinds.ts';
import { parseLedger } from '../../src/providers/cluster-api/ledger.ts';
import { capacityAnnotations } from '../../src/providers/cluster-api/names.ts';
import { priceOf } from '../../src/providers/cluster-api/prices.ts';
import { shapeOf } from '../../src/providers/cluster-api/shape.ts';
import { readInstanceTypes } from '../../src/providers/kwok/instance-types.ts';
import { coreSettings, parseSettings } from '../../src/runtime/settings.ts';
import { solve } from '../../src/scheduling/solve.ts';
import type { Chance } from './chance.ts';
import { clusterApiObjects } from './cluster-api-objects.ts';
import { linodeAnswers } from './linode-answers.ts';
import { manifests } from './manifests.ts';
import { json, type Parser } from './reader.ts';

const clock = new RealClock();
const now = Date.UTC(2026, 0, 1);

const configMap = { metadata: { name: 'x', labels: { a: 'b' } }, data: { a: '1', b: '2' }, list: [1, 2, { a: 1 }] };
const pod = {
  metadata: { name: 'x', labels: { app: 'x' } },
  spec: { containers: [{ name: 'c', image: 'i', env: [{ name: 'A', value: '1' }] }], tolerations: [{ key: 'a' }] },
};

function kubeconfigIo(text: string): CredentialIo {
  const io: Partial<CredentialIo> = {
    readFile: (path: string) => {
      if (path === '/config') return text;
      throw Object.assign(new Error(`ENOENT: no such file or directory, open '${path}'`), { code: 'ENOENT' });
    },
  };
  return io as CredentialIo;
}

const kubeconfig = {
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1', 'insecure-skip-tls-verify': true } }],
  users: [
    { name: 'u', user: { token: 't', as: 'a', 'as-groups': ['g'], 'as-user-extra': { k: ['v'] } } },
    { name: 'e', user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', args: ['a'] } } },
  ],
  contexts: [{ name: 'd', context: { cluster: 'c', user: 'u', namespace: 'n' } }],
  'current-context': 'd',
};

const scalable = (annotations: Record<string, string>): Scalable =>
  ({
    apiVersion: 'cluster.x-k8s.io/v1beta1',
    kind: 'MachineDeployment',
    metadata: { name: 'x', namespace: 'n', annotations },
    spec: { template: { spec: {} } },
  }) as unknown as Scalable;

const problem = {
  nodePools: [
    {
      metadata: { name: 'p', uid: 'u' },
      spec: {
        template: {
          spec: {
            requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }],
            nodeClassRef: { group: 'g', kind: 'K', name: 'd' },
          },
        },
        limits: { cpu: '100' },
      },
    },
  ],
  instanceTypes: {
    p: [
      {
        name: 't',
        requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }],
        capacity: { cpu: '4', memory: '8Gi', pods: '10' },
        offerings: [{ requirements: [], price: 1, available: true }],
      },
    ],
  },
  pods: [
    {
      metadata: { name: 'a', namespace: 'd', uid: '1' },
      spec: { containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }] },
    },
  ],
};

const schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: { a: { type: 'integer', minimum: 0 }, b: { type: 'string', pattern: '^a+$' } },
      'x-kubernetes-validations': [{ rule: 'self.a > 0' }],
    },
  },
};

let schemas: ApiServer | undefined;

/** A schema as the API server keeps it; undefined for one that it refuses. */
async function takenSchema(openAPIV3Schema: unknown): Promise<object | undefined> {
  schemas ??= new ApiServer({ clock, random: new SeededRandom(1) });
  const names = { plural: 'xs', singular: 'x', kind: 'X', listKind: 'XList' };
  const versions = [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }];
  const body = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'xs.example.com' },
    spec: { group: 'example.com', scope: 'Cluster', names, versions },
  };
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const answer = await schemas.transport().request({ method: 'POST', path, query: { dryRun: 'All' }, body });
  if (answer.status >= 500) throw new Error(`the API server failed: ${JSON.stringify(answer.body)}`);
  if (answer.status !== 201) return undefined;
  return (answer.body as typeof body).spec.versions[0]!.schema.openAPIV3Schema as object;
}

/** An API server that says what it is told to say. */
function answering(told: unknown): Transport {
  const { status, body } = (told ?? {}) as { status?: unknown; body?: unknown };
  const answer = { status: typeof status === 'number' ? status : 200, headers: {}, body };
  return {
    request: () => Promise.resolve(answer),
    watch: () => Promise.resolve(answer),
    close: () => Promise.resolve(),
  };
}

const strings = (value: unknown): string => JSON.stringify(value);

export const parsers: readonly Parser[] = [
  {
    name: 'quantity',
    seeds: ['1', '100m', '1.5Gi', '1e3', '-2E6', '0.000000001', '12345678901234567890'],
    words: ['1', '0', '.', 'e', 'E', '-', '+', 'Ki', 'm', 'n', 'Gi', '9', '00000'],
    parse: (text) => [Quantity.tryParse(text)?.toString(), canonicalQuantity(text), Quantity.parse(text).toNumber()],
  },
  {
    name: 'label selector',
    seeds: ['a=b,c in (d,e),!f,g>1', 'x.io/a notin (b)', ''],
    words: ['a', '=', '==', '!=', ' in ', ' notin ', '(', ')', ',', '!', '>', '<', '1', 'x.io/a', ' '],
    parse: (text) => parseLabelSelector(text).matches({ a: 'b', g: '2' }),
  },
  {
    name: 'label selector object',
    structured: true,
    seeds: [strings({ matchLabels: { a: 'b' }, matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] })],
    parse: json((value) => compileLabelSelector(value as object).matches({ a: 'b' })),
  },
  { name: 'label key', seeds: ['a', 'example.com/a'], words: ['a', '/', '.', '-', '_'], parse: isQualifiedName },
  { name: 'label value', seeds: ['a', ''], words: ['a', '/', '.', '-', '_'], parse: isValidLabelValue },
  {
    name: 'field selector',
    seeds: ['metadata.name=x,spec.nodeName!=y', 'a==b'],
    words: ['a', '=', '==', '!=', ',', '\\', 'metadata.name'],
    parse: (text) => parseFieldSelector(text).matches(() => 'x'),
  },
  {
    name: 'duration',
    seeds: ['1h2m3.5s', '300ms', '-1.5h', '0', '1µs'],
    words: ['1', '.', 'h', 'm', 's', 'ms', 'µs', 'ns', '-', '+', '99999999999'],
    parse: parseDuration,
  },
  {
    name: 'duration of our kinds',
    seeds: ['720h', '1h30m', 'Never'],
    words: ['1', 'h', 'm', 's', '999999999999999999999', 'Never'],
    parse: durationMs,
  },
  {
    name: 'time',
    seeds: ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.123456+01:00'],
    words: ['2026', '-', '01', 'T', ':', '00', 'Z', '.', '+'],
    parse: parseTime,
  },
  {
    name: 'cron',
    seeds: ['0 9 * * mon-fri', '@daily', '*/5 0-3,7 1 jan ?', '0 0 31 2 *'],
    words: ['*', '/', '-', ',', ' ', '0', '5', '31', 'jan', 'sun', '?', '@daily', 'L', '#', 'W'],
    parse: (schedule) => isInWindow({ schedule, durationMs: 3_600_000 }, now),
  },
  {
    name: 'CEL',
    seeds: ['self.a > 1 && self.b.matches("^a")', 'self.c.all(x, x.name != "")', 'has(self.d) ? 1 : 2'],
    words:
      'self|.a|.b|.c|[0]|.all(x, |.map(x, |)|(| + | == | && |1|"s"|!|-|true|null|{|}|[|]|,|size(|.matches("(a+)+$")|.split("")|.replace("", "xx")|duration("1h")|9223372036854775807|/|%|quantity("1Gi")|.format([1])|.repeat(|"""|r\''.split(
        '|',
      ),
    parse: (text) => compileCel(text).evaluate({ self: { a: 1, b: 'aaaaaaaaaaaaaaaaaaaaaaaa!', c: [{ name: 'n' }] } }),
  },
  {
    name: 'regular expression',
    seeds: ['^[a-z]([-a-z0-9]*[a-z0-9])?$', '(a+)+$', '\\p{L}{1,3}'],
    words: ['(', ')', '[', ']', '*', '+', '?', '{1000}', '|', '^', '$', '\\', 'a', '\\p{L}', '(?i)', '.'],
    parse: (text) => compileRegexp(text).matcher('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!').find(),
  },
  {
    name: 'JSON patch',
    structured: true,
    seeds: [
      strings([
        { op: 'add', path: '/data/c', value: '1' },
        { op: 'move', from: '/data/a', path: '/list/-' },
      ]),
    ],
    parse: json((patch) => applyJsonPatch(configMap, patch)),
  },
  {
    name: 'merge patch',
    structured: true,
    seeds: [strings(configMap)],
    parse: json((patch) => applyMergePatch(configMap, patch)),
  },
  {
    name: 'strategic merge patch',
    structured: true,
    seeds: [
      strings(pod),
      strings({ spec: { $retainKeys: ['containers'], '$setElementOrder/containers': [{ name: 'c' }] } }),
    ],
    parse: json((patch) => applyStrategicMergePatch(pod, patch, patchSchemaFor('', 'v1', 'Pod')!)),
  },
  {
    name: 'schema of a kind',
    structured: true,
    seeds: [strings(schema)],
    parse: json(async (value) => {
      const taken = await takenSchema(value);
      return taken && new StructuralSchema(taken).validate({ spec: { a: 1, b: 'aaa' } });
    }),
  },
  {
    name: 'object of a kind',
    structured: true,
    seeds: [strings({ spec: { a: 1, b: 'aaa' } })],
    parse: json((value) => {
      const known = new StructuralSchema(schema as object);
      return known.validate(known.default(known.prune(value).value));
    }),
  },
  {
    name: 'kubeconfig',
    seeds: [strings(kubeconfig), 'apiVersion: v1\nclusters:\n- name: c\n  cluster: {server: "https://x"}\n'],
    parse: (text) =>
      findConnection({ path: '/config', env: {}, homeDirectory: '/', io: kubeconfigIo(text), clock }).server,
  },
  {
    name: 'settings',
    seeds: ['FEATURE_GATES=NodeRepair=true', 'BATCH_MAX_DURATION=10s', 'KUBE_CLIENT_QPS=1', 'LOG_LEVEL=debug'],
    words: ['=', ',', 'true', '-1', '1e9', 'NodeRepair', 'FEATURE_GATES', 'BATCH_MAX_DURATION', 'CPU_REQUESTS', '\n'],
    parse: (text) => {
      const at = text.indexOf('=');
      const name = at < 0 ? text : text.slice(0, at);
      return parseSettings(coreSettings, [`--${text}`], { [name]: at < 0 ? '' : text.slice(at + 1) });
    },
  },
  { name: 'problem file', structured: true, seeds: [strings(problem)], parse: (text) => parseProblem('file', text) },
  { name: 'problem', structured: true, seeds: [strings(problem)], parse: (text) => solve(parseProblem('file', text)) },
  {
    name: 'instance types file',
    structured: true,
    seeds: [
      strings([
        {
          name: 't',
          architecture: 'amd64',
          operatingSystems: ['linux'],
          resources: { cpu: '4', memory: '8Gi', pods: '10' },
          offerings: [
            { Price: 1, Requirements: [{ key: 'karpenter.sh/capacity-type', operator: 'In', values: ['spot'] }] },
          ],
        },
      ]),
    ],
    parse: readInstanceTypes,
  },
  {
    name: 'Cluster API annotations',
    structured: true,
    seeds: [
      strings({ [capacityAnnotations.cpu]: '4', [capacityAnnotations.memory]: '8Gi' }),
      strings({ [capacityAnnotations.labels]: 'a=b,c=d', [capacityAnnotations.taints]: 'a=b:NoSchedule' }),
    ],
    parse: json((value) => {
      if (typeof value !== 'object' || value === null) return undefined;
      const texts = Object.entries(value).flatMap(([key, each]) =>
        typeof each === 'string' ? [[key, each] as const] : [],
      );
      const member = scalable(Object.fromEntries(texts));
      return priceOf(member, 't', shapeOf(member));
    }),
  },
  {
    name: 'Cluster API ledger',
    structured: true,
    seeds: [strings({ bound: ['a'], pending: [{ after: 'x', seen: ['m'], claims: ['b'] }] })],
    parse: parseLedger,
  },
  {
    name: 'answer of an API server',
    structured: true,
    seeds: [
      strings({
        status: 404,
        body: { kind: 'Status', code: 404, reason: 'NotFound', message: 'm', details: { name: 'x' } },
      }),
      strings({ status: 200, body: { kind: 'PodList', metadata: { resourceVersion: '1' }, items: [pod] } }),
      strings({ status: 200, body: pod }),
    ],
    parse: json(async (body) => {
      const client = new KubeClient({ transport: answering(body) });
      await client.resource(kinds.Pod).get('x', { namespace: 'n' });
      await client.resource(kinds.Pod).listAll({});
      await client.resource(kinds.Pod).delete('x', { namespace: 'n' });
    }),
  },
  {
    name: 'watch of an API server',
    structured: true,
    seeds: [
      strings([
        { type: 'ADDED', object: pod },
        { type: 'BOOKMARK', object: { kind: 'Pod', metadata: { resourceVersion: '5' } } },
        { type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: 'm' } },
      ]),
    ],
    parse: json(async (events) => {
      const told = Array.isArray(events) ? events : [events];
      async function* stream(): AsyncGenerator {
        yield* told;
      }
      const transport = {
        ...answering(undefined),
        watch: () => Promise.resolve(Object.assign(stream(), { close: () => undefined }) as WatchStream),
      };
      const watch = await new KubeClient({ transport }).resource(kinds.Pod).watch({ namespace: 'n' });
      for await (const { object } of watch) keyOf(object);
    }),
  },
  {
    name: 'answer of a credential plugin',
    structured: true,
    seeds: [
      strings({
        kind: 'ExecCredential',
        apiVersion: 'client.authentication.k8s.io/v1',
        status: {
          token: 't',
          expirationTimestamp: '2026-01-01T00:00:00Z',
          clientCertificateData: 'c',
          clientKeyData: 'k',
        },
      }),
    ],
    parse: (stdout) => {
      const plugin = {
        apiVersion: 'client.authentication.k8s.io/v1',
        command: 'x',
        args: [],
        env: {},
        interactiveMode: 'Never',
      } as const;
      const io: Partial<CredentialIo> = {
        isTerminal: false,
        run: () => Promise.resolve({ exitCode: 0, stdout, stderr: '' }),
      };
      return new ExecCredentials(plugin, io as CredentialIo, clock).current();
    },
  },
  ...manifests,
  ...clusterApiObjects,
  ...linodeAnswers,
];

/** A text that a parser gets: a damaged one, words in any order, bytes, or something long. */
export function nextText(chance: Chance, { seeds, words = [], structured = false }: Parser): string {
  const seed = chance.pick(seeds);
  if (structured && chance.often(90)) return JSON.stringify(chance.deepMutant(JSON.parse(seed)));
  switch (chance.int(6)) {
    case 0:
      return words.length > 0 ? chance.words(words, 12) : chance.damaged(seed);
    case 1:
      return mutated(chance, seed);
    case 2:
      return chance.damaged(chance.damaged(chance.damaged(seed)));
    case 3: {
      const word = chance.pick(words.length > 0 ? words : [seed]);
      return word.repeat(1 + chance.int(20_000 / word.length));
    }
    case 4:
      return String.fromCharCode(
        ...Array.from({ length: chance.int(20) }, () => chance.int(chance.pick([128, 0x10000]))),
      );
    default:
      return `${seed}${chance.pick(nesting).repeat(1 + chance.int(20_000))}`;
  }
}

const nesting = ['[', '{"a":', '(', '0', ' ', '\n', '-', '!', '\u{1F4A5}', 'a'];

/** JSON stays JSON, with other values in it. */
function mutated(chance: Chance, seed: string): string {
  try {
    return JSON.stringify(chance.mutant(JSON.parse(seed)));
  } catch {
    return chance.damaged(seed);
  }
}

const prototypes = [Object, Array, String, Number, Function, Map].map(({ prototype, name }) => ({
  name,
  of: prototype as object,
  keys: Reflect.ownKeys(prototype as object).length,
}));

/** A thousandth of a second for each kilobyte would be slow already; the rest is for a machine that is slow itself. */
const mostMs = (text: string, base: number): number => base + text.length / 50;

/** What is wrong with how a parser took a text; undefined when nothing is. */
export async function problemOf(parser: Parser, text: string, baseMs = 500): Promise<string | undefined> {
  let wrong: string | undefined;
  let spent = Number.POSITIVE_INFINITY;
  // What is slow is slow each time; a machine that was busy for a moment is not.
  for (let tries = 0; tries < 3 && wrong === undefined && spent > mostMs(text, baseMs); tries++) {
    const before = process.cpuUsage();
    try {
      await parser.parse(text);
    } catch (error) {
      if (!(error instanceof KarpenterError))
        wrong = error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
    spent = Math.min(spent, process.cpuUsage(before).user / 1000);
  }
  // Whoever reads a key into a prototype changes every object there is.
  const changed = prototypes.find(({ of, keys }) => Reflect.ownKeys(of).length !== keys);
  if (changed)
    wrong ??= `the prototype of ${changed.name} is not what it was: ${Reflect.ownKeys(changed.of).at(-1)?.toString()}`;
  if (spent > mostMs(text, baseMs)) wrong ??= `took ${Math.round(spent)} ms for ${text.length} characters`;
  return wrong === undefined ? undefined : `${parser.name}: ${wrong}\n${JSON.stringify(text).slice(0, 1000)}`;
}
