// SPDX-License-Identifier: Apache-2.0
// `npm run nightly -- NAME [ARGUMENT…]`: what takes too long for every change. Each is a table row; it prints what it saw and
// ends with 1 when something is wrong.
import { mutants } from './mutants/run.ts';
import { clusterApi } from './nightly/cluster-api.ts';
import { huntDefects } from './nightly/defects.ts';
import { disruption } from './nightly/disruption.ts';
import { faults } from './nightly/faults.ts';
import { linode } from './nightly/linode.ts';
import { olderKubernetes } from './nightly/older-kubernetes.ts';
import { race } from './nightly/race.ts';
import { upstream } from './nightly/upstream.ts';
import { world } from './nightly/world.ts';

interface Run {
  readonly what: string;
  run(...args: string[]): Promise<boolean>;
}

const runs: Readonly<Record<string, Run>> = {
  defects: { what: '[DEFECT…] planted defects, and the seed and invariant that find each', run: huntDefects },
  mutants: {
    what: '[--shard I/N] [--in FOLDER] 200 small mistakes in controllers and providers, and who notices them',
    run: mutants,
  },
  'cluster-api': {
    what: "[SCENARIO] Cluster API's own managers, standing still for a minute at a time",
    run: clusterApi,
  },
  disruption: {
    what: '[COUNT [SEED]] random clusters in virtual time, and whether disruption keeps its promises',
    run: disruption,
  },
  faults: {
    what: '[SECONDS] a real control plane breaks under the controller, and the controller is killed for so long',
    run: faults,
  },
  linode: { what: 'the guide of the Linode provider in both modes, with helm, kubectl and linode-cli', run: linode },
  'older-kubernetes': { what: 'a node bought and given back on Kubernetes 1.33', run: olderKubernetes },
  race: {
    what: "[SCENARIO [ours|virtual [SEED]]] ours and upstream's controller, ours alone, or ours on virtual time",
    run: race,
  },
  upstream: { what: "[PART|FOCUS] upstream's end-to-end suite on our controller", run: upstream },
  world: { what: '[HOURS [SEED]] 10,000 hours of simulated clusters, with faults', run: world },
};

const [name = '', ...args] = process.argv.slice(2);
const chosen = runs[name];
if (!chosen) {
  console.error('usage: npm run nightly -- NAME [ARGUMENT…]');
  for (const [known, { what }] of Object.entries(runs)) console.error(`  ${known.padEnd(18)} ${what}`);
  process.exit(2);
}
process.exitCode = (await chosen.run(...args)) ? 0 : 1;
