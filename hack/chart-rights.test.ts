// SPDX-License-Identifier: Apache-2.0
// What the chart never gives the controller, in whatever mode: docs/security.md names these tests. The manifests are those
// that helm renders (test/real/charts.test.ts keeps them true); what was given and not used is least-privilege.test.ts.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly Rule[];
  readonly roleRef?: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[];
}

const folder = 'test/real/golden';
const rendered = readdirSync(folder).filter((name) => name.endsWith('.yaml'));

const manifestsOf = (file: string): Manifest[] =>
  parseAllDocuments(readFileSync(`${folder}/${file}`, 'utf8')).map((document) => document.toJS() as Manifest);

const bindingsOf = (all: readonly Manifest[]) => all.filter(({ kind }) => /^(?:Cluster)?RoleBinding$/.test(kind));

/** Every right of the controller and of its hook, one verb on one resource each. */
function rightsOf(file: string) {
  const all = manifestsOf(file);
  const bound = bindingsOf(all).map(({ roleRef }) => roleRef!);
  return all
    .filter(({ kind, metadata }) => bound.some((ref) => ref.kind === kind && ref.name === metadata.name))
    .flatMap(({ kind, metadata, rules = [] }) =>
      rules.flatMap(({ apiGroups, resources, verbs, resourceNames }) =>
        apiGroups.flatMap((group) =>
          resources.flatMap((resource) =>
            verbs.map((verb) => ({
              where: kind === 'Role' ? metadata.namespace : 'everywhere',
              right: `${verb} ${resource}${group && `.${group}`}`,
              group,
              resource,
              verb,
              names: resourceNames,
            })),
          ),
        ),
      ),
    );
}

const reading = ['get', 'list', 'watch'];

describe.each(rendered)('with the values of %s', (file) => {
  const rights = rightsOf(file);
  const rightsTo = (test: (right: (typeof rights)[number]) => boolean): string[] =>
    rights.filter(test).map(({ right, where }) => `${right} ${where}`);

  test('the roles are the ones that the chart has, for nobody but its own two accounts', () => {
    const all = manifestsOf(file);
    expect(rights.length).toBeGreaterThan(20);
    for (const { roleRef, subjects } of bindingsOf(all)) {
      expect(all.some(({ kind, metadata }) => kind === roleRef!.kind && metadata.name === roleRef!.name)).toBe(true);
      expect(subjects).toHaveLength(1);
      expect(subjects![0]).toMatchObject({ kind: 'ServiceAccount', namespace: 'kube-system' });
    }
    expect(new Set(bindingsOf(all).map(({ subjects }) => subjects![0]!.name)).size).toBe(2);
  });

  test('it cannot get into pods or nodes, nor make, change or impersonate anybody', () => {
    expect(
      rightsTo(({ resource }) => /\/(?:exec|attach|portforward|proxy|ephemeralcontainers|token)$/.test(resource)),
    ).toEqual([]);
    expect(
      rightsTo(({ resource, verb }) => resource === 'pods' && !['list', 'watch', 'delete'].includes(verb)),
    ).toEqual([]);
    expect(rightsTo(({ resource, verb }) => resource === 'serviceaccounts' || verb === 'impersonate')).toEqual([]);
  });

  test('it cannot give itself rights, nor change what the API server does', () => {
    const forbidden = [
      'rbac.authorization.k8s.io',
      'admissionregistration.k8s.io',
      'apiextensions.k8s.io',
      'apiregistration.k8s.io',
      'certificates.k8s.io',
      'authentication.k8s.io',
      'authorization.k8s.io',
    ];
    expect(rightsTo(({ group }) => forbidden.includes(group))).toEqual([]);
    expect(rightsTo(({ verb }) => ['bind', 'escalate', 'approve', 'sign'].includes(verb))).toEqual([]);
  });

  test('of the workloads of others it changes nothing: it evicts and deletes pods, and writes events', () => {
    const own = /karpenter|^coordination\.k8s\.io$|cluster\.x-k8s\.io$|^example\.com$/;
    const written = rights.filter(({ verb, group }) => !reading.includes(verb) && !own.test(group));
    expect(
      [...new Set(written.map(({ right }) => right))].filter((right) => !right.endsWith(' secrets')).sort(),
    ).toEqual(
      [
        'create events',
        'patch events',
        'create pods/eviction',
        'delete pods',
        'delete nodes',
        'patch nodes',
        ...(rights.some(({ resource }) => resource === 'kwoknodeclasses') ? ['create nodes'] : []),
      ].sort(),
    );
  });

  test('it reads no Secrets, but by name those of kube-system in the Instance mode of Linode', () => {
    const allowed = ['get', 'create', 'delete'].map((verb) => `${verb} secrets kube-system`);
    expect(rightsTo(({ resource }) => resource === 'secrets')).toEqual(file === 'linode.yaml' ? allowed : []);
  });

  test('nothing is said with a star but the kinds of Cluster API’s providers, which it reads and makes', () => {
    const wide = rights.filter(({ group, resource, verb }) =>
      [group, resource, verb].some((word) => word.includes('*')),
    );
    for (const { group, verb } of wide) {
      expect(group).toMatch(/^(?:infrastructure|bootstrap)\.cluster\.x-k8s\.io$/);
      expect([...reading, 'create']).toContain(verb);
    }
    expect(rights.filter(({ verb }) => verb === 'deletecollection')).toEqual([]);
  });
});
