// SPDX-License-Identifier: Apache-2.0
// Planted defects: each is one line of the product that goes wrong on purpose, to show that the simulator would find it.
// All are off. Only code can turn one on (no flag, no variable, no file), and hack/rooms.ts says which code may.

/** What each of them breaks. */
export const defects = {
  'kwok-launches-again': 'KWOK names a machine by something that changes: a launch that is repeated makes another one.',
  'scripted-launches-again': 'Every try of a launch is a new order to the cloud.',
  'delete-error-is-not-found': 'A deletion that failed for whatever reason counts as done: the machine runs on.',
  'collects-strangers': 'A machine that nobody of ours ordered is taken for one that lost its NodeClaim.',
  'collects-young-machines': 'A machine that its NodeClaim does not name yet is removed.',
  'orphans-left-behind': 'Machines that lost their NodeClaim are never removed.',
  'forgets-lost-machines': 'NodeClaims whose machine died stay.',
  'forgets-reservations': 'Two nodes of one pass count on the same reserved machine.',
  'misses-deletions': 'What vanished while a watch was down stays in the cache.',
  'forgets-machines-on-their-way': 'Machines that have not joined yet do not count: their pods get others as well.',
  'loses-nominations': 'A machine that is promised to pods is not kept for them.',
  'budget-off-by-one': 'One node more than the budget allows may be disrupted.',
  'trusts-a-stale-cache': 'Before a machine goes nobody asks the API server itself which pods are on it.',
  'node-let-go-too-early': 'The finalizer of a Node goes before its pods have left.',
  'limit-not-counted-in-a-pass': 'What a pass has bought already does not count against the limits of its pool.',
  'ignores-disruption-budgets': 'Pods are deleted instead of evicted.',
  'cuts-grace': 'Evicted pods get one second to stop.',
  'ignores-do-not-disrupt': 'The annotation by which pods protect themselves has no effect.',
  'keeps-unregistered-taint': 'A node that has registered keeps the taint that holds pods off.',
  'forgets-expiry': 'Nobody comes back for a NodeClaim when it has reached its age.',
  'replaces-twice': 'Every replacement is bought twice.',
  'overwrites-foreign-taints': 'A node that is drained loses the taints of others.',
  'event-storm': 'The same event again is another event.',
  'drops-failed-items': 'A reconcile that failed is not tried again.',
  'leads-without-a-lease': 'A leader that could not renew its lease goes on.',
  'ignores-termination-grace-period': 'A drain never ends by force.',
  'waits-for-ever': 'A machine that never joins is waited for without end.',
  'moves-for-nothing': 'A node counts as dearer than it is, and is replaced by one that is not cheaper.',
  'forgets-daemons': 'What daemons take of a machine is not counted.',
  'cluster-api-lowers-again': 'Every try of a deletion lowers the replicas of the MachineDeployment.',
  'cluster-api-raises-again': 'Every try of a launch raises the replicas of a MachineDeployment.',
  'cluster-api-binds-twice': 'A NodeClaim takes any Machine of its MachineDeployment, whoever has it.',
  'cluster-api-adopts-strangers': 'Machines that were there before the NodeClaim are taken for its own.',
  'linode-launches-again': 'Every try of a launch asks for another node pool.',
  'linode-forgets-what-it-asked': 'After a request that was not answered, another one is made at once.',
  'linode-claims-the-account': 'Linodes of other clusters in the account count as ours.',
  'linode-failure-is-gone': 'A cloud that cannot be asked counts as one whose machine is gone.',
} as const satisfies Readonly<Record<string, string>>;

export type Defect = keyof typeof defects;

let armed: Defect | undefined;

/** Whether this defect is on. A comparison of two pointers: it costs nothing. */
export function planted(name: Defect): boolean {
  return armed === name;
}

/** Turns one defect on in this process, or with `undefined` the one that is on off again. For the simulator's own tests. */
export function plant(name: Defect | undefined): void {
  armed = name;
}
