// SPDX-License-Identifier: Apache-2.0
// kwok, the kubelet of nodes that are not there. Its CRDs and stages, and upstream's stages, are read from the Go
// modules that bring them.
import { join } from 'node:path';
import { sourcesOf, tool } from '../../hack/tools/tools.ts';
import { kubectl } from './kubectl.ts';
import { freePort, RunningProgram } from './processes.ts';

/** Installs the stages and starts kwok for the nodes that carry its annotation. */
export async function startKwok(kubeconfig: string): Promise<RunningProgram> {
  const kwok = await sourcesOf('kwok', 'sigs.k8s.io/kwok');
  const karpenter = await sourcesOf('upstream-suite', 'sigs.k8s.io/karpenter');
  const apply = (...args: string[]): Promise<string> => kubectl(kubeconfig, ['apply', '--server-side', ...args]);
  await apply('-f', join(kwok, 'kustomize', 'crd', 'bases', 'kwok.x-k8s.io_stages.yaml'));
  await kubectl(kubeconfig, ['wait', '--for=condition=Established', 'crd/stages.kwok.x-k8s.io']);
  await apply('-k', join(kwok, 'kustomize', 'stage', 'fast'));
  // The same names as two of kwok's: upstream's win.
  await apply('--force-conflicts', '-f', join(karpenter, 'hack', 'kwok', 'stages'));
  const port = await freePort();
  const program = new RunningProgram('kwok', await tool('kwok'), [
    `--kubeconfig=${kubeconfig}`,
    '--manage-all-nodes=false',
    '--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake',
    '--enable-crds=Stage',
    '--node-lease-duration-seconds=40',
    '--cidr=10.0.0.1/24',
    `--server-address=127.0.0.1:${port}`,
  ]);
  await program.until(async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok);
  return program;
}
