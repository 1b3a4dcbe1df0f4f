// SPDX-License-Identifier: Apache-2.0
// A client nobody here wrote drives the embedded cluster: the real kubectl 1.36 against `karpenter up`.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { startUp, type UpCluster } from './embedded-cluster.ts';
import type { Finished } from './processes.ts';

let up: UpCluster;
beforeAll(async () => {
  up = await startUp('--cluster-only');
});
afterAll(() => up?.stop());

const kubectl = (line: string, input?: object): Promise<string> => up.kubectl(line, input);
const attempt = (line: string, input?: object): Promise<Finished> => up.attempt(line, input);
/** The lines of what was printed. */
const lines = async (line: string): Promise<string[]> => (await kubectl(line)).trim().split('\n').filter(Boolean);

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
  });

  test('asks what may be done, by whom', async () => {
    expect(await kubectl('auth can-i create pods')).toBe('yes\n');
    expect(await kubectl('auth can-i --list')).toMatch(/\*\.\*\s+\[\]\s+\[\]\s+\[\*\]/);
    expect(await kubectl('auth whoami -o json')).toContain('system:masters');
    const jane = await attempt('auth can-i delete nodes --as=jane');
    expect([jane.code, jane.stdout]).toEqual([1, 'no\n']);
    expect((await attempt('get secrets --as=jane')).stderr).toContain(
      'secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "default"',
    );
  });

  test('reads about our fields', async () => {
    const disruption = await kubectl('explain nodepool.spec.disruption');
    expect(disruption).toMatch(/GROUP:\s+karpenter\.sh\nKIND:\s+NodePool\nVERSION:\s+v1/);
    expect(disruption).toMatch(/consolidateAfter\s+<string>/);
    expect(disruption).toMatch(/FIELD: disruption <Object>/);
    expect(await kubectl('explain nodepool.spec --recursive')).toMatch(/nodeClassRef\s+<Object> -required-/);
    expect(await kubectl('explain nodeclaims')).toMatch(/status\s+<Object>/);
    expect(await kubectl('explain kwoknodeclass.spec.nodeRegistrationDelay')).toContain('DESCRIPTION:');
    expect(await kubectl('explain deployment.spec.template.spec.containers.resources')).toContain('requests');
    expect((await attempt('explain nodepool.spec.nonsense')).stderr).toContain('field "nonsense" does not exist');
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

  test('are applied by the server, for many owners', async () => {
    const owned = { ...nodePool, metadata: { name: 'owned' }, spec: { ...nodePool.spec, weight: 5 } };
    expect(await kubectl('apply --server-side --dry-run=server -f -', owned)).toContain(
      'nodepool.karpenter.sh/owned serverside-applied (server dry run)',
    );
    expect((await attempt('get nodepool owned')).stderr).toContain('NotFound');
    await kubectl('apply --server-side --field-manager=one -f -', owned);
    const other = { ...owned, spec: { ...owned.spec, weight: 6 } };
    const conflict = await attempt('apply --server-side --field-manager=two -f -', other);
    expect(conflict.stderr).toContain('Apply failed with 1 conflict: conflict with "one": .spec.weight');
    await kubectl('apply --server-side --field-manager=two --force-conflicts -f -', other);
    const managed = await kubectl('get nodepool owned -o yaml --show-managed-fields');
    const { metadata } = parse(managed) as {
      metadata: { managedFields: { manager: string; operation: string; fieldsV1: { 'f:spec': object } }[] };
    };
    const owners = metadata.managedFields.filter(({ fieldsV1 }) => 'f:weight' in fieldsV1['f:spec']);
    expect(owners.map(({ manager, operation }) => `${manager} ${operation}`)).toEqual(['two Apply']);
    expect(await kubectl('get nodepool owned -o yaml')).not.toContain('managedFields');
    const difference = await attempt('diff --server-side --field-manager=two -f -', {
      ...other,
      spec: { ...other.spec, weight: 7 },
    });
    expect([difference.code, difference.stdout]).toEqual([1, expect.stringContaining('+  weight: 7')]);
    await kubectl('delete nodepool owned');
  });

  test('are tried out without a trace', async () => {
    const trial = { ...nodePool, metadata: { name: 'trial' } };
    expect(await kubectl('apply --dry-run=server -f -', trial)).toContain('created (server dry run)');
    expect(await kubectl('create --dry-run=server -o yaml -f -', trial)).toContain('consolidateAfter: 0s');
    expect((await attempt('get nodepool trial')).stderr).toContain('NotFound');
    expect(await kubectl('delete nodepool default --dry-run=server')).toContain('deleted (server dry run)');
    expect(await kubectl('get nodepool default -o name')).toBe('nodepool.karpenter.sh/default\n');
  });

  test('are patched in three ways and compared before a change', async () => {
    await kubectl(`patch nodepool default --type=merge -p '{"spec":{"weight":7}}'`);
    await kubectl(`patch nodepool default --type=json -p '[{"op":"replace","path":"/spec/weight","value":8}]'`);
    expect(await kubectl('get nodepool default -o custom-columns=W:.spec.weight --no-headers')).toBe('8\n');
    const strategic = await attempt(`patch nodepool default --type=strategic -p '{"spec":{"weight":9}}'`);
    expect(strategic.stderr).toContain('strategic-merge-patch+json is not supported by karpenter.sh/v1, Kind=NodePool');
    await kubectl(`patch nodepool default --subresource=status --type=merge -p '{"status":{"nodes":3}}'`);
    expect(await kubectl('get nodepool default')).toMatch(/default\s+default\s+3/);
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
    expect(await kubectl('get deployment web -o yaml')).toMatch(/kind: Deployment\nmetadata:/);
  });

  test('is rolled out, looked back at, taken back and restarted', async () => {
    const image = (): Promise<string> =>
      kubectl('get deploy web -o jsonpath={.spec.template.spec.containers[0].image}');
    const settled = (): Promise<string> => kubectl('rollout status deployment/web --timeout=20s');
    await kubectl('set image deployment/web nginx=nginx:2');
    await kubectl('annotate deployment/web kubernetes.io/change-cause=second');
    await settled();
    expect(await kubectl('rollout history deployment/web')).toMatch(/\n1\s+<none>\n2\s+second\n/);
    expect(await kubectl('rollout history deployment/web --revision=1')).toMatch(/Image:\s+nginx:1/);
    await kubectl('rollout undo deployment/web');
    await settled();
    expect(await image()).toBe('nginx:1');
    expect(await kubectl('rollout history deployment/web')).toMatch(/\n2\s+second\n3\s+<none>\n/);
    await kubectl('rollout undo deployment/web --to-revision=2');
    await settled();
    expect(await image()).toBe('nginx:2');
    const before = await lines('get pods -l app=web -o name');
    await kubectl('rollout restart deployment/web');
    await settled();
    await kubectl('wait --for=delete --timeout=20s ' + before.join(' '));
    expect(await lines('get pods -l app=web -o name')).toHaveLength(4);
    await kubectl('rollout pause deployment/web');
    await kubectl('set resources deployment web --requests=cpu=50m,memory=32Mi --limits=memory=64Mi');
    expect(await kubectl('get rs -l app=web -o jsonpath={..requests.cpu}')).toBe('');
    await kubectl('rollout resume deployment/web');
    await settled();
    expect(await kubectl('get pods -l app=web -o jsonpath={.items[0].spec.containers[0].resources}')).toBe(
      '{"limits":{"memory":"64Mi"},"requests":{"cpu":"50m","memory":"32Mi"}}',
    );
  });

  test('is patched in all ways that built-in kinds know', async () => {
    const containers = (): Promise<string> =>
      kubectl('get deploy web -o jsonpath={range.spec.template.spec.containers[*]}{.name}={.image},{end}');
    const added = { spec: { template: { spec: { containers: [{ name: 'side', image: 'side:1' }] } } } };
    await kubectl(`patch deployment web --type=strategic -p '${JSON.stringify(added)}'`);
    expect((await containers()).split(',').filter(Boolean).sort()).toEqual(['nginx=nginx:2', 'side=side:1']);
    const removed = {
      spec: { template: { spec: { containers: [{ name: 'side', $patch: 'delete' }] } } },
    };
    await kubectl(`patch deployment web -p '${JSON.stringify(removed)}'`);
    expect(await containers()).toBe('nginx=nginx:2,');
    await kubectl(`patch deployment web --type=merge -p '{"spec":{"minReadySeconds":0,"revisionHistoryLimit":3}}'`);
    await kubectl(
      `patch deployment web --type=json -p '[{"op":"test","path":"/spec/revisionHistoryLimit","value":3}]'`,
    );
    const wrong = await attempt(
      `patch deployment web --type=json -p '[{"op":"test","path":"/spec/revisionHistoryLimit","value":4}]'`,
    );
    expect(wrong.stderr).toContain('the server rejected our request due to an error in our request');
    await kubectl(`patch deployment web --subresource=scale --type=merge -p '{"spec":{"replicas":3}}'`);
    await kubectl('rollout status deployment/web --timeout=20s');
    expect(await kubectl('get deploy web')).toMatch(/web\s+3\/3\s+3\s+3/);
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
    const watch = up.start('get pods -l app=web -w');
    await watch.until(() => watch.output.includes('Running'));
    await kubectl('scale deployment web --replicas=1');
    await watch.until(() => watch.output.includes('Terminating'));
    await watch.stop();
    const events = up.start('get deployments -w --output-watch-events -o name');
    await events.until(() => events.output.includes('web'));
    await kubectl('annotate deployment web watched=yes');
    await events.until(() => events.output.split('deployment.apps/web').length > 2);
    await events.stop();
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

  test('leaves behind what it is told to leave', async () => {
    const create = async (name: string): Promise<void> => {
      await kubectl(`create deployment ${name} --image=nginx --replicas=2`);
      await kubectl(`rollout status deployment/${name} --timeout=20s`);
    };
    await create('orphaned');
    await kubectl('delete deployment orphaned --cascade=orphan');
    const sets = await lines('get rs -l app=orphaned -o name');
    expect(sets).toHaveLength(1);
    expect(await kubectl(`get ${sets[0]} -o jsonpath={.metadata.ownerReferences}`)).toBe('');
    await kubectl(`delete ${sets[0]} --cascade=orphan`);
    expect(await lines('get pods -l app=orphaned -o name')).toHaveLength(2);
    await kubectl('delete pods -l app=orphaned --wait=true --timeout=40s');
    await create('fore');
    // In the foreground the owner goes last.
    await kubectl('delete deployment fore --cascade=foreground --timeout=40s');
    expect(await lines('get pods,rs -l app=fore -o name')).toEqual([]);
    await create('back');
    await kubectl('delete deployment back --cascade=background');
    await kubectl('wait --for=delete pod -l app=back --timeout=20s');
  });

  test('of other kinds runs as well', async () => {
    await kubectl('create job once --image=busybox -- true');
    await kubectl('wait --for=create pod -l job-name=once --timeout=20s');
    expect(await kubectl('get jobs')).toMatch(/once\s+(?:Running|Complete)/);
    await kubectl('delete job once');
    await kubectl('create cronjob nightly --image=busybox --schedule=@daily');
    expect(await kubectl('get cronjobs')).toMatch(/nightly\s+@daily/);
    await kubectl('delete cronjob nightly');
    await kubectl('run single --image=nginx --labels=kind=single --port=80');
    await kubectl('expose pod single --port=80');
    expect(await kubectl('get service single -o wide')).toMatch(
      /ClusterIP\s+10\.\S+\s+<none>\s+80\/TCP\s+\S+\s+kind=single/,
    );
    await kubectl('delete pod,service single');
    const set = {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'db' },
      spec: {
        serviceName: 'db',
        replicas: 2,
        selector: { matchLabels: { app: 'db' } },
        template: { metadata: { labels: { app: 'db' } }, spec: { containers: [{ name: 'db', image: 'db' }] } },
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          },
        ],
      },
    };
    await kubectl('apply -f -', set);
    await kubectl('rollout status statefulset/db --timeout=30s');
    expect(await lines('get pods -l app=db -o name')).toEqual(['pod/db-0', 'pod/db-1']);
    expect(await kubectl('get pvc data-db-0')).toMatch(/data-db-0\s+Bound/);
    await kubectl('delete statefulset db');
    await kubectl('delete pvc data-db-0 data-db-1 --timeout=30s');
  });
});

describe('a node', () => {
  test('is cordoned and takes no more pods until it is uncordoned', async () => {
    const nodes = await lines('get nodes -o name');
    expect(await kubectl(`cordon ${nodes.join(' ')}`)).toContain('cordoned');
    await kubectl('run waits --image=nginx');
    await kubectl(
      `wait --for=jsonpath='{.status.conditions[?(@.type=="PodScheduled")].reason}'=Unschedulable pod/waits --timeout=20s`,
    );
    expect(await kubectl('describe pod waits')).toMatch(/2 node\(s\) were unschedulable/);
    await kubectl(`uncordon ${nodes.join(' ')}`);
    await kubectl('wait --for=condition=Ready pod/waits --timeout=20s');
    await kubectl('delete pod waits --now');
  });

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

describe('files', () => {
  test('of many objects are applied, replaced and deleted', async () => {
    const file = join(up.folder, 'many.yaml');
    const map = (name: string, value: string) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, labels: { set: 'many' } },
      data: { value },
    });
    const write = (...objects: object[]): void =>
      writeFileSync(file, objects.map((each) => stringify(each)).join('---\n'));
    write(map('one', '1'), map('two', '2'));
    expect(await kubectl(`apply -f ${file}`)).toBe('configmap/one created\nconfigmap/two created\n');
    write(map('one', '1'), map('two', '3'));
    expect(await kubectl(`apply -f ${file}`)).toBe('configmap/one unchanged\nconfigmap/two configured\n');
    // A field that is no longer in the file goes.
    write(map('one', '1'), { ...map('two', '3'), data: {} });
    await kubectl(`apply -f ${file}`);
    expect(await kubectl('get configmap two -o jsonpath={.data}')).not.toContain('value');
    expect(await kubectl(`replace -f ${file}`)).toBe('configmap/one replaced\nconfigmap/two replaced\n');
    expect(await kubectl('get configmaps -l set=many --sort-by=.metadata.name -o name')).toBe(
      'configmap/one\nconfigmap/two\n',
    );
    expect(await kubectl(`delete -f ${file}`)).toContain('configmap "two" deleted');
  });

  test('of other kinds of the API are at least kept', async () => {
    const webhook = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'stored' },
      webhooks: [],
    };
    await kubectl('apply -f -', webhook);
    expect(await kubectl('get validatingwebhookconfigurations')).toMatch(/stored\s+0/);
    await kubectl('delete validatingwebhookconfiguration stored');
  });
});

describe('what a fake pod cannot do', () => {
  test.each([
    ['exec fake -- true', 'exec'],
    ['attach fake', 'attach'],
    ['port-forward pod/fake 18080:80', 'portforward'],
    ['cp fake:/etc/hosts /dev/null', 'exec'],
    ['get --raw /api/v1/namespaces/default/pods/fake/proxy/', 'proxy'],
  ])('kubectl %s is answered with a clear error', async (line, what) => {
    await kubectl('apply -f -', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'fake' },
      spec: { containers: [{ name: 'main', image: 'fake' }] },
    });
    await kubectl('wait --for=condition=Ready pod/fake --timeout=20s');
    const { code, stderr } = await attempt(line);
    expect(code).not.toBe(0);
    expect(stderr).toContain(`pods/${what} needs a running container; the embedded cluster only pretends to run them`);
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
