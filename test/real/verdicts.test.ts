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
import { installCrds, judge } from '../conformance/verdicts/judge.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { execute } from './processes.ts';

let plane: ControlPlane | undefined;
afterEach(async () => {
  await plane?.stop();
  plane = undefined;
});

/** The cases on which a server with these CRDs does not give the expected verdict. */
async function disagreements(
  crds: readonly CustomResourceDefinition[],
  expected: (verdictCase: VerdictCase) => boolean,
): Promise<string[]> {
  plane = await startControlPlane();
  const transport = new HttpTransport({
    server: plane.url,
    insecureSkipTlsVerify: true,
    headers: { authorization: `Bearer ${tokenIn(plane.kubeconfig)}` },
  });
  try {
    await installCrds(transport, crds, () => new Promise((resolve) => setTimeout(resolve, 100)));
    const found: string[] = [];
    for (const verdictCase of corpus) {
      const verdict = await judge(transport, verdictCase);
      if (verdict.valid !== expected(verdictCase))
        found.push(`${verdictCase.id} (${verdictCase.why}): ${verdict.code} ${verdict.message}`);
    }
    return found;
  } finally {
    await transport.close();
  }
}

test('a real API server with our CRDs gives every verdict of the corpus', { timeout: 180_000 }, async () => {
  expect(await disagreements(allCrds(), ({ valid }) => valid)).toEqual([]);
});

test('with upstream CRDs it gives the same, but for the listed differences', { timeout: 180_000 }, async () => {
  const crds = await upstreamCrds();
  expect(crds.map((crd) => crd.metadata.name)).toEqual(allCrds().map((crd) => crd.metadata.name));
  expect(await disagreements(crds, ({ valid, upstreamValid }) => upstreamValid ?? valid)).toEqual([]);
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
  return allCrds().map(({ spec }) => {
    const crds = spec.group === 'karpenter.kwok.sh' ? 'kwok/apis/crds' : 'pkg/apis/crds';
    const file = join(folder, crds, `${spec.group}_${spec.names.plural}.yaml`);
    return parse(readFileSync(file, 'utf8')) as CustomResourceDefinition;
  });
}
