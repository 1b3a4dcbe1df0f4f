// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { allCrds } from '../api/crd.ts';
import { labels } from '../api/labels.ts';
import { RealClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import type { DisruptionPlan } from '../controllers/disruption/plan.ts';
import { ApiServer } from '../embedded/api-server.ts';
import { KubeClient } from '../kube/client.ts';
import { kinds } from '../kube/kinds.ts';
import { connect } from './connect.ts';
import { registerPlan } from './plan.ts';
import { UsageError } from './usage-error.ts';

vi.mock('./connect.ts');

const zone = 'zone-a';

function type(cpus: number): object {
  const offer = { key: labels.zone, operator: 'In', values: [zone] };
  const paid = { key: labels.capacityType, operator: 'In', values: ['on-demand'] };
  return {
    name: `c-${cpus}x`,
    requirements: [{ key: labels.instanceType, operator: 'In', values: [`c-${cpus}x`] }, offer, paid],
    capacity: { cpu: String(cpus), memory: `${cpus * 2}Gi`, pods: '110' },
    offerings: [{ price: cpus / 10, requirements: [offer, paid] }],
  };
}

function node(name: string, cpus: number): { node: object; claim: object } {
  const own = {
    [labels.nodePool]: 'general',
    [labels.instanceType]: `c-${cpus}x`,
    [labels.zone]: zone,
    [labels.capacityType]: 'on-demand',
    [labels.registered]: 'true',
    [labels.initialized]: 'true',
  };
  const resources = { cpu: String(cpus), memory: `${cpus * 2}Gi`, pods: '110' };
  const conditions = ['Launched', 'Registered', 'Initialized', 'Consolidatable'].map((of) => ({
    type: of,
    status: 'True',
  }));
  return {
    node: {
      metadata: { name, labels: own },
      spec: { providerID: `x://${name}` },
      status: { capacity: resources, allocatable: resources, conditions: [{ type: 'Ready', status: 'True' }] },
    },
    claim: {
      metadata: { name, labels: own },
      spec: { requirements: [] },
      status: { nodeName: name, providerID: `x://${name}`, conditions },
    },
  };
}

function pod(name: string, nodeName: string, cpu: string, annotations = {}): object {
  return {
    metadata: { name, namespace: 'default', annotations },
    spec: { nodeName, containers: [{ name: 'main', resources: { requests: { cpu } } }] },
    status: { phase: 'Running' },
  };
}

const machines = [node('empty', 4), node('large', 16), node('held', 4)];
const problem = {
  now: '2026-01-01T00:00:00Z',
  nodePools: [
    {
      metadata: { name: 'general' },
      spec: { template: { spec: { requirements: [] } }, disruption: { consolidateAfter: '0s', budgets: [] } },
    },
  ],
  instanceTypes: { general: [2, 4, 8, 16].map(type) },
  nodes: machines.map((one) => one.node),
  nodeClaims: machines.map((one) => one.claim),
  pods: [pod('web', 'large', '3500m'), pod('job', 'held', '3500m', { 'karpenter.sh/do-not-disrupt': 'true' })],
};

describe('karpenter plan', () => {
  let folder: string;
  let said: string[];
  let complained: string[];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'plan-'));
    said = [];
    complained = [];
    vi.spyOn(console, 'log').mockImplementation((text: string) => void said.push(text));
    vi.spyOn(console, 'error').mockImplementation((text: string) => void complained.push(text));
  });
  afterEach(() => {
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true });
    process.exitCode = undefined;
  });

  async function plan(content: string, ...args: string[]): Promise<string> {
    const file = join(folder, 'problem.json');
    writeFileSync(file, content);
    const program = new Command().exitOverride();
    registerPlan(program);
    await program.parseAsync(['plan', file, ...args], { from: 'user' });
    return said.join('\n');
  }

  test('says what would go, what that saves, and why others stay', async () => {
    const result = JSON.parse(await plan(JSON.stringify(problem), '-o', 'json')) as DisruptionPlan;
    expect(result.commands.map(({ reason, decision, nodes }) => [reason, decision, ...nodes])).toEqual([
      ['Empty', 'delete', 'empty'],
      ['Underutilized', 'replace', 'large'],
    ]);
    const [, replace] = result.commands;
    expect(replace).toMatchObject({ podsMoved: ['default/web'], price: 1.6, nodePools: ['general'] });
    expect(replace!.savings).toBeCloseTo(1.2);
    expect(replace!.replacements[0]!.instanceTypes[0]).toBe('c-4x');
    expect(result.staying).toContainEqual({
      node: 'held',
      method: 'Consolidation',
      why: 'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/job)',
    });
  });

  test('prints a table that ends in one sentence', async () => {
    const text = await plan(JSON.stringify(problem));
    expect(text).toContain('Underutilized   replace');
    expect(text.split('\n').at(-1)).toBe(
      '2 nodes go, 1 are bought: 2.0000/h becomes 0.4000/h. A dry run: nothing was changed.',
    );
  });

  test('minds the settings of the controller', async () => {
    const text = await plan(JSON.stringify(problem), '--pod-move-price', '5', '-o', 'json');
    expect((JSON.parse(text) as DisruptionPlan).commands.map(({ reason }) => reason)).toEqual(['Empty']);
  });

  test('asks about what a cloud declares as a reason', async () => {
    const [first, ...rest] = machines.map((one) => one.claim) as { status: { conditions: object[] } }[];
    const { status } = first!;
    const rusty = {
      ...first,
      status: { ...status, conditions: [...status.conditions, { type: 'Rusty', status: 'True' }] },
    };
    const budgets = [{ nodes: '0', reasons: ['Empty', 'Underutilized'] }];
    const { spec } = problem.nodePools[0]!;
    const nodePools = [
      { metadata: { name: 'general' }, spec: { ...spec, disruption: { ...spec.disruption, budgets } } },
    ];
    const given = { ...problem, nodePools, nodeClaims: [rusty, ...rest] };
    const without = JSON.parse(await plan(JSON.stringify(given), '-o', 'json')) as DisruptionPlan;
    expect(without.commands).toEqual([]);
    said = [];
    const state = { disruptionReasons: ['Rusty'] };
    const result = JSON.parse(await plan(JSON.stringify({ ...given, state }), '-o', 'json')) as DisruptionPlan;
    expect(result.commands.map(({ reason, nodes }) => [reason, ...nodes])).toEqual([['Rusty', 'empty']]);
  });

  test('says which budget cannot be understood, and that its pool stays', async () => {
    const budgets = [{ nodes: '100%', schedule: 'a b c d e', duration: '1h' }];
    const { spec } = problem.nodePools[0]!;
    const nodePools = [
      { metadata: { name: 'general' }, spec: { ...spec, disruption: { ...spec.disruption, budgets } } },
    ];
    const given = JSON.stringify({ ...problem, nodePools });
    const result = JSON.parse(await plan(given, '-o', 'json')) as DisruptionPlan;
    expect(result.commands).toEqual([]);
    for (const budget of result.budgets)
      expect(budget).toMatchObject({ allowed: 0, problem: expect.stringContaining('"a b c d e" cannot be read') });
    said = [];
    expect(await plan(given)).toMatch(/NodePool general: nothing of it is disrupted.*"a b c d e" cannot be read/);
  });

  test('refuses what is no problem, and neither or both of file and --live', async () => {
    await plan('[]');
    expect(complained.join()).toContain('a problem is an object');
    expect(process.exitCode).toBe(2);
    await expect(plan(JSON.stringify(problem), '--live')).rejects.toThrow('either a problem file or --live');
    await expect(plan(JSON.stringify(problem), '--timeout', 'x')).rejects.toBeInstanceOf(UsageError);
  });

  test('tells of switches that nobody knows', async () => {
    await plan(JSON.stringify(problem), '--feature-gates', 'Nope=true');
    expect(complained.join()).toMatch(/^karpenter: --feature-gates: Nope is not known/);
  });

  test('says when there is nothing that could go', async () => {
    const { nodes: _, nodeClaims: __, ...empty } = problem;
    expect(await plan(JSON.stringify(empty))).toBe('Nothing to do: there are no nodes of a NodePool.');
  });

  test('only reads the cluster', async () => {
    const clock = new RealClock();
    const server = new ApiServer({ clock, random: new SeededRandom(1) });
    const inner = server.transport();
    const client = new KubeClient({ transport: inner, clock });
    for (const crd of allCrds()) await client.resource(kinds.CustomResourceDefinition).create(crd as never);
    const seen: string[] = [];
    vi.mocked(connect).mockResolvedValue({
      request: (request) => {
        seen.push(request.method);
        return inner.request(request);
      },
      watch: (request) => inner.watch(request),
      close: () => inner.close(),
    });
    const program = new Command().exitOverride();
    registerPlan(program);
    await program.parseAsync(['plan', '--live', '--providers', 'kwok'], { from: 'user' });
    expect(said.join()).toContain('Nothing to do');
    expect(new Set(seen)).toEqual(new Set(['GET']));
  });
});
