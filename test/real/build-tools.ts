// SPDX-License-Identifier: Apache-2.0
// Builds the real components once before the first test, so that no test's clock pays for it.
import { pythonTool, systemTool, type ToolName, tool } from '../../hack/tools/tools.ts';

const needed: readonly ToolName[] = [
  'helm',
  'etcd',
  'kube-apiserver',
  'kubectl',
  'kubeadm',
  'kubelet',
  'kube-controller-manager',
  'kube-scheduler',
  'kwok',
  'cluster-api',
  'upstream-suite',
  'linode-client',
];

export async function setup(): Promise<void> {
  for (const name of needed) await tool(name);
  await pythonTool('linode-cli');
  await systemTool('cloud-init');
}
