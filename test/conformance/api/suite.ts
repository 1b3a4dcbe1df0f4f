// SPDX-License-Identifier: Apache-2.0
// Runs the cases against a server and writes down what came of each.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import type { Caller, Tally } from './caller.ts';
import { type ConformanceCase, type Context, ok } from './case.ts';
import { pathOf } from './paths.ts';

/** A server under test. Callers count what they do in the tally of their case. */
export interface Subject {
  admin(tally: Tally): Caller;
  anonymous(tally: Tally): Caller;
  serviceAccount(tally: Tally, namespace: string, name: string): Promise<Caller>;
}

/** One line of a report. */
export interface CaseReport {
  readonly id: string;
  readonly verdict: 'passed' | 'failed';
  readonly requests: number;
  readonly clients: number;
}

let counter = 0;

/** Runs one case in a namespace of its own, whose name begins with `prefix`. Throws what the case throws. */
export async function runCase(
  subject: Subject,
  conformanceCase: ConformanceCase,
  prefix = 'case',
): Promise<CaseReport> {
  const tally: Tally = { requests: 0, clients: new Set() };
  const setUp = subject.admin({ requests: 0, clients: new Set() });
  const namespace = `t${prefix}-${++counter}-${conformanceCase.id.replaceAll(/[^a-z0-9]+/g, '-')}`
    .slice(0, 50)
    .replace(/-$/, '');
  await ok(setUp.post('/api/v1/namespaces', { metadata: { name: namespace } }));
  const context: Context = {
    namespace,
    a: subject.admin(tally),
    b: subject.admin(tally),
    c: subject.admin(tally),
    path: (plural, ...rest) => pathOf(namespace, plural, ...rest),
    unique: (name) => `${name}-${namespace}`,
    anonymous: () => subject.anonymous(tally),
    serviceAccount: async (name) => {
      await ok(setUp.post(pathOf(namespace, 'serviceaccounts'), { metadata: { name } }));
      return subject.serviceAccount(tally, namespace, name);
    },
  };
  await conformanceCase.run(context);
  return { id: conformanceCase.id, verdict: 'passed', requests: tally.requests, clients: tally.clients.size };
}

/** Registers the cases as tests; what came of them is handed to `report`. */
export function conformance(
  subject: () => Subject,
  cases: readonly ConformanceCase[],
  report: (results: CaseReport) => void = () => {},
): void {
  describe.concurrent('cases', () => {
    for (const each of cases) {
      test(`${each.id}: ${each.title}`, async () => {
        try {
          report(await runCase(subject(), each));
        } catch (error) {
          report({ id: each.id, verdict: 'failed', requests: 0, clients: 0 });
          throw error;
        }
      });
    }
  });
}

/** Where reports go: `<setting>/<name>.json`, when KARPENTER_CONFORMANCE_RESULTS is set. */
export function reportWriter(name: string, total: number): (result: CaseReport) => void {
  const folder = process.env['KARPENTER_CONFORMANCE_RESULTS'];
  const results: CaseReport[] = [];
  afterAll(() => {
    if (!folder) return;
    const path = `${folder}/${name}.json`;
    mkdirSync(dirname(path), { recursive: true });
    const byId = results.toSorted((x, y) => (x.id < y.id ? -1 : 1));
    writeFileSync(path, `${JSON.stringify({ cases: byId, skipped: total - results.length }, null, 1)}\n`);
  });
  return (result) => results.push(result);
}
