// SPDX-License-Identifier: Apache-2.0
// A cloud that this process knows and cannot use, for want of credentials or settings. It buys nothing and gives nothing
// up: its NodeClasses say what is missing, NodePools that refer to them are not ready, and machines it made are left.
import { type Conditioned, falseCondition, readyCondition, setCondition } from '../api/conditions.ts';
import { commonLabelSet } from '../api/labels.ts';
import type { Clock } from '../base/clock.ts';
import { KarpenterError } from '../base/errors.ts';
import { ignoreNotFound } from '../kube/api-error.ts';
import type { KubeObject, ResourceType } from '../kube/object.ts';
import { formatTime } from '../kube/time.ts';
import type { Cluster } from '../runtime/clusters.ts';
import { Controller } from '../runtime/controller.ts';
import type { Logger } from '../runtime/logging.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { NodeClassNotReadyError } from './errors.ts';
import type { CloudProvider, Instance, InstanceType } from './provider.ts';

/** Something was asked of a cloud that is not configured. It may succeed after a restart with the right settings. */
export class ProviderUnconfiguredError extends KarpenterError {
  constructor(name: string, problem: string) {
    super('KRP_PROVIDER_UNCONFIGURED', `provider ${name} is not configured: ${problem}`);
  }
}

/** Stands in for the cloud. Nothing can be launched; nothing counts as gone, because nobody can look. */
export class UnconfiguredProvider implements CloudProvider {
  readonly name: string;
  readonly nodeClasses: readonly [ResourceType<KubeObject>];
  readonly labels = commonLabelSet;
  readonly repairPolicies = [];
  readonly #problem: string;

  constructor(name: string, nodeClass: ResourceType<KubeObject>, problem: string) {
    this.name = name;
    this.nodeClasses = [nodeClass];
    this.#problem = problem;
  }

  create(): Promise<Instance> {
    return Promise.reject(new NodeClassNotReadyError(this.#error().message));
  }

  delete(): Promise<void> {
    return Promise.reject(this.#error());
  }

  get(): Promise<Instance> {
    return Promise.reject(this.#error());
  }

  /** None that can be seen. Whoever takes that for a loss asks `get` before it acts. */
  list(): Promise<readonly Instance[]> {
    return Promise.resolve([]);
  }

  instanceTypes(): Promise<readonly InstanceType[]> {
    return Promise.reject(this.#error());
  }

  driftReason(): Promise<string> {
    return Promise.resolve('');
  }

  #error(): ProviderUnconfiguredError {
    return new ProviderUnconfiguredError(this.name, this.#problem);
  }
}

export interface UnconfiguredReporterOptions {
  readonly name: string;
  readonly nodeClass: ResourceType<KubeObject>;
  readonly problem: string;
  /** Where its NodeClasses live. */
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** The controller `<name>.unconfigured`: Ready is False on every NodeClass of the cloud, with what is missing. */
export function unconfiguredReporter(options: UnconfiguredReporterOptions): Controller {
  const { name, nodeClass, problem, cluster, clock, log, metrics } = options;
  const nodeClasses = cluster.informers.get(nodeClass, { tolerateMissing: true });
  const notReady = falseCondition(readyCondition, 'ProviderNotConfigured', problem);
  const types = { root: readyCondition, dependents: [] };
  return new Controller({
    name: `${name}.unconfigured`,
    kind: nodeClass.kind,
    clock,
    log,
    metrics,
    maxConcurrent: 1,
    reconciler: {
      async reconcile(key, signal) {
        const found = nodeClasses.get(key) as (KubeObject & Conditioned) | undefined;
        if (!found || found.metadata.deletionTimestamp !== undefined) return;
        const conditions = setCondition(types, found, notReady, formatTime(clock.now()));
        if (conditions === found.status?.conditions) return;
        log.warn('provider is not configured', { provider: name, problem, [nodeClass.kind]: { name: key } });
        const { resourceVersion } = found.metadata;
        const patch = { metadata: { resourceVersion }, status: { conditions } };
        await ignoreNotFound(cluster.client.resource(nodeClass).patch(key, patch, { subresource: 'status', signal }));
      },
    },
  }).watch(nodeClasses);
}
