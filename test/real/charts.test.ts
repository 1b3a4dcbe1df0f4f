// SPDX-License-Identifier: Apache-2.0
// The charts as the real helm renders them, against manifests that were read by people. After a change that is meant:
// `npm run test:real -- test/real/charts.test.ts --update`, and read the difference.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { programSettings } from '../../src/cli/program-settings.ts';
import { parseSettings } from '../../src/runtime/settings.ts';
import { helm, objectsIn, template } from './helm.ts';

interface Container {
  readonly env: readonly { readonly name: string; readonly value?: string }[];
}

const valuesFile = (name: string): string => `test/real/golden/values/${name}.yaml`;

describe('charts/karpenter', () => {
  test.for([['default'], ['guide'], ['everything'], ['cluster-api-names'], ['linode']] as const)(
    'renders the manifests of %s',
    async ([name]) => {
      const values = name === 'default' ? [] : ['--values', valuesFile(name)];
      const { code, stdout, stderr } = await template('karpenter', ...values);
      expect(code, stderr).toBe(0);
      expect(objectsIn(stdout).every(({ metadata }) => metadata.name !== undefined)).toBe(true);
      await expect(stdout).toMatchFileSnapshot(`golden/${name}.yaml`);
    },
  );

  test.for([['default'], ['guide'], ['everything'], ['cluster-api-names'], ['linode']] as const)(
    'gives the controller settings that it takes without a word: %s',
    async ([name]) => {
      const values = name === 'default' ? [] : ['--values', valuesFile(name)];
      const { code, stdout, stderr } = await template('karpenter', ...values);
      expect(code, stderr).toBe(0);
      const deployment = objectsIn(stdout).find(({ kind }) => kind === 'Deployment') as unknown as {
        spec: { template: { spec: { containers: [Container & { args: string[] }] } } };
      };
      const [{ env, args }] = deployment.spec.template.spec.containers;
      const variables = Object.fromEntries(
        env.flatMap((each) => (each.value === undefined ? [] : [[each.name, each.value]])),
      );
      const known = new Set(Object.values(programSettings).map((setting) => setting.env));
      expect(Object.keys(variables).filter((variable) => !known.has(variable) && variable !== 'TZ')).toEqual([]);
      expect(parseSettings(programSettings, args.slice(1), variables)).toMatchObject({
        problems: undefined,
        warnings: [],
      });
    },
  );

  test('without values the controller has the defaults it would have without a chart', async () => {
    const { stdout } = await template('karpenter');
    const deployment = objectsIn(stdout).find(({ kind }) => kind === 'Deployment') as unknown as {
      spec: { template: { spec: { containers: [Container] } } };
    };
    const { env } = deployment.spec.template.spec.containers[0];
    const variables = Object.fromEntries(
      env.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])),
    );
    expect(parseSettings(programSettings, [], variables).settings).toEqual(
      parseSettings(programSettings, [], {}).settings,
    );
  });

  test('[BUG 12a] every feature gate can be set from values', async () => {
    const gates = ['nodeRepair', 'reservedCapacity', 'spotToSpotConsolidation', 'nodeOverlay', 'staticCapacity'];
    for (const gate of gates) {
      const name = `${gate[0]!.toUpperCase()}${gate.slice(1)}`;
      for (const on of [true, false]) {
        const { code, stdout, stderr } = await template('karpenter', '--set', `settings.featureGates.${gate}=${on}`);
        expect(code, stderr).toBe(0);
        expect(stdout).toMatch(new RegExp(`name: FEATURE_GATES\\n\\s+value: ".*\\b${name}=${on}\\b`));
      }
    }
  });

  test('[GAP 12b] admins of the cluster may manage NodeOverlays', async () => {
    const { stdout } = await template('karpenter');
    const roles = objectsIn(stdout).filter(
      ({ metadata }) => metadata.labels?.['rbac.authorization.k8s.io/aggregate-to-admin'] === 'true',
    ) as unknown as { rules: { resources: string[]; verbs: string[] }[] }[];
    const rules = roles.flatMap((role) => role.rules).filter(({ resources }) => resources.includes('nodeoverlays'));
    expect(rules.flatMap(({ verbs }) => verbs)).toEqual(expect.arrayContaining(['get', 'create', 'patch', 'delete']));
  });

  test('before the release goes, a hook removes what costs money, with no more rights than that takes', async () => {
    const { stdout } = await template('karpenter');
    const ours = objectsIn(stdout).filter(({ metadata }) => metadata.name === 'karpenter-cleanup') as unknown as {
      kind: string;
      metadata: { annotations?: Record<string, string> };
      rules?: { resources: string[]; verbs: string[] }[];
    }[];
    expect(ours.map(({ kind }) => kind)).toEqual(['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Job']);
    expect(ours[3]!.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-delete' });
    expect(ours[1]!.rules).toEqual([
      { apiGroups: ['karpenter.sh'], resources: ['nodepools', 'nodeclaims'], verbs: ['list', 'delete'] },
    ]);
    const without = await template('karpenter', '--set', 'cleanup.enabled=false');
    expect(without.stdout).not.toContain('cleanup');
  });

  test('takes the values of upstream’s charts that mean nothing here', async () => {
    const webhook = ['webhook.enabled=true', 'webhook.port=8443', 'webhook.metrics.port=8001'];
    const values = [...webhook, 'settings.clusterCABundle=Q0E='].flatMap((set) => ['--set', set]);
    const [given, plain] = [await template('karpenter', ...values), await template('karpenter')];
    expect(given.code, given.stderr).toBe(0);
    expect(given.stdout).toBe(plain.stdout);
    const crds = ['webhook.enabled=false', 'webhook.serviceName=karpenter', 'webhook.serviceNamespace=kube-system'];
    const { code, stderr } = await template('karpenter-crd', ...crds.flatMap((set) => ['--set', set]));
    expect(code, stderr).toBe(0);
  });

  test('names what is wrong with values, and where', async () => {
    const refusals: readonly [set: string, message: string][] = [
      ['settings.preferencePolicy=Maybe', "at '/settings/preferencePolicy': value must be one of 'Respect', 'Ignore'"],
      ['settings.batchMaxDuration=10 seconds', "at '/settings/batchMaxDuration': '10 seconds' does not match pattern"],
      ['settings.featureGates.nodeRepair=often', "at '/settings/featureGates/nodeRepair': got string, want boolean"],
      ['settings.featureGates.nodeRepairs=true', "additional properties 'nodeRepairs' not allowed"],
      ['settings.clustername=blue', "at '/settings': additional properties 'clustername' not allowed"],
      ['settings.providers={mars}', "at '/settings/providers/0': value must be"],
      ['controller.metrics.port=0', "at '/controller/metrics/port': minimum: got 0, want 1"],
      ['replicas=two', "at '/replicas': got string, want integer"],
      ['logLevel=loud', "at '/logLevel': value must be one of"],
      ['controller.image.digest=latest', "at '/controller/image/digest'"],
    ];
    for (const [set, message] of refusals) {
      const { code, stderr } = await template('karpenter', '--set', set);
      expect(code, set).not.toBe(0);
      expect(stderr, set).toContain(message);
    }
  });

  test('passes helm lint in strict mode', async () => {
    const { code, stdout, stderr } = await helm(['lint', '--strict', 'charts/karpenter', 'charts/karpenter-crd']);
    expect(code, stdout + stderr).toBe(0);
  });
});

describe('charts/karpenter-crd', () => {
  const crds = readdirSync('crds').map((file) => parse(readFileSync(`crds/${file}`, 'utf8')) as object);
  const byName = (a: object, b: object): number => ((a as Named).metadata.name < (b as Named).metadata.name ? -1 : 1);
  interface Named {
    readonly metadata: { readonly name: string };
  }

  test('holds our definitions, and nothing of them is lost on the way', async () => {
    const { stdout, code, stderr } = await template('karpenter-crd', '--set', 'keep=false');
    expect(code, stderr).toBe(0);
    expect(objectsIn(stdout).toSorted(byName)).toEqual(crds.toSorted(byName));
  });

  test('keeps them when the release goes, unless told', async () => {
    const { stdout } = await template('karpenter-crd', '--set', 'additionalAnnotations.owner=platform');
    for (const { metadata } of objectsIn(stdout)) {
      expect(metadata.annotations).toEqual({ 'helm.sh/resource-policy': 'keep', owner: 'platform' });
    }
  });
});
