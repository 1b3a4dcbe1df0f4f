// SPDX-License-Identifier: Apache-2.0
// A real kube-apiserver gives every verdict of the corpus, with our CRDs and with upstream's: the two differ only where
// the corpus (and docs/reference/differences.md) says so.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { allCrds, type CustomResourceDefinition } from '../../src/api/crd.ts';
import { HttpTransport } from '../../src/kube/http-transport.ts';
import { corpus, type VerdictCase } from '../conformance/verdicts/corpus.ts';
import { installCrds, judge, type Verdict } from '../conformance/verdicts/judge.ts';
import { verdictWriter } from '../conformance/verdicts/report.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { execute } from './processes.ts';

/** The kinds that upstream's module defines; classes of other clouds come from elsewhere. */
const elsewhere = new Set(['karpenter.cluster.x-k8s.io', 'karpenter.k8s.linode']);
const upstreamKinds = allCrds().filter(({ spec }) => !elsewhere.has(spec.group));

let plane: ControlPlane | undefined;
afterEach(async () => {
  await plane?.stop();
  plane = undefined;
});

/** What a server with these CRDs says to every case of the corpus. */
async function verdictsWith(crds: readonly CustomResourceDefinition[]): Promise<Map<VerdictCase, Verdict>> {
  const installed = new Set(crds.map(({ spec }) => spec.names.kind));
  plane = await startControlPlane();
  const transport = new HttpTransport({
    server: plane.url,
    insecureSkipTlsVerify: true,
    headers: { authorization: `Bearer ${tokenIn(plane.kubeconfig)}` },
  });
  try {
    await installCrds(transport, crds, () => new Promise((resolve) => setTimeout(resolve, 100)));
    const verdicts = new Map<VerdictCase, Verdict>();
    for (const verdictCase of corpus.filter(({ kind }) => installed.has(kind)))
      verdicts.set(verdictCase, await judge(transport, verdictCase));
    return verdicts;
  } finally {
    await transport.close();
  }
}

/** The cases in which the verdict is not the expected one, with the words of the server. */
function surprises(verdicts: Map<VerdictCase, Verdict>, expected: (verdictCase: VerdictCase) => boolean): string[] {
  return [...verdicts]
    .filter(([verdictCase, { valid }]) => valid !== expected(verdictCase))
    .map(([{ id, why }, { code, message }]) => `${id} (${why}): ${code} ${message}`);
}

const report = verdictWriter('real-verdicts');

test('a real API server with our CRDs gives every verdict of the corpus', { timeout: 180_000 }, async () => {
  const verdicts = await verdictsWith(allCrds());
  for (const [{ id }, verdict] of verdicts) report(id, verdict);
  expect(surprises(verdicts, ({ valid }) => valid)).toEqual([]);
  // Its words are kept for those who imitate it; `npm run test:real -- -u` renews them.
  const words = Object.fromEntries([...verdicts].filter(([, v]) => !v.valid).map(([{ id }, v]) => [id, v.message]));
  await expect(`${JSON.stringify(words, null, 1)}\n`).toMatchFileSnapshot('../conformance/verdicts/real-messages.json');
});

test('with upstream CRDs it gives the same, but for the listed differences', { timeout: 180_000 }, async () => {
  const crds = await upstreamCrds();
  expect(crds.map((crd) => crd.metadata.name)).toEqual(upstreamKinds.map((crd) => crd.metadata.name));
  expect(surprises(await verdictsWith(crds), ({ valid, upstreamValid }) => upstreamValid ?? valid)).toEqual([]);
});

function tokenIn(kubeconfig: string): string {
  const { users } = parse(readFileSync(kubeconfig, 'utf8')) as { users: { user: { token: string } }[] };
  return users[0]!.user.token;
}

async function upstreamCrds(): Promise<CustomResourceDefinition[]> {
  const module = 'sigs.k8s.io/karpenter@v1.14.1';
  const { code, stdout, stderr } = await execute('go', ['mod', 'download', '-json', module], { timeoutMs: 120_000 });
  if (code !== 0) throw new Error(`go mod download ${module}: ${stderr}`);
  const { Dir: folder } = JSON.parse(stdout) as { Dir: string };
  return upstreamKinds.map(({ spec }) => {
    const crds = spec.group === 'karpenter.kwok.sh' ? 'kwok/apis/crds' : 'pkg/apis/crds';
    const file = join(folder, crds, `${spec.group}_${spec.names.plural}.yaml`);
    return parse(readFileSync(file, 'utf8')) as CustomResourceDefinition;
  });
}
