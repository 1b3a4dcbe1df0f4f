// SPDX-License-Identifier: Apache-2.0
// Upstream's own end-to-end suite against our controller on a real control plane with kwok.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startControlPlane } from '../../test/real/control-plane.ts';
import { applyCrds, startController } from '../../test/real/controllers.ts';
import { listSpecs, runSuite, type Selection, type SpecResult } from '../../test/real/upstream-suite.ts';
import { usageOf } from '../../test/real/usage.ts';

interface Part extends Selection {
  /** How many specs it has: fewer that ran is a failure. */
  readonly specs: number;
}

const mainJob =
  'Integration (DaemonSet|CRD Hash|Utilization|DoNotDisrupt)|Integration Validation NodePool|StandaloneNodeClaim|' +
  'TerminationGracePeriod|Termination should (terminate the node|drain pods)|' +
  'Performance Provisioning should do (simple|complex) provisioning$';

/** The suite cut into parts that can be run alone. */
export const parts: Readonly<Record<string, Part>> = {
  'main-job': { focus: mainJob, specs: 38 },
  disruption: { skip: `${mainJob}|CapacityBuffer`, specs: 40 },
  buffers: { focus: 'CapacityBuffer', specs: 21 },
  // Its own checks of memory and CPU pass without a sample: what the kernel counted is printed.
  performance: {
    suite: 'upstream-performance',
    focus: 'should efficiently scale (two deployments with different|30 deployments with varied)',
    specs: 2,
  },
};

/** Runs a named part, or the specs that a regular expression finds. Resolves to whether all of them ran and passed. */
export async function upstream(name = 'main-job'): Promise<boolean> {
  const selection: Selection = parts[name] ?? { focus: name };
  const planned = await listSpecs(selection);
  const expected = parts[name]?.specs ?? planned.length;
  console.log(`${planned.length} specs`);
  const folder = mkdtempSync(join(tmpdir(), 'karpenter-upstream-'));
  console.log(`logs in ${folder}`);
  const plane = await startControlPlane({ workloads: true, kwok: true });
  try {
    await applyCrds(plane.kubeconfig);
    const controller = await startController('ours', {
      kubeconfig: plane.kubeconfig,
      log: join(folder, 'controller.log'),
      env: { LOG_LEVEL: 'debug' },
    });
    try {
      const log = join(folder, 'suite.log');
      const results = await runSuite({ ...selection, kubeconfig: plane.kubeconfig, log });
      if (controller.pid !== undefined) {
        const { cpuSeconds, peakRssMib } = usageOf(controller.pid);
        console.log(`our controller: ${cpuSeconds.toFixed(1)} CPU s, peak RSS ${peakRssMib.toFixed(0)} MiB`);
      }
      return report(results, expected);
    } finally {
      await controller.stop();
    }
  } finally {
    await plane.stop();
  }
}

function report(results: readonly SpecResult[], expected: number): boolean {
  for (const { name, state, seconds, failure } of results) {
    console.log(`${state.padEnd(8)} ${seconds.toFixed(1).padStart(7)} s  ${name}`);
    if (failure) console.log(failure.replaceAll(/^/gm, '    '));
  }
  const passed = results.filter(({ state }) => state === 'passed').length;
  console.log(`${passed} passed, ${results.length - passed} did not, ${expected} expected`);
  return passed === expected && results.length === expected;
}
