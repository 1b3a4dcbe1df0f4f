// SPDX-License-Identifier: Apache-2.0
// The command line: the only place that reads the process's arguments and environment. Each command is a file of its
// own that is loaded when it is asked for, so that `--help` and `version` answer at once.
import { Command, CommanderError } from 'commander';
import { KarpenterError, messageOf } from '../base/errors.ts';
import { registerCleanup } from './cleanup.ts';
import { registerController } from './controller.ts';
import { registerConvert } from './convert.ts';
import { registerDemo } from './demo.ts';
import { registerPlan } from './plan.ts';
import { registerSimulate } from './simulate.ts';
import { registerSnapshot } from './snapshot.ts';
import { registerSolve } from './solve.ts';
import { registerUp } from './up.ts';
import { UsageError } from './usage-error.ts';
import { registerVersion, version } from './version.ts';

/** Exit codes: 0 it worked, 1 it failed, 2 it was asked wrongly. */
const exitCodes = { failure: 1, usage: 2 } as const;

const program = new Command('karpenter')
  .description("The Kubernetes node autoscaler in TypeScript: Karpenter's API, many clouds in one process.")
  .version(version, '-v, --version')
  .showSuggestionAfterError()
  .showHelpAfterError('(karpenter --help lists the commands)')
  .exitOverride();

registerUp(program);
registerDemo(program);
registerController(program);
registerSolve(program);
registerPlan(program);
registerSnapshot(program);
registerSimulate(program);
registerConvert(program);
registerCleanup(program);
registerVersion(program);

// `karpenter … | head`: whoever reads has seen enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

try {
  await program.parseAsync(process.argv);
} catch (error) {
  if (error instanceof CommanderError) {
    // commander has said what is wrong; help and version end here too, with 0.
    process.exitCode = error.exitCode === 0 ? 0 : exitCodes.usage;
  } else {
    console.error(`karpenter: ${messageOf(error)}`);
    if (!(error instanceof KarpenterError)) console.error(error);
    process.exitCode = error instanceof UsageError ? exitCodes.usage : exitCodes.failure;
  }
}
