// SPDX-License-Identifier: Apache-2.0
// Nodes to be bought exchange their pods (see bins.ts): what a pass decides pod by pod it gets wrong where pods of many kinds share few
// nodes, and here it is mended.
import { memoised } from '../base/memoised.ts';
import { type Bin, Exchange, isHeeded, isUntied, Market } from './bins.ts';
import type { Finalizer } from './finalize.ts';
import { NewNode, NodeGroup } from './in-flight.ts';
import type { Packed } from './pack.ts';
import type { PodClass } from './pod-class.ts';
import { isUnbound, renumbered } from './regroup.ts';
import type { SetId } from './requirement-space.ts';
import type { World } from './world.ts';

/** Nothing is tried with more nodes: the exchanges that are made would be too few for them. */
const maxNodes = 4000;

/**
 * The same pods on nodes that cost less, after `effort` exchanges for each node; undefined when nothing is gained. `dear`: nodes are
 * left as they are that cost less than so many times what their pods would on machines full of their like.
 */
export function exchange(
  world: World,
  packed: Packed,
  finalizer: Finalizer,
  effort: number,
  dear = 0,
): Packed | undefined {
  const nodes = [...packed.nodes];
  const moved = new Map<number, NewNode>();
  for (const free of freeNodes(world, packed).values()) {
    if (free.length < 2 || free.length > maxNodes) continue;
    const price = free.reduce((sum, node) => sum + finalizer.priceOf(node), 0);
    const { template, group } = free[0]!;
    const market = new Market(world, template, template.catalog.plainMask(group.mask));
    if (price < dear * free.reduce((sum, { pods }) => sum + market.worthOf(pods), 0)) continue;
    const exchanges = new Exchange(
      market,
      free.map(({ pods }) => ({ pods })),
    );
    // What the finalizer found may be cheaper than what is known here: then nothing is known here.
    if (exchanges.price > price * (1 + 1e-9)) continue;
    const bins = exchanges.run({ exchanges: effort * free.length });
    if (bins) place(world, market, free, bins, nodes, moved);
  }
  return moved.size === 0 ? undefined : renumbered(world, packed, nodes, moved);
}

/** Nodes whose pods may go wherever their labels and the room allow, by pool and what keeps machines out of it. */
function freeNodes(world: World, { nodes }: Packed): Map<string, NewNode[]> {
  const byMarket = new Map<string, NewNode[]>();
  const isFree = memoised((podClass: PodClass) => isUntied(world, podClass));
  for (const node of nodes) {
    const { template, group, pods, ports, reservations } = node;
    if (!isUnbound(template) || ports.length > 0 || reservations.length > 0) continue;
    if (!pods.every((pod) => isFree(world.classOf[pod]!) && isHeeded(world, template, group.set, world.classOf[pod]!)))
      continue;
    const key = `${template.index}:${template.catalog.plainMask(group.mask)}`;
    const others = byMarket.get(key);
    if (others) others.push(node);
    else byMarket.set(key, [node]);
  }
  return byMarket;
}

/** Empties nodes and puts others in their place. */
function place(
  world: World,
  market: Market,
  old: readonly NewNode[],
  bins: readonly Bin[],
  nodes: NewNode[],
  moved: Map<number, NewNode>,
): void {
  const gone = new Set(old);
  for (const [i, node] of nodes.entries())
    if (gone.has(node)) nodes[i] = new NewNode(0, i, node.group, world.axis.size);
  for (const node of nodesOf(world, market, bins, nodes.length)) {
    nodes.push(node);
    for (const pod of node.pods) moved.set(pod, node);
  }
}

/** Nodes to be bought for bins, numbered from `first` on. */
export function nodesOf(world: World, { template, mask }: Market, bins: readonly Bin[], first: number): NewNode[] {
  const groups = new Map<SetId, NodeGroup>();
  return bins.map(({ set, pods, total }, i) => {
    let group = groups.get(set);
    if (!group) groups.set(set, (group = new NodeGroup(groups.size, template, set, mask)));
    const node = new NewNode(world.targets.length + first + i, first + i, group, world.axis.size);
    node.pods.push(...pods);
    node.total.set(total);
    return node;
  });
}
