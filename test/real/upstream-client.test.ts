// SPDX-License-Identifier: Apache-2.0
// client-go nobody here wrote: upstream Karpenter's own controller runs against the embedded cluster and provisions for it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tool } from '../../hack/tools/tools.ts';
import { startUp, type UpCluster } from './embedded-cluster.ts';
import { RunningProgram } from './processes.ts';

let up: UpCluster;
let controller: RunningProgram;

beforeAll(async () => {
  up = await startUp('--cluster-only');
  controller = new RunningProgram('upstream Karpenter', await tool('upstream-json'), [], {
    env: {
      ...process.env,
      KUBECONFIG: up.kubeconfig,
      LEADER_ELECTION_NAMESPACE: 'kube-system',
      SYSTEM_NAMESPACE: 'kube-system',
      METRICS_PORT: '0',
      HEALTH_PROBE_PORT: '0',
      BATCH_IDLE_DURATION: '1s',
    },
  });
});
afterAll(async () => {
  await controller?.stop();
  await up?.stop();
});

const count = async (what: string): Promise<number> =>
  (await up.kubectl(`get ${what} -o name`)).split('\n').filter(Boolean).length;

test("upstream's controller elects itself, buys a machine for pods that wait, and gives it back", async () => {
  await up.kubectl('apply -f -', [
    { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass', metadata: { name: 'default' } },
    {
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodePool',
      metadata: { name: 'default' },
      spec: {
        disruption: { consolidateAfter: '0s' },
        template: {
          spec: {
            requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }],
            nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
          },
        },
      },
    },
  ]);
  await up.kubectl('create deployment big --image=big --replicas=0');
  await up.kubectl('set resources deployment big --requests=cpu=3');
  await up.kubectl('scale deployment big --replicas=2');
  await controller.until(async () => (await count('nodeclaims')) > 0, 60_000);
  await up.kubectl('rollout status deployment/big --timeout=60s');
  await up.kubectl('wait --for=condition=Initialized nodeclaim --all --timeout=30s');
  expect(await count('nodes')).toBe(2 + (await count('nodeclaims')));
  expect(await up.kubectl('get nodepool default -o jsonpath={.status.conditions[?(@.type=="Ready")].status}')).toBe(
    'True',
  );
  expect(await up.kubectl('get lease -n kube-system karpenter-leader-election -o name')).toContain('karpenter');
  await up.kubectl('delete deployment big');
  await controller.until(async () => (await count('nodeclaims')) === 0, 90_000);
  expect(await count('nodes')).toBe(2);
  expect(controller.output).not.toContain('"level":"ERROR"');
});
