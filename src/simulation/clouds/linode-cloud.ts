// SPDX-License-Identifier: Apache-2.0
// Linode as a cloud of the world: the emulated API with an account in which others have machines too, and the real provider,
// in LKE or in Instance mode, behind a door through which calls fail, come late, are lost and come back spoiled.
import { allCrds } from '../../api/crd.ts';
import { capacityTypes, labels } from '../../api/labels.ts';
import { linodeNodeClassKind } from '../../api/linode-node-class.ts';
import type { Random } from '../../base/random.ts';
import { makeCertificate } from '../../embedded/certificates.ts';
import {
  type ApiRequest,
  type ApiResponse,
  ConnectionLost,
  LinodeApi,
  type MachineHook,
} from '../../embedded/clouds/linode/api.ts';
import { joinCluster } from '../../embedded/clouds/linode/join.ts';
import { planNamed } from '../../embedded/clouds/linode/plans.ts';
import { kinds, type Node } from '../../kube/kinds.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '../../kube/object.ts';
import { assembleLinode } from '../../providers/linode/assemble.ts';
import type { LinodeConfiguration } from '../../providers/linode/settings.ts';
import { silence } from '../cloud/machines.ts';
import { Mishaps } from '../cloud/mishaps.ts';
import { collections } from '../collections.ts';
import type { Fault, Happening, Line, SimulatedCloud, StoredCloudParts } from '../contract.ts';
import { between, chance, oneOf, pick } from '../draw.ts';
import { LinodeBooks } from './linode-books.ts';
import { linodeInvariants } from './linode-invariants.ts';

/** In `shared` LKE's node pools have a node for each of many NodeClaims. */
type Mode = 'lke' | 'shared' | 'instance';

const region = 'us-ord';
const clusterName = 'world';
const endpoint = 'https://10.0.0.1:6443';
const second = 1000;
const tokens = { karpenter: 'token-of-karpenter', people: 'token-of-people' } as const;
/** Of many plans those that a cluster of this size would use. */
const sold = ['g6-standard-4', 'g6-standard-6', 'g6-dedicated-4', 'g6-dedicated-8'] as const;

/** What may go wrong, each with how likely it is while it is on, once per call or per machine. */
const mishaps = {
  /** Answered after the client has given up. */
  'linode-slow': 0.2,
  'linode-throttled': 0.5,
  'linode-failing': 0.5,
  'linode-unreachable': 0.7,
  /** Carried out, and the answer is lost. */
  'linode-lost-response': 0.5,
  'linode-truncated': 0.3,
  'linode-malformed': 0.3,
  'linode-never-joins': 0.3,
  'linode-joins-late': 0.4,
} as const;

const names = { lke: 'linode', shared: 'linode-shared', instance: 'linode-instance' } as const;

export function linodeCloud(parts: StoredCloudParts, mode: Mode): SimulatedCloud {
  const site = new Site(parts, mode);
  const { books } = site;
  const prices = sold.map((name) => planNamed(name)!);
  return {
    name: names[mode],
    nodeClass: linodeNodeClassKind as ResourceType<KubeObject>,
    crd: allCrds().find(({ spec }) => spec.names.kind === linodeNodeClassKind.kind)!,
    ledger: books,
    faults: faults(site, parts),
    happenings: happenings(site),
    sells: { zones: [region], capacityTypes: [capacityTypes.onDemand] },
    repairsAfterMs: 30 * 60_000,
    steadyPrices: [capacityTypes.onDemand],
    requirements: [{ key: labels.instanceType, operator: 'In', values: [...sold] }],
    invariants: linodeInvariants(books),
    furnish: () => site.furnish(),
    connect: (line) => site.connect(line),
    cheapest({ cpu, memory }) {
      const fitting = prices.filter((plan) => plan.vcpus >= cpu && plan.memory * 2 ** 20 >= memory);
      return fitting.length === 0 ? undefined : Math.min(...fitting.map(({ price }) => price.hourly));
    },
    close() {
      books.close();
      void site.api.close();
    },
  };
}

/** The account, and who is in it. */
class Site {
  readonly api: LinodeApi;
  readonly books: LinodeBooks;
  readonly mishaps: Mishaps<keyof typeof mishaps>;
  readonly mode: Mode;
  readonly #parts: StoredCloudParts;
  #cluster = 0;
  #neighbour = 0;
  #made = 0;

  constructor(parts: StoredCloudParts, mode: Mode) {
    const { clock, random } = parts;
    this.mode = mode;
    this.#parts = parts;
    this.mishaps = new Mishaps(parts.coverage, 'cloud/', mishaps);
    this.api = new LinodeApi({
      clock,
      random,
      tokens: { [tokens.karpenter]: { scope: 'write' }, [tokens.people]: { scope: 'write' } },
      delays: { installMs: 10 * second, listMs: 10 * second },
      // Less than it takes a new process to start: of what nobody can know nobody is accused.
      consistency: { listLagMs: oneOf(random, [0, 0, 2 * second, 4 * second]) },
      machines: this.#joining(),
    });
    this.books = new LinodeBooks(this.api, clock);
  }

  /** The cluster, one of somebody else that another autoscaler works for, and a Linode of a person. */
  async furnish(): Promise<void> {
    const { karpenter } = this.#parts;
    await this.people('POST', '/linode/instances', {
      type: 'g6-nanode-1',
      region,
      label: 'pet',
      image: 'linode/ubuntu22.04',
      root_pass: 'aVery-long-9-password',
    });
    if (this.mode !== 'instance') {
      this.#neighbour = await this.#makeCluster('neighbour');
      this.#cluster = await this.#makeCluster(clusterName);
      this.books.own(this.#cluster);
    } else await this.#publish();
    for (let i = 0; i < 2; i++) await this.neighbourBuys();
    await karpenter.resource(linodeNodeClassKind).create({
      apiVersion: apiVersionOf(linodeNodeClassKind),
      kind: linodeNodeClassKind.kind,
      metadata: { name: 'default' },
      spec: { image: 'linode/ubuntu22.04' },
    });
  }

  /** A request of a person, past every fault. */
  async people<T>(method: string, path: string, body?: object): Promise<T> {
    const headers = { authorization: `Bearer ${tokens.people}`, 'content-type': 'application/json' };
    const request = { method, path: `/v4beta${path}`, headers, ...(body ? { body: JSON.stringify(body) } : {}) };
    const answer = await this.books.byPeople(() => this.api.handle(request));
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
    return JSON.parse(answer.body) as T;
  }

  /** Another autoscaler in the account buys a machine. */
  async neighbourBuys(): Promise<void> {
    const { random } = this.#parts;
    const uid = random.uuid().replaceAll('-', '');
    const tags = [`karpenter.sh/uid=${uid}`, `karpenter.sh/nodeclaim=theirs-${++this.#made}`];
    if (this.mode !== 'instance') {
      const own = [...tags, 'lke-cluster-name=neighbour', 'karpenter.k8s.linode/lke-managed=true'];
      await this.people('POST', `/lke/clusters/${this.#neighbour}/pools`, {
        type: 'g6-standard-4',
        count: 1,
        tags: own,
      });
      return;
    }
    await this.people('POST', '/linode/instances', {
      type: 'g6-standard-4',
      region,
      label: `theirs-${this.#made}`,
      image: 'linode/ubuntu22.04',
      root_pass: 'aVery-long-9-password',
      tags: [...tags, 'karpenter-cluster=00000000000000000000000000000000'],
    });
  }

  /** The LKE cluster that is ours. */
  get cluster(): number {
    return this.#cluster;
  }

  connect(line: Line): ReturnType<SimulatedCloud['connect']> {
    const { clusters, clock, random, log, metrics } = line;
    const { karpenter, workload } = clusters;
    const door = {
      handle: (request: ApiRequest, signal?: AbortSignal): Promise<ApiResponse> =>
        line.call(`${request.method} ${request.path}`, () => this.#handle(request, signal)),
    };
    const configuration = this.#configuration();
    const parts = assembleLinode({ door, configuration, karpenter, workload, clock, random, log, metrics });
    return { provider: parts.provider, runnables: parts.runnables };
  }

  #configuration(): LinodeConfiguration {
    return {
      token: tokens.karpenter,
      url: 'https://api.linode.com',
      apiVersion: 'v4beta',
      ca: '',
      timeoutMs: 10 * second,
      debug: false,
      region: this.mode === 'instance' ? region : '',
      mode: this.mode === 'instance' ? 'instance' : 'lke',
      clusterName,
      clusterEndpoint: endpoint,
      createDeadlineMs: 10 * second,
      retryDelayMs: 2 * second,
      sharePools: this.mode === 'shared',
      memoryOverhead: 0.075,
      lookUp: true,
    };
  }

  /** Every call of the autoscaler passes here. */
  async #handle(request: ApiRequest, signal?: AbortSignal): Promise<ApiResponse> {
    const { clock, random } = this.#parts;
    // As over a network: never in the caller's own turn.
    await clock.sleep(between(random, 20, 120), signal);
    if (this.mishaps.happens('linode-unreachable')) throw new ConnectionLost();
    if (this.mishaps.happens('linode-throttled')) return refusal(429, 'Too many requests', { 'retry-after': '5' });
    if (this.mishaps.happens('linode-failing')) return refusal(oneOf(random, [500, 502, 503]), 'Internal Server Error');
    this.books.asks(request);
    const answer = await this.api.handle(request);
    if (this.mishaps.happens('linode-slow')) await clock.sleep(15 * second, signal);
    if (this.mishaps.happens('linode-lost-response')) throw new ConnectionLost();
    if (this.mishaps.happens('linode-truncated'))
      return { ...answer, body: answer.body.slice(0, answer.body.length / 2) };
    if (this.mishaps.happens('linode-malformed'))
      return { ...answer, headers: { ...answer.headers, 'content-type': 'text/html' }, body: '<html>nginx</html>' };
    return answer;
  }

  /** Machines of ours become Nodes, those of others never do. */
  #joining(): MachineHook {
    const { workload, clock } = this.#parts;
    const hook = joinCluster({ workload, clock, initializeMs: second });
    const absent = new Set<number>();
    return {
      booted: async (machine) => {
        if (this.books.isStranger(machine.id) || absent.has(machine.id)) return;
        if (this.mishaps.happens('linode-never-joins')) {
          absent.add(machine.id);
          return;
        }
        if (this.mishaps.happens('linode-joins-late')) await clock.sleep(180 * second);
        await hook.booted(machine);
      },
      stopped: (machine) => hook.stopped?.(machine),
      wiped: (machine) => hook.wiped?.(machine),
      gone: async (machine) => {
        await this.#silence(machine.providerId);
        await hook.gone(machine);
      },
    };
  }

  /** Whoever holds a Node whose Linode is gone must see that nobody is behind it. */
  async #silence(providerID: string): Promise<void> {
    const { store, workload, clock } = this.#parts;
    const nodes = store.collection(collections.nodes).list().items as readonly Node[];
    const node = nodes.find(({ spec }) => spec?.providerID === providerID);
    if (node) await silence(workload, clock, node.metadata.name ?? '');
  }

  async #makeCluster(label: string): Promise<number> {
    const node_pools = [{ type: 'g6-standard-1', count: 1 }];
    const cluster = { label, region, k8s_version: '1.34', tier: 'standard', node_pools };
    return (await this.people<{ id: number }>('POST', '/lke/clusters', cluster)).id;
  }

  /** What machines need to know of a cluster that they join. */
  async #publish(): Promise<void> {
    const { workload, clock, random } = this.#parts;
    const { authority } = makeCertificate(clock, random, ['kubernetes'], ['10.0.0.1']);
    const data = Buffer.from(authority).toString('base64');
    const cluster = { server: endpoint, 'certificate-authority-data': data };
    const kubeconfig = { apiVersion: 'v1', kind: 'Config', clusters: [{ name: '', cluster }], users: [], contexts: [] };
    await workload.resource(kinds.ConfigMap).create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'cluster-info', namespace: 'kube-public' },
      data: { kubeconfig: JSON.stringify(kubeconfig) },
    });
  }
}

function refusal(status: number, reason: string, more: Readonly<Record<string, string>> = {}): ApiResponse {
  return {
    status,
    headers: { 'content-type': 'application/json', ...more },
    body: JSON.stringify({ errors: [{ reason }] }),
  };
}

function faults(site: Site, { coverage }: StoredCloudParts): Fault[] {
  const { api, mode } = site;
  const all: Fault[] = [
    ...site.mishaps.faults(),
    {
      name: 'cloud/linode-sold-out',
      weight: 3,
      inject(random) {
        // Never all of them: pods must run in the end, and a fault must end.
        const some = sold.filter(() => chance(random, 0.5));
        for (const plan of some) {
          api.capacity.set(plan, region, 0);
          if (chance(random, 0.5)) api.capacity.hide(plan, region);
        }
        if (some.length > 0) coverage.count('fault', 'cloud/linode-sold-out');
        return () => {
          for (const plan of some) api.capacity.clear(plan, region);
        };
      },
    },
    {
      name: 'cloud/linode-maintenance',
      weight: 1,
      inject() {
        api.maintenance = true;
        coverage.count('fault', 'cloud/linode-maintenance');
        return () => {
          api.maintenance = false;
        };
      },
    },
    {
      name: 'cloud/linode-dies',
      weight: 2,
      async inject(random) {
        const linode = pick(random, ours(site));
        if (!linode || api.maintenance) return () => undefined;
        await site.people('DELETE', `/linode/instances/${linode.id}`);
        coverage.count('fault', 'cloud/linode-dies');
        return () => undefined;
      },
    },
  ];
  if (mode === 'instance') return all;
  return [
    ...all,
    {
      name: 'cloud/linode-stalls',
      weight: 1,
      inject(random) {
        const plan = oneOf(random, sold);
        api.capacity.stall(plan, region);
        coverage.count('fault', 'cloud/linode-stalls');
        return () => api.capacity.clear(plan, region);
      },
    },
  ];
}

/** Those that are there, and of ours. */
function ours({ books }: Site): { readonly id: number; readonly pool?: number }[] {
  return books.alive().filter(({ claim, deletingAt }) => claim !== undefined && deletingAt === undefined);
}

function happenings(site: Site): Happening[] {
  const { api, mode } = site;
  const act = async (random: Random, pathOf: (linode: { id: number; pool?: number }) => [string, string]) => {
    const linode = pick(random, ours(site));
    if (!linode || api.maintenance) return false;
    const [method, path] = pathOf(linode);
    try {
      await site.people(method, path);
      return true;
    } catch (error) {
      // A person comes too early as well: it boots still.
      if (String(error).includes('Linode busy.')) return false;
      throw error;
    }
  };
  const all: Happening[] = [
    {
      name: 'linode/neighbour-buys',
      weight: 0.3,
      async happen() {
        if (api.maintenance) return false;
        await site.neighbourBuys().catch(() => undefined);
        return true;
      },
    },
    {
      name: 'linode/rebooted',
      weight: 0.4,
      reach: 'machine',
      happen: (random) => act(random, ({ id }) => ['POST', `/linode/instances/${id}/reboot`]),
    },
  ];
  if (mode === 'instance') return all;
  return [
    ...all,
    {
      name: 'linode/pool-deleted',
      weight: 0.4,
      reach: 'machine',
      happen: (random) => act(random, ({ pool }) => ['DELETE', `/lke/clusters/${site.cluster}/pools/${pool}`]),
    },
  ];
}
