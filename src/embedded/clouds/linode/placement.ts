// SPDX-License-Identifier: Apache-2.0
// Placement groups: which Linodes stand apart from each other.
import type { Account } from './account.ts';
import { type Call, found, idOf, page } from './exchange.ts';
import { Fields, labelProblem } from './fields.ts';
import type { Machines } from './machines.ts';
import type { Group } from './records.ts';
import { badRequest } from './refusal.ts';
import { type Region, regionNamed } from './regions.ts';
import type { Route } from './router.ts';
import { groupView } from './views.ts';

/** What keeps `more` Linodes of a region out of a group; undefined when nothing does. */
export function groupProblem(account: Account, group: Group, region: Region, more = 1): string | undefined {
  if (group.region.id !== region.id) return 'Placement group is in another region';
  const members = [...account.instances.values()].filter(({ groupId }) => groupId === group.id).length;
  const most = group.region.placement_group_limits.maximum_linodes_per_pg;
  if (members + more > most) return `Placement group has reached its limit of ${most} Linodes`;
  return undefined;
}

export function placementRoutes(account: Account, machines: Machines): Route[] {
  const groupOf = (call: Call): Group => found(account.groups.get(idOf(call, 'group')));
  const view = (group: Group): object => groupView(account, group);

  const readLabel = (fields: Fields, required: boolean): string | undefined => {
    const label = fields.text('label', { required });
    const problem = label === undefined ? undefined : labelProblem(label, { min: 1, max: 64 });
    if (problem) fields.wrong('label', problem);
    return label;
  };

  const create = (call: Call): object => {
    const fields = new Fields(call.body);
    const label = readLabel(fields, true);
    const name = fields.text('region', { required: true });
    const region = name === undefined ? undefined : regionNamed(name);
    if (name !== undefined && !region) fields.wrong('region', 'Region is not valid');
    const type = fields.oneOf('placement_group_type', ['anti_affinity:local']);
    const policy = fields.oneOf('placement_group_policy', ['strict', 'flexible']);
    if (!fields.has('placement_group_type')) fields.wrong('placement_group_type', 'placement_group_type is required');
    if (!fields.has('placement_group_policy')) {
      fields.wrong('placement_group_policy', 'placement_group_policy is required');
    }
    fields.done();
    const group: Group = { id: account.nextId('group'), label: label!, region: region!, type: type!, policy: policy! };
    account.groups.set(group.id, group);
    return view(group);
  };

  const members = (call: Call): number[] => {
    const fields = new Fields(call.body);
    const ids = (fields.list('linodes') ?? []).filter((id) => typeof id === 'number');
    if (ids.length === 0) fields.wrong('linodes', 'linodes is required');
    fields.done();
    return ids;
  };

  const assign = (call: Call): object => {
    const group = groupOf(call);
    const ids = members(call);
    const instances = ids.map((id) => {
      const instance = account.instances.get(id);
      if (!instance) throw badRequest('Invalid Linode', 'linodes');
      if (instance.groupId !== undefined) throw badRequest('Linode is already in a placement group', 'linodes');
      const problem = groupProblem(account, group, instance.region, ids.length);
      if (problem) throw badRequest(problem, 'linodes');
      return instance;
    });
    for (const instance of instances) {
      instance.groupId = group.id;
      machines.touch(instance);
    }
    return view(group);
  };

  const unassign = (call: Call): object => {
    const group = groupOf(call);
    for (const id of members(call)) {
      const instance = account.instances.get(id);
      if (instance?.groupId !== group.id) throw badRequest('Linode is not in this placement group', 'linodes');
      delete instance.groupId;
      machines.touch(instance);
    }
    return view(group);
  };

  const update = (call: Call): object => {
    const group = groupOf(call);
    const fields = new Fields(call.body);
    const label = readLabel(fields, true);
    fields.done();
    group.label = label!;
    return view(group);
  };

  const remove = (call: Call): object => {
    const group = groupOf(call);
    if ([...account.instances.values()].some(({ groupId }) => groupId === group.id)) {
      throw badRequest('Placement group still has Linodes');
    }
    account.groups.delete(group.id);
    return {};
  };

  return [
    {
      method: 'GET',
      path: '/placement/groups',
      handle: (call) => page(call, [...account.groups.values()].map(view)),
    },
    { method: 'POST', path: '/placement/groups', handle: create },
    { method: 'GET', path: '/placement/groups/:group', handle: (call) => view(groupOf(call)) },
    { method: 'PUT', path: '/placement/groups/:group', handle: update },
    { method: 'DELETE', path: '/placement/groups/:group', handle: remove },
    { method: 'POST', path: '/placement/groups/:group/assign', handle: assign },
    { method: 'POST', path: '/placement/groups/:group/unassign', handle: unassign },
  ];
}
