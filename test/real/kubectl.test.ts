// SPDX-License-Identifier: Apache-2.0
// A client nobody here wrote drives the embedded cluster: the real kubectl 1.36 against `karpenter up`.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { tool } from '../../hack/tools/tools.ts';
import { execute, type Finished, RunningProgram } from './processes.ts';

let folder: string;
let up: RunningProgram;
let path: string;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'karpenter-kubectl-'));
  const kubeconfig = join(folder, 'config');
  path = await tool('kubectl');
  // A home of its own: kubectl caches discovery below it.
  env = { ...process.env, KUBECONFIG: kubeconfig, HOME: folder };
  up = new RunningProgram('karpenter up', 'node', [
    'bin/karpenter.js',
    'up',
    '--cluster-only',
    '--port',
    '0',
    '--kubeconfig-out',
    kubeconfig,
  ]);
  await up.until(async () => (await execute(path, ['get', '--raw', '/readyz'], { env })).code === 0, 30_000);
});

afterAll(async () => {
  expect(await up?.stop(), up?.output).toBe(0);
  rmSync(folder, { recursive: true, force: true });
});

/** Runs kubectl, which must succeed, and gives what it printed. */
async function kubectl(line: string, input?: object): Promise<string> {
  const done = await attempt(line, input);
  expect(done.code, `kubectl ${line}\n${done.stdout}${done.stderr}`).toBe(0);
  return done.stdout;
}

/** Runs kubectl and gives how it ended. `line` is split at blanks; a `'quoted part'` stays whole. */
function attempt(line: string, input?: object): Promise<Finished> {
  const args = Array.from(line.matchAll(/(?:[^\s']|'[^']*')+/g), ([word]) => word.replaceAll("'", ''));
  return execute(path, args, { env, ...(input ? { input: stringify(input) } : {}) });
}

const nodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: {
    template: {
      spec: {
        requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }],
        nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
      },
    },
    limits: { cpu: '1000' },
  },
};

describe('a newcomer looks around', () => {
  test('sees two small nodes that are ready', async () => {
    await kubectl('wait --for=condition=Ready node --all --timeout=20s');
    const nodes = JSON.parse(await kubectl('get nodes -o json')) as {
      items: { status: { capacity: Record<string, string> } }[];
    };
    expect(nodes.items.map((n) => n.status.capacity)).toEqual([
      expect.objectContaining({ cpu: '2', memory: '4Gi', pods: '17' }),
      expect.objectContaining({ cpu: '2', memory: '4Gi', pods: '17' }),
    ]);
    expect(await kubectl('get nodes')).toMatch(/NAME\s+STATUS\s+ROLES\s+AGE\s+VERSION\n\S+\s+Ready/);
    expect(await kubectl('get nodes -o wide')).toContain('CONTAINER-RUNTIME');
  });

  test('finds our kinds, their short names and their category', async () => {
    const kinds = await kubectl('api-resources');
    for (const kind of ['NodePool', 'NodeClaim', 'NodeOverlay', 'CapacityBuffer', 'KWOKNodeClass', 'Deployment']) {
      expect(kinds).toMatch(new RegExp(`\\s${kind}\n`));
    }
    expect(await kubectl('api-resources --categories=karpenter -o name')).toContain('nodepools.karpenter.sh');
    expect(await kubectl('get namespaces -o name')).toContain('namespace/kube-system');
    expect(await kubectl('version -o json')).toContain('"v1.36.1"');
    expect(await kubectl('auth can-i create pods')).toBe('yes\n');
  });

  test('reads about our fields', async () => {
    expect(await kubectl('explain nodepool.spec.disruption')).toContain('consolidateAfter');
  });
});

describe('our own kinds', () => {
  test('are applied, defaulted and printed with their columns', async () => {
    expect(await kubectl('apply -f -', nodePool)).toContain('nodepool.karpenter.sh/default created');
    expect(await kubectl('get nodepool default')).toMatch(
      /NAME\s+NODECLASS\s+NODES\s+READY\s+AGE\ndefault\s+default\s/,
    );
    const printed = await kubectl(
      "get nodepool default -o jsonpath='{.spec.disruption.consolidateAfter} {.spec.template.spec.expireAfter}'",
    );
    expect(printed).toBe('0s 720h');
    expect(await kubectl('apply -f -', nodePool)).toContain('unchanged');
    expect(await kubectl('get karpenter')).toContain('default');
  });

  test('are refused with the field and the reason', async () => {
    const bad = { ...nodePool, metadata: { name: 'bad' }, spec: { ...nodePool.spec, weight: 101 } };
    const refused = await attempt('apply -f -', bad);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('spec.weight: Invalid value: 101');
    const unknown = { ...nodePool, metadata: { name: 'unknown' }, spec: { ...nodePool.spec, wieght: 5 } };
    expect((await attempt('apply --validate=strict -f -', unknown)).stderr).toContain('unknown field "spec.wieght"');
  });

  test('are patched in three ways and compared before a change', async () => {
    await kubectl(`patch nodepool default --type=merge -p '{"spec":{"weight":7}}'`);
    await kubectl(`patch nodepool default --type=json -p '[{"op":"replace","path":"/spec/weight","value":8}]'`);
    expect(await kubectl('get nodepool default -o custom-columns=W:.spec.weight --no-headers')).toBe('8\n');
    const difference = await attempt('diff -f -', { ...nodePool, spec: { ...nodePool.spec, weight: 9 } });
    expect(difference.stdout).toContain('+  weight: 9');
    await kubectl('delete nodepool default');
    expect((await attempt('get nodepool default')).stderr).toContain('NotFound');
  });
});

describe('a workload', () => {
  test('is created, scaled, rolled and waited for', async () => {
    await kubectl('create deployment web --image=nginx:1 --replicas=2');
    await kubectl('rollout status deployment/web --timeout=20s');
    await kubectl('scale deployment web --replicas=4');
    await kubectl('wait --for=condition=Available deployment/web --timeout=20s');
    await kubectl('wait --for=condition=Ready pod -l app=web --timeout=20s');
    expect((await kubectl('get pods -l app=web -o name')).trim().split('\n')).toHaveLength(4);
    expect(await kubectl('get pods -l app=web --field-selector=status.phase=Running')).toMatch(
      /web-\S+\s+1\/1\s+Running\s+0/,
    );
    await kubectl('set image deployment/web nginx=nginx:2');
    await kubectl('rollout status deployment/web --timeout=20s');
    expect(await kubectl('rollout history deployment/web')).toMatch(/\n2\s/);
    await kubectl('rollout undo deployment/web');
    await kubectl('rollout status deployment/web --timeout=20s');
    expect(await kubectl('get deploy web -o jsonpath={.spec.template.spec.containers[0].image}')).toBe('nginx:1');
  });

  test('is described with its events', async () => {
    const story = await kubectl('describe deployment web');
    expect(story).toContain('ScalingReplicaSet');
    const [pod] = (await kubectl('get pods -l app=web -o name')).trim().split('\n');
    expect(await kubectl(`describe ${pod}`)).toContain('Successfully assigned default/');
    expect(await kubectl('events --for deployment/web')).toContain('ScalingReplicaSet');
    expect(await kubectl('describe nodes')).toMatch(/Allocated resources/);
  });

  test('that does not fit waits, and says why', async () => {
    await kubectl('create deployment big --image=big --replicas=0');
    await kubectl('set resources deployment big --requests=cpu=7');
    await kubectl('scale deployment big --replicas=1');
    await kubectl('wait --for=create pod -l app=big --timeout=20s');
    await kubectl(
      `wait --for=jsonpath='{.status.conditions[?(@.type=="PodScheduled")].reason}'=Unschedulable pod -l app=big --timeout=20s`,
    );
    expect(await kubectl('describe pod -l app=big')).toMatch(/0\/2 nodes are available: 2 Insufficient cpu\./);
    await kubectl('delete deployment big');
    await kubectl('wait --for=delete pod -l app=big --timeout=20s');
  });

  test('is watched while it changes', async () => {
    const watch = new RunningProgram('kubectl get -w', path, ['get', 'pods', '-l', 'app=web', '-w'], { env });
    await watch.until(() => watch.output.includes('Running'));
    await kubectl('scale deployment web --replicas=1');
    await watch.until(() => watch.output.includes('Terminating'));
    await watch.stop();
  });

  test('is labelled, annotated and deleted with all it owns', async () => {
    await kubectl('label deployment web tier=front');
    await kubectl('annotate deployment web note=hello');
    expect(await kubectl('get deployments -l tier=front -o name')).toBe('deployment.apps/web\n');
    await kubectl('delete deployment web');
    await kubectl('wait --for=delete replicaset -l app=web --timeout=20s');
    await kubectl('wait --for=delete pod -l app=web --timeout=20s');
    expect((await kubectl('get all -l app=web -o name')).trim()).toBe('');
  });
});

describe('a node', () => {
  test('is tainted, cordoned and drained within what a disruption budget allows', async () => {
    const [node] = (await kubectl('get nodes -o name')).trim().split('\n');
    const name = node?.replace('node/', '');
    await kubectl(`taint nodes ${name} team=a:NoSchedule`);
    expect(await kubectl(`get ${node} -o jsonpath={.spec.taints[0].key}`)).toBe('team');
    await kubectl(`taint nodes ${name} team-`);
    await kubectl('create deployment guarded --image=nginx --replicas=6');
    await kubectl('create poddisruptionbudget guarded --selector=app=guarded --max-unavailable=1');
    await kubectl('rollout status deployment/guarded --timeout=20s');
    await kubectl(`drain ${node} --ignore-daemonsets --timeout=40s`);
    expect(await kubectl('get nodes')).toContain('SchedulingDisabled');
    await kubectl(`uncordon ${node}`);
    await kubectl('rollout status deployment/guarded --timeout=20s');
    await kubectl('delete deployment,pdb guarded');
  });
});

describe('a namespace', () => {
  test('takes everything in it along when it goes', async () => {
    await kubectl('create namespace team-a');
    await kubectl('-n team-a create configmap settings --from-literal=a=b');
    await kubectl('-n team-a create deployment web --image=nginx');
    await kubectl('-n team-a rollout status deployment/web --timeout=20s');
    await kubectl('delete namespace team-a --timeout=30s');
    expect((await attempt('get namespace team-a')).stderr).toContain('not found');
    const refused = await attempt('-n team-a create configmap late --from-literal=a=b');
    expect(refused.stderr).toContain('namespaces "team-a" not found');
  });
});
