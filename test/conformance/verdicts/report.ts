// SPDX-License-Identifier: Apache-2.0
// Writes down what a server said to the corpus, for hack/conformance.ts to compare.
import { mkdirSync, writeFileSync } from 'node:fs';
import { afterAll } from 'vitest';
import { corpus } from './corpus.ts';
import type { Verdict } from './judge.ts';

/** What one server said to one object. */
export interface VerdictReport {
  readonly id: string;
  readonly valid: boolean;
  readonly message: string;
}

/** Collects verdicts; in the end they go to `<setting>/<name>.json`, when KARPENTER_CONFORMANCE_RESULTS is set. */
export function verdictWriter(name: string): (id: string, verdict: Verdict) => void {
  const folder = process.env['KARPENTER_CONFORMANCE_RESULTS'];
  const verdicts: VerdictReport[] = [];
  afterAll(() => {
    if (!folder) return;
    mkdirSync(folder, { recursive: true });
    const byId = verdicts.toSorted((x, y) => (x.id < y.id ? -1 : 1));
    const report = { verdicts: byId, skipped: corpus.length - verdicts.length };
    writeFileSync(`${folder}/${name}.json`, `${JSON.stringify(report, null, 1)}\n`);
  });
  return (id, { valid, message }) => verdicts.push({ id, valid, message });
}
