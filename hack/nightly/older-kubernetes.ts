// SPDX-License-Identifier: Apache-2.0
// Kubernetes 1.33, the release of the guides: kinds that are not served there block nothing, and a node is bought and given
// back.
import { startControlPlane } from '../../test/real/control-plane.ts';
import { startController } from '../../test/real/controllers.ts';
import { apply, kubectl } from '../../test/real/kubectl.ts';

/** Only the CRDs without which there is nothing to do. */
const crds = ['karpenter.sh_nodepools.yaml', 'karpenter.sh_nodeclaims.yaml', 'karpenter.kwok.sh_kwoknodeclasses.yaml'];

const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' };
const objects = [
  { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass', metadata: { name: 'default' } },
  {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'default' },
    spec: {
      disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: '0s' },
      template: {
        spec: { nodeClassRef, requirements: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }] },
      },
    },
  },
];

/** Resolves to true; rejects with what went wrong. */
export async function olderKubernetes(): Promise<boolean> {
  const plane = await startControlPlane({ release: '1.33', workloads: true, kwok: true });
  try {
    const run = (line: string): Promise<string> => kubectl(plane.kubeconfig, line.split(' '));
    const { gitVersion } = JSON.parse(await run('get --raw /version')) as { gitVersion: string };
    if (!gitVersion.startsWith('v1.33.')) throw new Error(`this is Kubernetes ${gitVersion}`);
    for (const crd of crds) await run(`apply --server-side -f crds/${crd}`);
    await run('wait --for=condition=Established crd --all');
    const controller = await startController('ours', {
      kubeconfig: plane.kubeconfig,
      // With everything on that watches a kind of its own.
      env: { IGNORE_DRA_REQUESTS: 'false' },
    });
    try {
      await apply(plane.kubeconfig, objects);
      await run('create deployment inflate --image=pause --replicas=5');
      await run('rollout status deployment/inflate --timeout=60s');
      await run('wait --for=condition=Ready nodeclaim --all --timeout=30s');
      console.log(await run('get nodes,nodeclaims -o wide'));
      await run('delete deployment inflate');
      await run('wait --for=delete nodeclaim --all --timeout=120s');
      const left = (await run('get nodes -o name')).trim();
      if (left !== '') throw new Error(`nodes are left: ${left}`);
    } catch (error) {
      throw new Error(`on ${gitVersion}; the controller's last words:\n${controller.output.slice(-4000)}`, {
        cause: error,
      });
    } finally {
      await controller.stop();
    }
    console.log(`on ${gitVersion} a node was bought and given back`);
    return true;
  } finally {
    await plane.stop();
  }
}
