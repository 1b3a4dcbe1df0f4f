// SPDX-License-Identifier: Apache-2.0
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tool } from '../../hack/tools/tools.ts';
import { allCrds } from '../../src/api/crd.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { execute } from './processes.ts';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane();
});
afterAll(() => plane?.stop());

test('the real control plane is Kubernetes 1.36 and accepts every CRD of ours', async () => {
  const kubectl = await tool('kubectl');
  const run = (...args: string[]) => execute(kubectl, ['--kubeconfig', plane.kubeconfig, ...args]);
  expect((await run('version', '-o', 'json')).stdout).toContain('"v1.36.1"');
  const applied = await run('apply', '--server-side', '-f', 'crds/');
  expect(applied.stderr).toBe('');
  expect(applied.stdout.trim().split('\n')).toHaveLength(allCrds().length);
  const established = await run('wait', '--for=condition=Established', '--timeout=30s', 'crd', '--all');
  expect(established.code, established.stderr).toBe(0);
});
