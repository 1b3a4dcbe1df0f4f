// SPDX-License-Identifier: Apache-2.0
// The life of Linodes: provisioned, booted, rebooted, deleted, each in its time, and who is told of it.
import { messageOf } from '../../../base/errors.ts';
import type { Logger } from '../../../runtime/logging.ts';
import type { Account } from './account.ts';
import type { Plan } from './plans.ts';
import type { Instance, InstanceStatus, Interface, Taint } from './records.ts';
import type { Region } from './regions.ts';
import { instanceView } from './views.ts';

/** A Linode as whoever brings it to life sees it. */
export interface Machine {
  readonly id: number;
  readonly label: string;
  readonly providerId: string;
  readonly region: string;
  readonly plan: Plan;
  readonly image: string | null;
  readonly tags: readonly string[];
  readonly ipv4: string;
  readonly ipv6: string;
  readonly hostUuid: string;
  /** Its address in a VPC. */
  readonly vpcIp?: string;
  /** What cloud-init runs, decoded. */
  readonly userData?: string;
  readonly lke?: {
    readonly clusterId: number;
    readonly tier: 'standard' | 'enterprise';
    readonly version: string;
    readonly poolId: number;
    readonly nodeId: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly taints: readonly Taint[];
  };
}

/** Who is told of the life of machines. Calls for one machine come one after the other. */
export interface MachineHook {
  /** It runs: for the first time, or again. */
  booted(machine: Machine): void | Promise<void>;
  /** It no longer runs, and may again. */
  stopped?(machine: Machine): void | Promise<void>;
  /** Its disks are made anew: nothing it knew is left. */
  wiped?(machine: Machine): void | Promise<void>;
  /** It is being deleted. */
  gone(machine: Machine): void | Promise<void>;
}

export interface LaunchSpec {
  readonly label: string;
  readonly region: Region;
  readonly plan: Plan;
  readonly image: string | null;
  readonly tags: readonly string[];
  readonly boot: boolean;
  readonly backups?: boolean;
  readonly diskEncryption?: string;
  readonly userData?: string;
  readonly groupId?: number;
  readonly firewalls?: readonly number[];
  readonly lke?: Instance['lke'];
  readonly interfaceGeneration?: Instance['interfaceGeneration'];
  readonly interfaces?: readonly Interface[];
  readonly address?: string;
  readonly privateAddress?: boolean;
  readonly swapSize?: number;
  readonly kernel?: string;
  readonly maintenancePolicy?: string;
}

export class Machines {
  readonly #account: Account;
  readonly #hook: MachineHook | undefined;
  readonly #log: Logger | undefined;
  /** The last call for each machine. */
  readonly #calls = new Map<number, Promise<void>>();
  /** What LKE does about its own. */
  onRunning: (instance: Instance) => void = () => undefined;
  onGone: (instance: Instance) => void = () => undefined;

  constructor(account: Account, hook: MachineHook | undefined, log: Logger | undefined) {
    this.#account = account;
    this.#hook = hook;
    this.#log = log;
  }

  /** Makes a Linode; capacity is the caller's business. */
  launch(spec: LaunchSpec): Instance {
    const account = this.#account;
    const now = account.clock.now();
    const address = account.address();
    const nat = spec.interfaces?.find((entry) => entry.nat !== undefined)?.nat;
    const instance: Instance = {
      id: account.nextId('instance'),
      label: spec.label,
      status: 'provisioning',
      created: now,
      updated: now,
      plan: spec.plan,
      image: spec.image,
      region: spec.region,
      tags: [...spec.tags],
      ipv4: [
        spec.address ?? address.ipv4,
        ...(nat !== undefined && spec.interfaceGeneration === 'linode' ? [nat] : []),
        ...(spec.privateAddress ? [address.private] : []),
      ],
      ipv6: address.ipv6,
      backups: spec.backups ?? false,
      diskEncryption: spec.diskEncryption ?? 'enabled',
      ...(spec.userData === undefined ? {} : { userData: spec.userData }),
      ...(spec.groupId === undefined ? {} : { groupId: spec.groupId }),
      firewalls: new Set(spec.firewalls),
      ...(spec.lke ? { lke: spec.lke } : {}),
      interfaceGeneration: spec.interfaceGeneration ?? 'legacy_config',
      maintenancePolicy: spec.maintenancePolicy ?? 'linode/migrate',
      hostUuid: account.hex(40),
      watchdog: true,
      alerts: {},
      configs: [],
      disks: [],
      interfaces: spec.interfaceGeneration === 'linode' ? [...(spec.interfaces ?? [])] : [],
      epoch: 0,
    };
    account.instances.set(instance.id, instance);
    account.everCreated++;
    this.touch(instance, 'created');
    account.event('linode_create', entityOf(instance));
    this.#then(instance, account.delays.provisionMs, () => {
      if (!spec.boot) this.#become(instance, 'offline');
      else if (spec.lke) this.#install(instance);
      else this.boot(instance);
    });
    return instance;
  }

  /** A node of LKE is off until it has its disks. */
  #install(instance: Instance): void {
    this.#become(instance, 'offline');
    this.#then(instance, this.#account.delays.installMs, () => this.boot(instance));
  }

  boot(instance: Instance): void {
    this.#become(instance, 'booting');
    this.#then(instance, this.#account.delays.bootMs, () => {
      this.#become(instance, 'running');
      this.#tell(instance, 'booted');
      this.onRunning(instance);
    });
  }

  shutDown(instance: Instance): void {
    this.#become(instance, 'shutting_down');
    this.#tell(instance, 'stopped');
    this.#then(instance, this.#account.delays.shutdownMs, () => this.#become(instance, 'offline'));
  }

  /** Off and on again: by a person, or with another image or plan. */
  restart(instance: Instance, as: 'rebooting' | 'rebuilding' | 'resizing', boot = true): void {
    this.#become(instance, as);
    this.#tell(instance, 'stopped');
    if (as === 'rebuilding') this.#tell(instance, 'wiped');
    this.#then(instance, this.#account.delays.shutdownMs, () => {
      if (boot) this.boot(instance);
      else this.#become(instance, 'offline');
    });
  }

  /** It stays visible as `deleting` for a moment; all it held is free at once. */
  delete(instance: Instance): void {
    if (instance.status === 'deleting') return;
    const account = this.#account;
    this.#become(instance, 'deleting');
    account.event('linode_delete', entityOf(instance));
    account.capacity.giveBack(instance.plan.id, instance.region.id);
    this.#tell(instance, 'gone');
    this.onGone(instance);
    instance.firewalls.clear();
    instance.configs.length = 0;
    instance.interfaces.length = 0;
    delete instance.groupId;
    this.#then(instance, account.delays.deleteMs, () => {
      account.instances.delete(instance.id);
      account.history.instances.note(instance.id, undefined);
      account.changed({ kind: 'deleted', what: 'instance', id: instance.id });
    });
  }

  /** Something about it changed. */
  touch(instance: Instance, kind: 'created' | 'updated' = 'updated'): void {
    const account = this.#account;
    instance.updated = account.clock.now();
    account.history.instances.note(instance.id, instanceView(account, instance));
    account.changed({ kind, what: 'instance', id: instance.id });
  }

  machineOf(instance: Instance): Machine {
    const { lke } = instance;
    const pool = lke && this.#account.pools.get(lke.poolId);
    const cluster = lke && this.#account.clusters.get(lke.clusterId);
    const interfaces = [...instance.interfaces, ...instance.configs.flatMap((config) => config.interfaces)];
    const vpcIp = interfaces.find(({ purpose }) => purpose === 'vpc')?.address;
    return {
      id: instance.id,
      label: instance.label,
      providerId: `linode://${instance.id}`,
      region: instance.region.id,
      plan: instance.plan,
      image: instance.image,
      tags: [...instance.tags],
      ipv4: instance.ipv4[0]!,
      ipv6: instance.ipv6,
      hostUuid: instance.hostUuid,
      ...(vpcIp === undefined ? {} : { vpcIp }),
      ...(instance.userData === undefined ? {} : { userData: instance.userData }),
      ...(lke && pool && cluster
        ? {
            lke: {
              clusterId: cluster.id,
              tier: cluster.tier,
              version: pool.version ?? cluster.version,
              poolId: pool.id,
              nodeId: lke.nodeId,
              labels: pool.labels,
              taints: pool.taints,
            },
          }
        : {}),
    };
  }

  #become(instance: Instance, status: InstanceStatus): void {
    instance.status = status;
    instance.epoch++;
    this.touch(instance);
  }

  /** Later, unless it gets another order first. */
  #then(instance: Instance, ms: number, next: () => void): void {
    const { epoch } = instance;
    this.#account.later(ms, () => {
      if (instance.epoch === epoch) next();
    });
  }

  #tell(instance: Instance, what: keyof MachineHook): void {
    const hook = this.#hook;
    if (!hook?.[what]) return;
    const machine = this.machineOf(instance);
    const before = this.#calls.get(instance.id) ?? Promise.resolve();
    const call = before
      .then(() => hook[what]?.(machine))
      .catch((error: unknown) => {
        this.#log?.error('a machine could not be brought to life', {
          linode: machine.id,
          what,
          error: messageOf(error),
        });
      });
    this.#calls.set(instance.id, call);
    void call.then(() => {
      if (this.#calls.get(instance.id) === call) this.#calls.delete(instance.id);
    });
  }
}

function entityOf({ id, label }: Instance): { id: number; type: string; label: string; url: string } {
  return { id, type: 'linode', label, url: `/v4/linode/instances/${id}` };
}
