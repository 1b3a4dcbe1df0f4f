// SPDX-License-Identifier: Apache-2.0
// Nodes that are each good for what they hold, and together are not: their pods would cost less if they were shared out otherwise. Found
// by exchanging pods in thought (see ../bins.ts), a few nodes at a time, so that each group of them can be replaced by itself.

import { memoised } from '../../base/memoised.ts';
import { type Bin, Exchange, isHeeded, isUntied, Market } from '../bins.ts';
import { allTypes } from '../catalog.ts';
import type { PodClass } from '../pod-class.ts';
import { combinedOn } from '../reach.ts';
import { isUnbound } from '../regroup.ts';
import { incompatible } from '../requirement-space.ts';
import { untolerated } from '../taints.ts';
import type { Template } from '../templates.ts';
import type { World } from '../world.ts';

/** A node that may go: the pods that would have to move, and its price. */
export interface Going {
  readonly slot: number;
  readonly pods: readonly number[];
  readonly price: number;
}

/** Nodes that go together, and what is bought for their pods. */
export interface Reshaped {
  readonly slots: readonly number[];
  readonly market: Market;
  readonly bins: readonly Bin[];
}

/** How often nodes exchange pods, for each of them, and in all. */
const [exchangesPerNode, mostExchanges] = [20, 6000];
/** How many nodes go together at most. */
const mostTogether = 16;
/** Less is not worth the moves, as a part of what the nodes cost. */
const worthMoving = 0.02;

/** Groups of nodes that other machines would replace for less, those that save most first. */
export function reshape(world: World, nodes: readonly Going[]): Reshaped[] {
  const found: (Reshaped & { readonly saves: number })[] = [];
  for (const [template, own] of Map.groupBy(nodes, ({ slot }) => templateOf(world, slot))) {
    if (!template || !isUnbound(template)) continue;
    const suits = memoised((podClass: PodClass) => isSuited(world, template, podClass));
    const free = own.filter(({ pods }) => pods.length > 0 && pods.every((pod) => suits(world.classOf[pod]!)));
    if (free.length < 2) continue;
    const market = new Market(world, template, allTypes);
    const exchanges = Math.min(mostExchanges, exchangesPerNode * free.length);
    const bins = new Exchange(market, free).run({ exchanges, leeway: 0, mostTogether }) ?? [];
    for (const [from, together] of Map.groupBy(bins, (bin) => bin.from)) {
      const going = from.map((at) => free[at]!);
      const paid = going.reduce((sum, { price }) => sum + price, 0);
      const saves = together.reduce((sum, { price }) => sum - price, paid);
      if (saves > worthMoving * paid)
        found.push({ slots: going.map(({ slot }) => slot), market, bins: together, saves });
    }
  }
  return found.sort((a, b) => b.saves - a.saves || a.slots[0]! - b.slots[0]!);
}

function templateOf({ templates, targets }: World, slot: number): Template | undefined {
  const { nodePool } = targets[slot]!.node;
  return templates.find((template) => template.nodePool === nodePool);
}

/** Whether pods of a class may go onto any machine of a pool that their labels allow. */
function isSuited(world: World, template: Template, podClass: PodClass): boolean {
  const { side } = podClass;
  const wish = side.wishes[template.dialect.index];
  if (!wish || side.ports.length > 0 || untolerated(template.taints, side.tolerations)) return false;
  const base = combinedOn(world.space, template, template.requirements, wish.all);
  return base !== incompatible && isUntied(world, podClass) && isHeeded(world, template, base, podClass);
}
