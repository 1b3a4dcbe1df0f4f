// SPDX-License-Identifier: Apache-2.0
// The management cluster: which version of Cluster API it serves, its Machines and what they are made by, kept in
// memory. It may be down, or not have the kinds yet; whoever needs it is told, everybody else goes on.
import type { Clock } from '../../base/clock.ts';
import { KarpenterError, messageOf } from '../../base/errors.ts';
import { isForbidden, isNotFound } from '../../kube/api-error.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { kinds as coreKinds } from '../../kube/kinds.ts';
import type { KubeObject, ResourceType, UnstructuredObject } from '../../kube/object.ts';
import type { Cluster } from '../../runtime/clusters.ts';
import type { Logger } from '../../runtime/logging.ts';
import { type Gauge, Metrics } from '../../runtime/metrics.ts';
import type { MachineHealthCheck } from './health-checks.ts';
import {
  type CapiKinds,
  capiGroup,
  capiKinds,
  groupOf,
  isOwnedSet,
  type Machine,
  type ObjectReference,
  providerIDOf,
  readableVersions,
  type Scalable,
  type ScalableKind,
  type Template,
} from './kinds.ts';
import { clusterApiMetrics } from './metrics.ts';
import { annotations, capi, memberLabel } from './names.ts';
import { asScalable, isTemplateKey, templateKey, templateKindOf } from './orphans.ts';

/** The management cluster cannot be used now; trying again later may help. */
export class HubUnavailableError extends KarpenterError {
  constructor(reason: string, options: { cause?: unknown } = {}) {
    super('KRP_HUB_UNAVAILABLE', `the management cluster cannot be used: ${reason}`, options);
  }
}

export interface HubOptions {
  readonly cluster: Cluster;
  /** Where NodeClaims live: its identity tells ours from those of other clusters on the same management cluster. */
  readonly karpenter: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: Metrics;
  /** Keeps to one namespace, where the credentials allow no more. */
  readonly namespace?: string;
}

/** How long a template that was read counts as current. */
const templateTtlMs = 60_000;
const probeMs = 60_000;
const retryMs = 5000;
/** How long a question waits for the first reading. */
const readyWaitMs = 3000;

const infrastructureGroup = 'infrastructure.cluster.x-k8s.io';
const byProviderID = 'clusterApiProviderID';
const byClaim = 'clusterApiClaim';
const byOwner = 'clusterApiOwner';

/** `MachineDeployment/ns/name`: the key of what makes Machines. */
export function memberKey(kind: ScalableKind, object: KubeObject): string {
  return `${kind}/${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`;
}

/** The keys of what made a Machine. */
export function ownersOf({ metadata }: Machine): string[] {
  const { namespace = '' } = metadata;
  const deployment = metadata.labels?.[capi.deploymentName];
  const set = metadata.ownerReferences?.find(({ kind, controller }) => kind === 'MachineSet' && controller)?.name;
  return [
    ...(deployment ? [`MachineDeployment/${namespace}/${deployment}`] : []),
    ...(set ? [`MachineSet/${namespace}/${set}`] : []),
    ...(deployment || set ? [] : templatesOf(metadata)),
  ];
}

/** What a Machine without an owner was made from. */
function templatesOf({ annotations: own, ownerReferences = [] }: KubeObject['metadata']): string[] {
  const key = own?.[annotations.member];
  return key !== undefined && isTemplateKey(key) && ownerReferences.every(({ controller }) => !controller) ? [key] : [];
}

/** The management cluster as it was last seen. */
export interface HubView {
  readonly kinds: CapiKinds;
  readonly deployments: Informer<Scalable>;
  readonly sets: Informer<Scalable>;
  readonly machines: Informer<Machine>;
  /** Not waited for: they may be missing. */
  readonly healthChecks: Informer<MachineHealthCheck>;
}

/** The management cluster. Runs as long as the program does. */
export class Hub {
  readonly name = 'cluster-api.hub';
  readonly cluster: Cluster;
  readonly #options: HubOptions;
  readonly #reachable: Gauge<never>;
  readonly #listeners = new Set<() => void>();
  readonly #templates = new Map<string, { readonly until: number; readonly read: Promise<Template | undefined> }>();
  readonly #kinds = new Map<string, Promise<ResourceType | undefined>>();
  /** Changes with every change of a MachineDeployment or MachineSet. */
  version = 0;
  #templateInformers: readonly Informer<UnstructuredObject>[] | undefined;
  #view: HubView | undefined;
  #identity: string | undefined;
  #isEmpty = false;
  #problem: string | undefined = 'it has not been asked yet';

  constructor(options: HubOptions) {
    this.#options = options;
    this.cluster = options.cluster;
    this.#reachable = (options.metrics ?? new Metrics()).gauge(clusterApiMetrics.hubReachable);
  }

  /** Whether it was asked and has none of the kinds: then it has no Machines either. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  /** Why it cannot be used; undefined when it can. */
  get problem(): string | undefined {
    if (this.#problem !== undefined) return this.#problem;
    const view = this.#view;
    const waiting = [view?.deployments, view?.sets, view?.machines].filter((informer) => !informer?.hasSynced);
    return waiting.length === 0 ? undefined : 'its Machines have not been read yet';
  }

  /** What is known of it. Throws HubUnavailableError before the first reading; later, what was read last. */
  get view(): HubView {
    const view = this.#view;
    if (!view) throw new HubUnavailableError(this.#problem ?? 'it has not been read yet');
    if (!(view.deployments.hasSynced && view.sets.hasSynced && view.machines.hasSynced)) {
      throw new HubUnavailableError('its Machines have not been read yet');
    }
    return view;
  }

  /** Resolves when it can be used, soon after a start. Throws HubUnavailableError, and the signal's reason. */
  async ready(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { clock } = this.#options;
    const until = clock.monotonic() + readyWaitMs;
    while (!this.#isReadable()) {
      const left = until - clock.monotonic();
      if (left <= 0) throw new HubUnavailableError(this.problem ?? 'it has not been read yet');
      await this.#next(left, signal);
      signal.throwIfAborted();
    }
  }

  #isReadable(): boolean {
    const view = this.#view;
    return (
      this.#identity !== undefined &&
      view?.deployments.hasSynced === true &&
      view.sets.hasSynced &&
      view.machines.hasSynced
    );
  }

  /** Resolves at the next change, after a while, or when the signal aborts. */
  async #next(withinMs: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const forget = this.onChange(resolve);
    const timer = this.#options.clock.after(withinMs, resolve);
    const onAbort = (): void => resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    await promise;
    forget();
    timer.cancel();
    signal.removeEventListener('abort', onAbort);
  }

  /** Which cluster's NodeClaims are ours. Throws HubUnavailableError before it is known. */
  get identity(): string {
    if (this.#identity === undefined) throw new HubUnavailableError(this.#problem ?? 'it has not been read yet');
    return this.#identity;
  }

  /** Calls back when something changed that members or Machines follow from. Returns a function that ends it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Asks which version is served, follows it, and goes on asking whether it still answers. */
  async start(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    while (!signal.aborted) {
      await this.#probe(signal);
      if (this.#view) {
        const { deployments, sets, machines } = this.#view;
        await Promise.all([deployments, sets, machines].map((informer) => informer.waitForSync(signal))).catch(
          (error: unknown) => log.debug('the management cluster was not read', { error: messageOf(error) }),
        );
        this.#changed();
      }
      await clock.sleep(this.#problem === undefined ? probeMs : retryMs, signal).catch(() => undefined);
    }
  }

  /** The Machines that carry a NodeClaim's UID; more than one only while something is being repaired. */
  machinesOfClaim(uid: string): Machine[] {
    return uid === '' ? [] : this.view.machines.byIndex(byClaim, uid);
  }

  machineByProviderID(providerID: string): Machine | undefined {
    return providerID === '' ? undefined : this.view.machines.byIndex(byProviderID, providerID)[0];
  }

  machinesOf(key: string): Machine[] {
    return this.view.machines.byIndex(byOwner, key);
  }

  /** What MachineHealthChecks there are; none before the first reading. */
  healthChecks(): readonly MachineHealthCheck[] {
    return this.#view?.healthChecks.list() ?? [];
  }

  /** Everything that can be scaled; nothing before the first reading. */
  scalables(): readonly Scalable[] {
    const { deployments, sets } = this.#view ?? {};
    return [...(deployments?.list() ?? []), ...(sets?.list() ?? []).filter((set) => !isOwnedSet(set))];
  }

  /** The keys of all that can be scaled: a MachineSet of a MachineDeployment cannot. */
  scalableKeys(): string[] {
    const { deployments, sets } = this.view;
    const own = sets.list().filter((set) => !isOwnedSet(set));
    return [
      ...deployments.list().map((object) => memberKey('MachineDeployment', object)),
      ...own.map((object) => memberKey('MachineSet', object)),
    ];
  }

  /** The MachineDeployment or MachineSet under a member key. */
  scalable(key: string): Scalable | undefined {
    const [kind = '', namespace = '', name = ''] = key.split('/');
    if (isTemplateKey(key)) {
      const informer = this.#templateInformers?.find(({ type }) => type.kind === templateKindOf(key));
      const template = informer?.get(`${namespace}/${name}`);
      return template && asScalable(informer!.type, template);
    }
    return (kind === 'MachineSet' ? this.view.sets : this.view.deployments).get(`${namespace}/${name}`);
  }

  /** A template, at most a minute old; undefined when there is none or it may not be read. */
  template(ref: ObjectReference, namespace: string, signal: AbortSignal): Promise<Template | undefined> {
    const group = groupOf(ref);
    if (!ref.kind || !ref.name || group === '') return Promise.resolve(undefined);
    const key = `${group}/${ref.kind}/${ref.namespace ?? namespace}/${ref.name}`;
    const now = this.#options.clock.monotonic();
    const known = this.#templates.get(key);
    if (known && known.until > now) return known.read;
    const read = this.#readTemplate(ref, namespace, signal);
    this.#templates.set(key, { until: now + templateTtlMs, read });
    read.catch(() => this.#templates.delete(key));
    return read;
  }

  async #readTemplate(ref: ObjectReference, namespace: string, signal: AbortSignal): Promise<Template | undefined> {
    const type = await this.kindOf(groupOf(ref), ref.kind ?? '', signal);
    if (!type) return undefined;
    const client = this.cluster.client.resource(type as ResourceType<Template>);
    try {
      return await client.get(ref.name ?? '', { namespace: ref.namespace ?? namespace, signal });
    } catch (error) {
      if (isNotFound(error) || isForbidden(error)) return undefined;
      throw error;
    }
  }

  /** A kind of another group in the version that the management cluster prefers; undefined when it is not served. */
  kindOf(group: string, kind: string, signal: AbortSignal): Promise<ResourceType | undefined> {
    const key = `${group}/${kind}`;
    const known = this.#kinds.get(key);
    if (known) return known;
    const found = this.#kindsIn(group, signal).then((types) => types.find((type) => type.kind === kind));
    this.#kinds.set(key, found);
    // What was not found may be installed later.
    const forget = (): void => void this.#kinds.delete(key);
    found.then((type) => type === undefined && forget(), forget);
    return found;
  }

  async #kindsIn(group: string, signal: AbortSignal): Promise<ResourceType[]> {
    const [version] = await this.#discover(group, signal);
    if (version === undefined) return [];
    const path = `/apis/${group}/${version}`;
    const { resources = [] } = (await this.cluster.client.request({ method: 'GET', path, signal })) as {
      resources?: { name: string; kind: string; namespaced: boolean }[];
    };
    return resources
      .filter(({ name }) => !name.includes('/'))
      .map(({ name, kind, namespaced }) => ({ group, version, kind, plural: name, namespaced }));
  }

  /**
   * The infrastructure templates that are members, read as if something scaled them. Followed from the first time they are
   * asked for; those that may not be listed are not there.
   */
  async templates(signal: AbortSignal): Promise<[key: string, template: Scalable][]> {
    if (!this.#templateInformers) await this.#followTemplates(signal);
    const all: [string, Scalable][] = [];
    for (const informer of this.#templateInformers ?? []) {
      for (const template of informer.list()) {
        all.push([templateKey(informer.type.kind, template), asScalable(informer.type, template)]);
      }
    }
    return all;
  }

  async #followTemplates(signal: AbortSignal): Promise<void> {
    const { clock, namespace } = this.#options;
    const types = (await this.#kindsIn(infrastructureGroup, signal)).filter(({ kind }) =>
      kind.endsWith('MachineTemplate'),
    );
    const selection = { labelSelector: memberLabel, tolerateMissing: true, ...(namespace ? { namespace } : {}) };
    const informers = types.map((type) =>
      this.cluster.informers.get(type as ResourceType<UnstructuredObject>, selection),
    );
    const changed = (): void => {
      this.version++;
      this.#changed();
    };
    for (const informer of informers) informer.addHandler({ added: changed, updated: changed, deleted: changed });
    this.#templateInformers = informers;
    const synced = Promise.all(informers.map((informer) => informer.waitForSync(signal))).catch(() => undefined);
    await Promise.race([synced, clock.sleep(readyWaitMs, signal).catch(() => undefined)]);
  }

  /** The versions of a group that are served, the preferred one first; none when the group is not there. */
  async #discover(group: string, signal: AbortSignal): Promise<string[]> {
    try {
      const body = (await this.cluster.client.request({ method: 'GET', path: `/apis/${group}`, signal })) as {
        preferredVersion?: { version: string };
        versions?: { version: string }[];
      };
      const all = (body.versions ?? []).map(({ version }) => version);
      const first = body.preferredVersion?.version;
      return first === undefined ? all : [first, ...all.filter((version) => version !== first)];
    } catch (error) {
      if (isNotFound(error)) return [];
      throw error;
    }
  }

  async #probe(signal: AbortSignal): Promise<void> {
    try {
      this.#identity ??= await this.#readIdentity(signal);
      const served = await this.#discover(capiGroup, signal);
      this.#isEmpty = served.length === 0;
      const version = readableVersions.find((candidate) => served.includes(candidate));
      if (version === undefined) {
        const what = served.length === 0 ? 'no version' : `only ${served.join(', ')}`;
        return this.#setProblem(`it serves ${what} of ${capiGroup}; ${readableVersions.join(' or ')} is needed`);
      }
      if (this.#view?.kinds.version !== version) this.#follow(version);
      this.#setProblem(undefined);
    } catch (error) {
      if (!signal.aborted) this.#setProblem(messageOf(error));
    }
  }

  async #readIdentity(signal: AbortSignal): Promise<string> {
    const { metadata } = await this.#options.karpenter.resource(coreKinds.Namespace).get('kube-system', { signal });
    return metadata.uid!;
  }

  #follow(version: string): void {
    const kinds = capiKinds(version);
    const { informers } = this.cluster;
    const { namespace } = this.#options;
    const selection = namespace === undefined ? {} : { namespace };
    const machines = informers.get(kinds.machine, selection);
    machines.addIndex(byProviderID, providerIDOf);
    machines.addIndex(byClaim, ({ metadata }) => metadata.annotations?.[annotations.claimUid]);
    machines.addIndex(byOwner, ownersOf);
    const view: HubView = {
      kinds,
      deployments: informers.get(kinds.machineDeployment, selection),
      sets: informers.get(kinds.machineSet, selection),
      machines,
      healthChecks: informers.get(kinds.machineHealthCheck, { ...selection, tolerateMissing: true }),
    };
    const changed = (): void => this.#changed();
    const scaled = (): void => {
      this.version++;
      changed();
    };
    machines.addHandler({ added: changed, updated: changed, deleted: changed });
    for (const informer of [view.deployments, view.sets]) {
      informer.addHandler({ added: scaled, updated: scaled, deleted: scaled });
    }
    this.#view = view;
    this.#options.log.info('following Cluster API', { version });
  }

  #setProblem(problem: string | undefined): void {
    this.#reachable.set({}, problem === undefined ? 1 : 0);
    if (problem === this.#problem) return;
    if (problem !== undefined) this.#options.log.warn('the management cluster cannot be used', { error: problem });
    this.#problem = problem;
    this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
