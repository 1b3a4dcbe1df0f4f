// SPDX-License-Identifier: Apache-2.0
// What the two modes have in common: each makes, finds, lists and removes machines in its own way.
import type { LinodeNodeClass } from '../../api/linode-node-class.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { Instance, InstanceType } from '../../cloud/provider.ts';

/** What a launch is made of. */
export interface Launch {
  readonly nodeClass: LinodeNodeClass;
  /** What serves the NodeClaim, best first. Never empty. */
  readonly choices: readonly InstanceType[];
}

/** How to launch for a NodeClaim, if it comes to that. */
export interface Planner {
  /** The class as it is now. */
  readonly nodeClass: LinodeNodeClass | undefined;
  /** Throws what a launch is to be told when there can be none. */
  plan(): Promise<Launch>;
}

/** One machine, whichever way it came about. */
export interface Machine {
  readonly providerID: string;
  /** The plan. */
  readonly type: string;
  readonly region: string;
  readonly imageID?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly nodeClassHash?: string | undefined;
  readonly nodeClaim?: Instance['nodeClaim'];
  readonly createdAt?: string;
  readonly deleting?: boolean;
}

/** LKE mode or Instance mode. */
export interface Machines {
  /** The machine that was made for the NodeClaim before, or a new one as planned. Throws what CloudProvider.create may. */
  create(claim: NodeClaim, planner: Planner, signal: AbortSignal): Promise<Machine>;
  delete(claim: NodeClaim, signal: AbortSignal): Promise<void>;
  get(providerID: string, signal: AbortSignal): Promise<Machine>;
  list(signal: AbortSignal): Promise<readonly Machine[]>;
  /** Why the machine is not what the NodeClass asks for, in one word; '' when it is. */
  drift(claim: NodeClaim, nodeClass: LinodeNodeClass, signal: AbortSignal): Promise<string>;
  /** Puts these tags on the machine, takes those off that were put on before, and leaves all others. */
  tag(claim: NodeClaim, change: TagChange, signal: AbortSignal): Promise<void>;
  /** The Node has come up: what was only needed until then is taken back. */
  settle(claim: NodeClaim, signal: AbortSignal): Promise<void>;
}

export interface TagChange {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/** The tags after a change, in order; undefined when it changes nothing. */
export function changedTags(before: readonly string[], { add, remove }: TagChange): string[] | undefined {
  const after = new Set(before.filter((tag) => !remove.includes(tag)));
  for (const tag of add) after.add(tag);
  const isSame = after.size === before.length && before.every((tag) => after.has(tag));
  return isSame ? undefined : [...after].sort();
}
