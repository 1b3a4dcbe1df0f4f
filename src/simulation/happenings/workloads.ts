// SPDX-License-Identifier: Apache-2.0
// What developers do: services arrive, grow, shrink, roll, crash and leave; jobs come and end.
import type { Random } from '../../base/random.ts';
import { ignoreNotFound } from '../../kube/api-error.ts';
import { type DaemonSet, type Deployment, kinds, type Pod, type StatefulSet } from '../../kube/kinds.ts';
import { collections } from '../collections.ts';
import type { Happening } from '../contract.ts';
import { between, chance, fewOf, pick } from '../draw.ts';
import { type Hands, namespace } from './hands.ts';
import { budgetOf, daemonSetOf, deploymentOf, jobOf, statefulSetOf } from './workload-objects.ts';

const here = { namespace };

export function workloadHappenings(hands: Hands): Happening[] {
  const { workload, facts, shape, terms } = hands;
  const { strays = 0.3 } = shape;
  const deployments = (): readonly Deployment[] => facts.list<Deployment>(collections.deployments);
  const statefulSets = (): readonly StatefulSet[] => facts.list<StatefulSet>(collections.statefulSets);
  /** How many pods are wanted, against what the scenario has in mind. */
  const fullness = (): number => {
    let wanted = 0;
    for (const { spec } of [...deployments(), ...statefulSets()]) wanted += spec?.replicas ?? 0;
    return wanted / shape.pods;
  };

  const scale = async (random: Random): Promise<boolean> => {
    const of = pick(random, deployments());
    if (!of) return false;
    const now = of.spec?.replicas ?? 0;
    // Towards what the scenario has in mind, more often than away from it.
    const up = chance(random, fullness() < 1 ? 0.75 : 0.25);
    const by = fewOf(random, 10);
    const replicas = Math.max(0, up ? now + by : now - by);
    await workload.resource(kinds.Deployment).updateScale(of.metadata.name!, replicas, here);
    return replicas !== now;
  };

  const arrive = async (random: Random): Promise<boolean> => {
    if (fullness() > 1 + strays) return false;
    const app = `app-${hands.next()}`;
    await workload.resource(kinds.Deployment).create(deploymentOf(random, app, terms));
    if (chance(random, 0.6)) await workload.resource(kinds.PodDisruptionBudget).create(budgetOf(random, app));
    return true;
  };

  const leave = async (random: Random): Promise<boolean> => {
    const of = pick(random, deployments());
    if (!of || fullness() < 1 - strays) return false;
    await workload.resource(kinds.Deployment).delete(of.metadata.name!, here);
    await ignoreNotFound(workload.resource(kinds.PodDisruptionBudget).delete(of.metadata.name!, here));
    return true;
  };

  const roll = async (random: Random): Promise<boolean> => {
    const of = pick(random, deployments());
    if (!of) return false;
    const annotations = { 'example.com/release': String(hands.next()) };
    const patch = { spec: { template: { metadata: { annotations } } } };
    await workload.resource(kinds.Deployment).patch(of.metadata.name!, patch, here);
    return true;
  };

  const crash = async (random: Random): Promise<boolean> => {
    const pods = facts.list<Pod>(collections.pods).filter((pod) => pod.metadata.namespace === namespace);
    const count = Math.min(pods.length, fewOf(random, 6));
    for (let i = 0; i < count; i++) {
      const { name } = pods[random.int(pods.length)]!.metadata;
      const gracePeriodSeconds = chance(random, 0.3) ? { gracePeriodSeconds: 0 } : {};
      await ignoreNotFound(workload.resource(kinds.Pod).delete(name!, { ...here, ...gracePeriodSeconds }));
    }
    return count > 0;
  };

  const stateful = async (random: Random): Promise<boolean> => {
    const all = statefulSets();
    const of = pick(random, all);
    if (!of || all.length < 3) {
      const app = `db-${hands.next()}`;
      await workload.resource(kinds.StatefulSet).create(statefulSetOf(random, app, terms));
      if (chance(random, 0.7)) await workload.resource(kinds.PodDisruptionBudget).create(budgetOf(random, app));
      return true;
    }
    if (all.length > 6) {
      await workload.resource(kinds.StatefulSet).delete(of.metadata.name!, here);
      await ignoreNotFound(workload.resource(kinds.PodDisruptionBudget).delete(of.metadata.name!, here));
      return true;
    }
    await workload.resource(kinds.StatefulSet).updateScale(of.metadata.name!, between(random, 0, 8), here);
    return true;
  };

  const job = async (random: Random): Promise<boolean> => {
    await workload.resource(kinds.Job).create(jobOf(random, `job-${hands.next()}`, terms));
    return true;
  };

  const daemons = async (random: Random): Promise<boolean> => {
    const all = facts.list<DaemonSet>(collections.daemonSets);
    const of = pick(random, all);
    if (of && all.length >= 3) {
      await workload.resource(kinds.DaemonSet).delete(of.metadata.name!, { namespace: 'kube-system' });
    } else await workload.resource(kinds.DaemonSet).create(daemonSetOf(random, `agent-${hands.next()}`));
    return true;
  };

  const budget = async (random: Random): Promise<boolean> => {
    const of = pick(random, deployments());
    if (!of) return false;
    const name = of.metadata.name!;
    const { spec } = budgetOf(random, name);
    const known = facts.get(collections.budgets, namespace, name);
    if (!known) await workload.resource(kinds.PodDisruptionBudget).create(budgetOf(random, name));
    else {
      const patch = { spec: { minAvailable: null, maxUnavailable: null, ...spec } };
      await workload.resource(kinds.PodDisruptionBudget).patch(name, patch, here);
    }
    return true;
  };

  return [
    { name: 'workload/scale', weight: 14, happen: scale },
    { name: 'workload/arrive', weight: 4, reach: 'service', happen: arrive },
    { name: 'workload/leave', weight: 3, reach: 'service', happen: leave },
    { name: 'workload/roll', weight: 4, reach: 'service', happen: roll },
    { name: 'workload/crash', weight: 4, happen: crash },
    { name: 'workload/stateful', weight: 2, reach: 'service', happen: stateful },
    { name: 'workload/job', weight: 4, reach: 'service', happen: job },
    { name: 'workload/daemons', weight: 0.4, reach: 'service', happen: daemons },
    { name: 'workload/budget', weight: 2, happen: budget },
  ];
}
