// SPDX-License-Identifier: Apache-2.0
// The quick part of upstream's own end-to-end suite, on our controller and a real control plane with kwok. All of it:
// `npm run nightly -- upstream`.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { applyCrds, startController } from './controllers.ts';
import type { RunningProgram } from './processes.ts';
import { listSpecs, runSuite, type SpecResult } from './upstream-suite.ts';

const focus =
  'Integration (DaemonSet|CRD Hash)|Integration Validation NodePool|Termination should terminate the node|' +
  'StandaloneNodeClaim should (create|remove|succeed|delete a NodeClaim (from|if))|' +
  'Performance Provisioning should do (simple|complex) provisioning$';
const specs = await listSpecs({ focus });

let folder: string;
let plane: ControlPlane | undefined;
let controller: RunningProgram | undefined;
let results: ReadonlyMap<string, SpecResult>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'karpenter-upstream-'));
  plane = await startControlPlane({ workloads: true, kwok: true });
  const { kubeconfig } = plane;
  await applyCrds(kubeconfig);
  controller = await startController('ours', { kubeconfig });
  const all = await runSuite({ kubeconfig, focus, log: join(folder, 'suite.log') });
  results = new Map(all.map((result) => [result.name, result]));
}, 600_000);

afterAll(async () => {
  const code = await controller?.stop();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
  expect(code, controller?.output.slice(-4000)).toBe(0);
});

test('the focus finds what it found when it was written', () => {
  expect(specs).toHaveLength(32);
});

describe('upstream says', () => {
  test.each(specs)('%s', (name) => {
    const result = results.get(name);
    const words = `${result?.failure}\n${controller?.output.slice(-4000)}`;
    expect(result?.state, words).toBe('passed');
  });
});
