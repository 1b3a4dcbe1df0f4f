// SPDX-License-Identifier: Apache-2.0
// Runs the cases: as tests of whatever runner the author uses, or all at once for a report.
import { messageOf } from '../../base/errors.ts';
import type { ConformanceCase, Method } from './case.ts';
import { createCases } from './cases/create.ts';
import { deleteCases } from './cases/delete.ts';
import { driftCases } from './cases/drift.ts';
import { identityCases } from './cases/identity.ts';
import { instanceTypeCases } from './cases/instance-types.ts';
import { readCases } from './cases/read.ts';
import type { HarnessFactory } from './harness.ts';
import { NotApplicable, Subject } from './subject.ts';

/** Everything a provider must do. */
export const conformanceCases: readonly ConformanceCase[] = [
  ...identityCases,
  ...instanceTypeCases,
  ...createCases,
  ...readCases,
  ...deleteCases,
  ...driftCases,
];

/** What became of a case. */
export interface CaseResult {
  readonly id: string;
  readonly method: Method;
  readonly title: string;
  readonly outcome: 'passed' | 'failed' | 'not applicable';
  /** What is wrong, or why it does not apply. */
  readonly detail?: string;
}

/** Runs one case on a harness of its own. Never rejects. */
export async function runCase(one: ConformanceCase, newHarness: HarnessFactory): Promise<CaseResult> {
  const { id, method, title } = one;
  const harness = await newHarness();
  const subject = new Subject(harness);
  try {
    await one.run(subject);
    return { id, method, title, outcome: 'passed' };
  } catch (error) {
    const outcome = error instanceof NotApplicable ? 'not applicable' : 'failed';
    return { id, method, title, outcome, detail: messageOf(error) };
  } finally {
    subject.end();
    await harness.close();
  }
}

/** Runs all cases, one after the other, and gives what became of each. */
export async function runConformance(newHarness: HarnessFactory): Promise<CaseResult[]> {
  const results: CaseResult[] = [];
  for (const one of conformanceCases) results.push(await runCase(one, newHarness));
  return results;
}

/** What we need of a test runner: vitest's own `describe` and `test`, or those of any other. */
export interface TestRunner {
  readonly describe: (name: string, body: () => void) => unknown;
  readonly test: (name: string, body: (context?: { skip?: (why?: string) => void }) => Promise<void>) => unknown;
}

/** One test per case. A case that does not apply is skipped where the runner can, with the reason. */
export function testConformance(provider: string, newHarness: HarnessFactory, { describe, test }: TestRunner): void {
  for (const method of new Set(conformanceCases.map((one) => one.method))) {
    describe(`${provider}: ${method}`, () => {
      for (const one of conformanceCases.filter((candidate) => candidate.method === method)) {
        test(`${one.title} (${one.id})`, async (context) => {
          const { outcome, detail = '' } = await runCase(one, newHarness);
          if (outcome === 'failed') throw new Error(detail);
          if (outcome === 'not applicable') context?.skip?.(detail);
        });
      }
    });
  }
}
