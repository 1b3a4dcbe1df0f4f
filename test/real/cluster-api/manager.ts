// SPDX-License-Identifier: Apache-2.0
// The core manager of Cluster API on a real API server: its CRDs, a Cluster whose control plane is managed elsewhere, and
// the manager itself. Its webhooks are not registered: what they would fill in is written out.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sourcesOf, tool } from '../../../hack/tools/tools.ts';
import { RealClock } from '../../../src/base/clock.ts';
import { SystemRandom } from '../../../src/base/random.ts';
import { makeCertificate } from '../../../src/embedded/certificates.ts';
import { clusterApiCrds } from '../../../src/embedded/clouds/cluster-api/crds.ts';
import { apply, kubectl } from '../kubectl.ts';
import { freePort, RunningProgram, startListening } from '../processes.ts';

const namespace = 'default';
const clusterName = 'workload';
const contract = { 'cluster.x-k8s.io/v1beta1': 'v1beta1' };

const free = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** A control plane that somebody else runs: without one, Nodes of deleted Machines are left alone. */
const controlPlaneCrd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'embeddedcontrolplanes.controlplane.cluster.x-k8s.io', labels: contract },
  spec: {
    group: 'controlplane.cluster.x-k8s.io',
    names: { kind: 'EmbeddedControlPlane', plural: 'embeddedcontrolplanes', singular: 'embeddedcontrolplane' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1beta1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: free, status: free } } },
      },
    ],
  },
};

/** Installs the kinds into a management cluster, and the Cluster whose API server is the other one. */
export async function installClusterApi(hub: string, workload: { kubeconfig: string; url: string }): Promise<void> {
  const sources = await sourcesOf('cluster-api', 'sigs.k8s.io/cluster-api');
  await kubectl(hub, ['apply', '--server-side', '-f', join(sources, 'config', 'crd', 'bases')]);
  const infrastructure = clusterApiCrds('v1beta1').filter(({ spec }) => spec.group.startsWith('infrastructure'));
  await apply(hub, [...infrastructure, controlPlaneCrd]);
  await kubectl(hub, ['wait', '--for=condition=Established', 'crd', '--all']);
  await apply(hub, [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: `${clusterName}-kubeconfig`,
        namespace,
        labels: { 'cluster.x-k8s.io/cluster-name': clusterName },
      },
      type: 'cluster.x-k8s.io/secret',
      stringData: { value: readFileSync(workload.kubeconfig, 'utf8') },
    },
    {
      apiVersion: 'controlplane.cluster.x-k8s.io/v1beta1',
      kind: 'EmbeddedControlPlane',
      metadata: { name: clusterName, namespace },
      spec: {},
      status: { ready: true, initialized: true, externalManagedControlPlane: true },
    },
    {
      apiVersion: 'cluster.x-k8s.io/v1beta1',
      kind: 'Cluster',
      metadata: { name: clusterName, namespace },
      spec: {
        controlPlaneEndpoint: { host: '127.0.0.1', port: Number(new URL(workload.url).port) },
        controlPlaneRef: {
          apiVersion: 'controlplane.cluster.x-k8s.io/v1beta1',
          kind: 'EmbeddedControlPlane',
          name: clusterName,
          namespace,
        },
      },
    },
  ]);
}

/** Starts the manager; `folder` is for its certificate, `log` for what it says. */
export async function startManager(hub: string, folder: string, log?: string): Promise<RunningProgram> {
  const certificates = join(folder, 'manager');
  mkdirSync(certificates, { recursive: true });
  // Its webhook server insists on one, although nobody calls it.
  const { certificate, key } = makeCertificate(new RealClock(), new SystemRandom(), ['localhost'], ['127.0.0.1']);
  writeFileSync(join(certificates, 'tls.crt'), certificate);
  writeFileSync(join(certificates, 'tls.key'), key);
  const path = await tool('cluster-api');
  return startListening(async () => {
    const [webhooks, health] = [await freePort(), await freePort()];
    const args = [
      `--kubeconfig=${hub}`,
      `--webhook-cert-dir=${certificates}`,
      `--webhook-port=${webhooks}`,
      `--health-addr=127.0.0.1:${health}`,
      '--diagnostics-address=127.0.0.1:0',
      '--insecure-diagnostics',
      '--kube-api-qps=200',
      '--kube-api-burst=400',
      '--clustercache-client-qps=200',
      '--clustercache-client-burst=400',
    ];
    return { program: new RunningProgram('the Cluster API manager', path, args, log ? { log } : {}), health };
  });
}
