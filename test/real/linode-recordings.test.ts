// SPDX-License-Identifier: Apache-2.0
// The emulated Linode API held to the real one: recorded exchanges replayed, statuses, fields, values and errors
// compared; and its Nodes to those of real LKE clusters.
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/base/clock.ts';
import { SeededRandom } from '../../src/base/random.ts';
import { ApiServer } from '../../src/embedded/api-server.ts';
import { LinodeApi } from '../../src/embedded/clouds/linode/api.ts';
import { joinCluster } from '../../src/embedded/clouds/linode/join.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { kinds, type Node } from '../../src/kube/kinds.ts';
import { isPlan, shapeProblem } from '../../src/providers/linode/api-shapes.ts';
import {
  differences,
  type Exchange,
  fieldsOf,
  readRecordings,
  recordingsFolder,
  type Tolerance,
} from './recordings.ts';

const folder = recordingsFolder('linode-recordings');
const recordings = readRecordings(folder);

/** What kind of thing a path is about: recordings of the same kind know each other's fields. */
const resources: readonly (readonly [RegExp, string])[] = [
  [/^\/linode\/instances\/\d+\/configs/, 'config'],
  [/^\/linode\/instances\/\d+\/ips/, 'ips'],
  [/^\/linode\/instances\/\d+\/firewalls/, 'firewall'],
  [/^\/linode\/instances/, 'instance'],
  [/^\/lke\/clusters\/\d+\/pools/, 'pool'],
  [/^\/lke\/clusters\/\d+\/nodes/, 'node'],
  [/^\/lke\/clusters\/\d+\/control_plane_acl/, 'acl'],
  [/^\/lke\/clusters/, 'cluster'],
  [/^\/networking\/firewalls/, 'firewall'],
  [/^\/vpcs\/\d+\/subnets/, 'subnet'],
  [/^\/images/, 'images'],
  [/^\/([a-z/-]+)/, '$1'],
];

const pathOf = (path: string): string => path.replace(/^\/v4(?:beta)?/, '').replace(/\?.*/, '');

function resourceOf(path: string): string {
  const [pattern, name] = resources.find(([candidate]) => candidate.test(path))!;
  return path.replace(new RegExp(`${pattern.source}.*`), name);
}

/** One item or a list of them: the same fields. */
const withoutList = (field: string): string => field.replace(/^data\[\]\.?/, '');

const known = new Map<string, Set<string>>();
for (const { path, response, status } of [...(recordings?.values() ?? [])].flat()) {
  if (status >= 400) continue;
  const name = resourceOf(pathOf(path));
  const fields = known.get(name) ?? new Set();
  for (const field of fieldsOf(response)) fields.add(withoutList(field));
  known.set(name, fields);
}

/** Fields that the API has today and that no recording shows, with where they are written down. */
const documented: Readonly<Record<string, RegExp>> = {
  // The types were recorded before accelerators were sold: behind every instance's specs it is already there.
  'linode/types': /^accelerated_devices$/,
  // A subnet inside a VPC has the fields of a subnet.
  vpcs: /^subnets\[\]/,
  // Of a placement group's instances older recordings show less.
  instance: /^(?:maintenance_policy|locks)$/,
};

const toleranceFor = (path: string): Tolerance => {
  const name = resourceOf(path);
  // What is sold changes: that it is listed in the same way is what counts.
  const catalogue = /^\/(?:regions\/availability|images|lke\/(?:versions|tiers))/.test(path);
  return {
    volatile: catalogue
      ? /(?:)/
      : /(?:^|\.)(?:id|\w+_id|created|updated|ipv4|ipv6|ipv[46]\[\]|host_uuid|fingerprint|address|gateway|rdns|url|endpoint|revision-id|range|eol|expiry|resolvers\.\w+|results|pages|kubeconfig|ssh_key|subnet_mask|prefix|capabilities\[\]|entities\[\]|members\[\]|alerts\[\]|metrics\[\]|backups\.\w+|maintenance_policy|nat_1_1|vpc|size|object_storage)$/,
    maps: /(?:^|\.)(?:labels|devices|schedule)$/,
    newer: (field) =>
      (known.get(name)?.has(withoutList(field)) ?? false) || (documented[name]?.test(withoutList(field)) ?? false),
    // Private images of the account that was recorded.
    older: /^data\[\]\.(?:total_size|image_sharing\.\w+)$/,
  };
};

/** Recorded numbers and names, and what the emulator gave out instead. */
class Translation {
  readonly #names = new Map<string, string>();

  /** Walks two answers side by side. */
  learn(recorded: unknown, ours: unknown, path: string): void {
    if (typeof recorded !== 'object' || typeof ours !== 'object' || recorded === null || ours === null) return;
    for (const [key, value] of Object.entries(recorded)) {
      const mine = (ours as Record<string, unknown>)[key];
      const isName = /^(?:id|instance_id)$/.test(key) || (key === 'address' && path.includes('/reserved/'));
      if (isName && (typeof mine === 'number' || typeof mine === 'string'))
        this.#names.set(String(value), String(mine));
      else if (key !== 'region_prices') this.learn(value, mine, path);
    }
  }

  has(name: unknown): boolean {
    return this.#names.has(String(name));
  }

  set(name: unknown, ours: unknown): void {
    this.#names.set(String(name), String(ours));
  }

  path(path: string): string {
    const [name = '', query] = path.split('?');
    const translated = name.split('/').map((part) => this.#names.get(part) ?? part);
    return [translated.join('/'), ...(query === undefined ? [] : [query])].join('?');
  }

  body(value: unknown, key = ''): unknown {
    if (Array.isArray(value)) return value.map((item) => this.body(item, key));
    if (typeof value === 'object' && value !== null) {
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, this.body(inner, name)]));
    }
    const named = this.#names.get(String(value));
    if (named === undefined || !/^(?:id|\w+_id|linodes|ipv4)$/.test(key)) return value;
    return typeof value === 'number' ? Number(named) : named;
  }
}

class Replay {
  readonly clock = new VirtualClock();
  readonly api = new LinodeApi({ clock: this.clock, random: new SeededRandom(7), limits: 'none' });
  readonly names = new Translation();

  async ask(method: string, path: string, body?: unknown, filter?: string): Promise<{ status: number; body: unknown }> {
    const headers = { authorization: 'Bearer linode-token', ...(filter ? { 'x-filter': filter } : {}) };
    const text = body === undefined || body === null ? {} : { body: JSON.stringify(body) };
    const { status, body: answer } = await this.api.handle({ method, path, headers, ...text });
    return { status, body: JSON.parse(answer) as unknown };
  }

  async replay(exchange: Exchange): Promise<string[]> {
    const { method, path, status, response, xFilter } = exchange;
    await this.#furnish(exchange);
    const body = this.names.body(exchange.body);
    const again = () => this.ask(method, this.names.path(path), body, xFilter);
    let answer = await again();
    // What takes time in the recording takes time here: it was there by then.
    for (let waited = 0; status === 200 && answer.status === 503 && waited < 60; waited++) {
      await this.clock.step(10_000);
      answer = await again();
    }
    const where = `${method} ${path}`;
    if (answer.status !== status) return [`${where}: ${answer.status} ${JSON.stringify(answer.body)}, was ${status}`];
    if (status >= 400) {
      const said = JSON.stringify(answer.body);
      return said === JSON.stringify(response) ? [] : [`${where}: ${said}, was ${JSON.stringify(response)}`];
    }
    this.names.learn(response, answer.body, path);
    const route = pathOf(path);
    return differences(response, answer.body, toleranceFor(route)).map((difference) => `${where}: ${difference}`);
  }

  /** Makes what existed before the recording began. */
  async #furnish({ body, path }: Exchange): Promise<void> {
    const text = JSON.stringify(body ?? {});
    for (const [, id] of text.matchAll(/"firewall_id": ?(\d+)/g)) {
      if (this.names.has(id)) continue;
      const rules = { inbound_policy: 'ACCEPT', outbound_policy: 'ACCEPT' };
      const made = await this.ask('POST', '/v4beta/networking/firewalls', { label: `before-${id}`, rules });
      this.names.set(id, (made.body as { id: number }).id);
    }
    const vpc = /"vpc_id": ?(\d+)/.exec(text)?.[1];
    if (vpc !== undefined && !this.names.has(vpc) && path.includes('/lke/')) {
      const { region } = body as { region: string };
      const made = await this.ask('POST', '/v4beta/vpcs', { label: `before-${vpc}`, region });
      this.names.set(vpc, (made.body as { id: number }).id);
    }
  }
}

if (!recordings) {
  const missing = `no recordings in ${folder}: set KARPENTER_BENCH_DATA to the folder that has linode-recordings`;
  console.error(missing);
  it(`the recordings are there (${missing})`, () => expect(process.env['CI'], missing).toBeUndefined());
}

describe.skipIf(!recordings)('recorded exchanges with the Linode API', () => {
  const cases = [...(recordings ?? [])].filter(([, exchanges]) =>
    exchanges.every(({ path }) => path.startsWith('/v4')),
  );

  it.each(cases)('%s', async (_, exchanges) => {
    const replay = new Replay();
    const found: string[] = [];
    for (const exchange of exchanges) found.push(...(await replay.replay(exchange)));
    await replay.api.close();
    expect([...new Set(found)]).toEqual([]);
  });

  it('every plan that was recorded is sold, with the same size and price', () => {
    const recorded = recordings!.get('ExampleListTypes_all')![0]!.response as { data: { id: string }[] };
    return new Replay().ask('GET', '/v4beta/linode/types?page_size=500').then(({ body }) => {
      const ours = new Map((body as { data: { id: string }[] }).data.map((plan) => [plan.id, plan]));
      for (const plan of recorded.data) {
        const { accelerated_devices: _, ...rest } = ours.get(plan.id) as { id: string; accelerated_devices?: number };
        expect(rest).toEqual(plan);
      }
    });
  });

  it('every region that was recorded is there, with the same capabilities', async () => {
    const recorded = recordings!.get('TestRegions_List')![0]!.response as {
      data: { id: string; capabilities: string[] }[];
    };
    const { body } = await new Replay().ask('GET', '/v4beta/regions?page_size=500');
    const ours = body as typeof recorded;
    const facts = ({ id, capabilities }: { id: string; capabilities: string[] }) => [id, capabilities.toSorted()];
    expect(ours.data.map(facts)).toEqual(recorded.data.map(facts));
  });
});

describe.skipIf(!recordings)('nodes of LKE', () => {
  const names = ['TestLKECluster_WaitForReady_Cluster', 'TestLKENodePool_GetFound_k8s'];

  it.each(names)('have the labels and about the capacity of those in %s', async (name) => {
    const { items } = recordings!.get(name)![0]!.response as { items: Node[] };
    const recorded = items[0]!;
    const labels = recorded.metadata.labels!;
    const ours = await joinedNode(
      labels['node.kubernetes.io/instance-type']!,
      labels['topology.kubernetes.io/region']!,
    );
    const keys = Object.keys(labels).filter((key) => key !== 'topology.linode.com/region');
    expect(Object.keys(ours.metadata.labels!)).toEqual(expect.arrayContaining(keys));
    const varying = /hostname|host-uuid|pool-id/;
    for (const key of keys.filter((each) => !varying.test(each))) expect(ours.metadata.labels![key]).toBe(labels[key]);
    expect(ours.spec?.providerID).toMatch(/^linode:\/\/\d+$/);
    const kibi = (node: Node, part: 'capacity' | 'allocatable') =>
      Number(node.status![part]!['memory']!.replace('Ki', ''));
    for (const part of ['capacity', 'allocatable'] as const) {
      expect(Math.abs(kibi(ours, part) / kibi(recorded, part) - 1)).toBeLessThan(0.002);
      expect(ours.status![part]!['cpu']).toBe(recorded.status![part]!['cpu']);
      expect(ours.status![part]!['pods']).toBe(recorded.status![part]!['pods']);
    }
  });
});

/** The Node of a new pool. */
async function joinedNode(type: string, region: string): Promise<Node> {
  const clock = new VirtualClock();
  const random = new SeededRandom(1);
  const server = new ApiServer({ clock, random });
  const workload = new KubeClient({ transport: server.transport(), clock });
  const api = new LinodeApi({ clock, random, machines: joinCluster({ workload, clock }) });
  const cluster = { label: 'c', region, k8s_version: '1.35', node_pools: [{ type, count: 1 }] };
  const headers = { authorization: 'Bearer linode-token' };
  await api.handle({ method: 'POST', path: '/v4beta/lke/clusters', headers, body: JSON.stringify(cluster) });
  await clock.step(180_000);
  const { items } = await workload.resource(kinds.Node).list();
  await api.close();
  await server.close();
  return items[0]!;
}

// What the provider refuses to read must be nothing that the real API says.
describe.skipIf(!recordings)('the shapes that answers must have', () => {
  const asked = [...(recordings?.values() ?? [])]
    .flat()
    .filter(({ method, status }) => status < 300 && method !== 'DELETE')
    .map(({ path, response }) => ({ path: pathOf(path).replace(/^\//, ''), response }))
    // Nobody asks for these: they look like one region.
    .filter(({ path }) => !/^regions\/(?:vpc-)?availability$/.test(path));

  it('are those of recorded ones', () => {
    const problems = asked.flatMap(({ path, response }) => {
      const { data, pages } = response as { data?: unknown; pages?: unknown };
      const items: unknown[] = Array.isArray(data) && typeof pages === 'number' ? data : [response];
      return items.flatMap(
        (item) => shapeProblem(path, item) ?? (path === 'linode/types' && !isPlan(item) ? path : []),
      );
    });
    expect(asked.length).toBeGreaterThan(50);
    expect(problems).toEqual([]);
  });
});
