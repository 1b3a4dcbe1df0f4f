// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { labels } from '../api/labels.ts';
import type { DisruptionPlan } from '../controllers/disruption/plan.ts';
import { registerPlan } from './plan.ts';

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
    process.exitCode = 0;
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

  test('refuses what is no problem, and neither or both of file and --live', async () => {
    await plan('[]');
    expect(complained.join()).toContain('a problem is an object');
    expect(process.exitCode).toBe(2);
    await expect(plan(JSON.stringify(problem), '--live')).rejects.toThrow('either a problem file or --live');
  });
});
