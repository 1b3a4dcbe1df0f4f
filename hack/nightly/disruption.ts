// SPDX-License-Identifier: Apache-2.0
// Random clusters in virtual time under the eyes of the validator of disruption: see random-story.ts.
import { live } from '../../src/controllers/disruption/testing/random-story.ts';

/** So many clusters from a seed on; resolves to whether every promise was kept. */
export async function disruption(count = '3000', first = '1'): Promise<boolean> {
  const seen = new Map<string, number>();
  let broken = 0;
  for (let seed = Number(first); seed < Number(first) + Number(count); seed++) {
    const { violations, disrupted } = await live(seed);
    for (const [reason, nodes] of disrupted) seen.set(reason, (seen.get(reason) ?? 0) + nodes);
    for (const { promise, message } of violations) console.log(`seed ${seed}: ${promise}: ${message}`);
    if (violations.length > 0) broken++;
  }
  const sums = [...seen].map(([reason, nodes]) => `${nodes} ${reason}`).join(', ');
  console.log(`${count} clusters, nodes disrupted: ${sums}; ${broken} with a broken promise`);
  return broken === 0 && seen.size > 0;
}
