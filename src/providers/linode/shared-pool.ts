// SPDX-License-Identifier: Apache-2.0
// What the tags of a shared node pool say: for which NodeClaims it has nodes, which node is whose, and who is leaving. All
// counts follow from these tags and from the nodes that are there; none is ever raised or lowered by one.
import type { LkePool, LkePoolNode } from './api-types.ts';
import { bareUid, fullUid, linodeGroup, tagKeys, tagValue } from './names.ts';

/** `<key>=<16 hexadecimal digits>`: what all nodes of the pool have in common. */
const sharedKey = `${linodeGroup}/shared`;
/** Instead of the tag `uid` of a NodeClaim whose node is to go: 50 characters with the UID. */
const leavingKey = 'karpenter.sh/gone';
/**
 * `<12 hexadecimal digits of the UID>.<id of the Linode>`: whose node it is. The id is 0 as long as there is none: so a record
 * does not grow once it is written, and a pool that took somebody in has room for all of it.
 */
const seatKey = 'karpenter.sh/node';

export const sharedPoolTagKeys: readonly string[] = [sharedKey, leavingKey, seatKey];

/** A NodeClaim that is recorded on a pool. */
export interface Member {
  readonly uid: string;
  /** Its node is to go. */
  readonly leaving: boolean;
  /** The Linode that is its own, once there was one. */
  readonly linode: number | undefined;
}

/** What a shared pool is shared by; undefined for pools of one NodeClaim and those of others. */
export function sharedBy({ tags }: Pick<LkePool, 'tags'>): string | undefined {
  return tagValue(tags, sharedKey);
}

export function sharedTag(key: string): string {
  return `${sharedKey}=${key}`;
}

/** Enough of a UID to tell the members of one pool apart. */
export function shortUid(uid: string): string {
  return bareUid(uid).slice(-12);
}

export function membersOf({ tags }: Pick<LkePool, 'tags'>): Member[] {
  const seats = new Map<string, number>();
  for (const tag of tags) {
    const [, whose = '', linode] = /^karpenter\.sh\/node=([0-9a-f]{12})\.(\d+)$/.exec(tag) ?? [];
    if (linode !== undefined && linode !== '0') seats.set(whose, Number(linode));
  }
  const found = new Map<string, Member>();
  for (const [key, leaving] of [
    [tagKeys.uid, false],
    [leavingKey, true],
  ] as const) {
    for (const tag of tags) {
      const uid = fullUid(tagValue([tag], key));
      if (uid !== undefined) found.set(uid, { uid, leaving, linode: seats.get(shortUid(uid)) });
    }
  }
  return [...found.values()].sort((a, b) => (a.uid < b.uid ? -1 : 1));
}

/** The tags of a pool with these members: everything else stays as it is. */
export function tagsWith(tags: readonly string[], members: readonly Member[]): string[] {
  const kept = tags.filter((tag) => !isRecord(tag));
  const records = members.flatMap(({ uid, leaving, linode }) => [
    `${leaving ? leavingKey : tagKeys.uid}=${bareUid(uid)}`,
    `${seatKey}=${shortUid(uid)}.${linode ?? 0}`,
  ]);
  return [...new Set([...kept, ...records])].sort();
}

/** Whether a tag is about one member. */
export function isRecord(tag: string): boolean {
  return [tagKeys.uid, leavingKey, seatKey].some((key) => tag.startsWith(`${key}=`));
}

type Node = LkePoolNode;

/** Whether the Linode of a member is in the pool. */
export function isSeated({ nodes }: Pick<LkePool, 'nodes'>, { linode }: Member): boolean {
  return linode !== undefined && nodes.some(({ instance_id: id }) => id === linode);
}

/**
 * How many nodes the pool must have for these members: one for each that waits or has one, none for one that lost its own.
 * Whoever leaves counts as long as its node is there.
 */
export function nodesFor(pool: Pick<LkePool, 'nodes'>, members: readonly Member[]): number {
  return members.filter((member) => isSeated(pool, member) || (!member.leaving && member.linode === undefined)).length;
}

/** Nodes that are nobody's: those without a Linode first, then the newest. */
export function freeNodes({ nodes }: Pick<LkePool, 'nodes'>, members: readonly Member[]): Node[] {
  const taken = new Set(members.map(({ linode }) => linode));
  const age = ({ instance_id: id }: Node): number => id ?? Number.POSITIVE_INFINITY;
  return nodes.filter(({ instance_id: id }) => !id || !taken.has(id)).sort((a, b) => age(b) - age(a) || 0);
}

/** Gives Linodes that are nobody's to members that have none: the oldest first, in the order of UIDs. */
export function seated(pool: Pick<LkePool, 'nodes'>, members: readonly Member[]): Member[] {
  const free = freeNodes(pool, members)
    .flatMap(({ instance_id: id }) => (id ? [id] : []))
    .sort((a, b) => a - b);
  return members.map((member) => {
    if (member.leaving || member.linode !== undefined || free.length === 0) return member;
    return { ...member, linode: free.shift() };
  });
}
