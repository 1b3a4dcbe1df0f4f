// SPDX-License-Identifier: Apache-2.0
// Records what a real kube-apiserver says to the cases: the vectors of src/kube/schema/structural-schema.test.ts.
// Run: node hack/run.js node hack/vectors/schema/record.ts https://127.0.0.1:6443 TOKEN > src/kube/schema/schema.vectors.json
import { request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { cases, specSchema } from './cases.ts';

interface Answer {
  readonly status: number;
  readonly warnings: string;
  readonly body: {
    spec?: unknown;
    metadata?: { resourceVersion?: string };
    message?: string;
    details?: { causes?: Cause[] };
  };
}
interface Cause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

const [server = '', token = ''] = process.argv.slice(2);
const kinds = '/apis/vectors.example.com/v1/things';

function call(method: string, path: string, body?: unknown): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    // The server is our own, on the loopback, with a certificate it made up.
    const sent = request(`${server}${path}`, { method, headers, rejectUnauthorized: false }, (response) => {
      let text = '';
      response.on('data', (part) => (text += part));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          warnings: String(response.headers['warning'] ?? ''),
          // A path that is not served yet answers in plain text.
          body: text.startsWith('{') ? JSON.parse(text) : {},
        }),
      );
    });
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function must(answer: Promise<Answer>): Promise<Answer> {
  const got = await answer;
  if (got.status >= 300) throw new Error(JSON.stringify(got.body));
  return got;
}

async function define(): Promise<void> {
  const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  await call('DELETE', `${crds}/things.vectors.example.com`);
  while ((await call('GET', `${crds}/things.vectors.example.com`)).status !== 404) await sleep(200);
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: specSchema } } };
  await must(
    call('POST', crds, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'things.vectors.example.com' },
      spec: {
        group: 'vectors.example.com',
        scope: 'Cluster',
        names: { kind: 'Thing', plural: 'things' },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    }),
  );
  while ((await call('GET', kinds)).status !== 200) await sleep(200);
}

function thing(name: string, spec: unknown): Record<string, unknown> {
  return { apiVersion: 'vectors.example.com/v1', kind: 'Thing', metadata: { name }, spec };
}

await define();
const recorded: unknown[] = [];
for (const [i, { spec, old }] of cases.entries()) {
  const name = `case-${i}`;
  let answer: Answer;
  if (old === undefined) answer = await call('POST', `${kinds}?dryRun=All&fieldValidation=Warn`, thing(name, spec));
  else {
    const before = await must(call('POST', kinds, thing(name, old)));
    const next = { ...thing(name, spec), metadata: before.body.metadata };
    answer = await call('PUT', `${kinds}/${name}?dryRun=All&fieldValidation=Warn`, next);
  }
  const unknown = [...answer.warnings.matchAll(/unknown field \\"([^"]+)\\"/g)].map((match) => match[1]);
  const causes = (answer.body.details?.causes ?? []).map(
    ({ reason, message, field }) => `${field} | ${reason} | ${message}`,
  );
  if (answer.status >= 300 && causes.length === 0)
    throw new Error(`${JSON.stringify(spec)}: ${JSON.stringify(answer.body)}`);
  recorded.push({
    spec,
    ...(old === undefined ? {} : { old }),
    ...(unknown.length === 0 ? {} : { unknown }),
    ...(answer.status < 300 ? { result: answer.body.spec } : { causes: causes.toSorted() }),
  });
}
await call('DELETE', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.vectors.example.com');
console.log(`{"schema":${JSON.stringify(specSchema)},\n"cases":[`);
console.log(recorded.map((row) => JSON.stringify(row)).join(',\n'));
console.log(']}');
