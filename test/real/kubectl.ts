// SPDX-License-Identifier: Apache-2.0
// The real kubectl as a function.
import { tool } from '../../hack/tools/tools.ts';
import { execute } from './processes.ts';

/** Runs kubectl and gives what it printed. Throws with its words when it fails. */
export async function kubectl(kubeconfig: string, args: readonly string[], input?: string): Promise<string> {
  const done = await execute(await tool('kubectl'), args, {
    env: { ...process.env, KUBECONFIG: kubeconfig },
    ...(input === undefined ? {} : { input }),
  });
  if (done.code !== 0)
    throw new Error(`kubectl ${args.join(' ')} ended with ${done.code}:\n${done.stdout}${done.stderr}`);
  return done.stdout;
}

/** Applies manifests given as objects. */
export async function apply(kubeconfig: string, objects: readonly object[]): Promise<void> {
  const list = { apiVersion: 'v1', kind: 'List', items: objects };
  await kubectl(kubeconfig, ['apply', '--server-side', '-f', '-'], JSON.stringify(list));
}
