// SPDX-License-Identifier: Apache-2.0
// Builds the real components once before the first test, so that no test's clock pays for it.
import { tool } from '../../hack/tools/tools.ts';

export async function setup(): Promise<void> {
  for (const name of ['etcd', 'kube-apiserver', 'kubectl', 'kube-controller-manager', 'kube-scheduler'] as const)
    await tool(name);
}
