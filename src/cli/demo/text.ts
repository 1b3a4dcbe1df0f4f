// SPDX-License-Identifier: Apache-2.0
// A play as lines of text, for logs and for those who scroll.
import { compareStrings } from '../../base/order.ts';
import type { Bought, DemoEvent, Purchase, StateChanged, Summary } from './events.ts';

/** The lines of an event; none for those that a reader need not see. */
export function linesOf(event: DemoEvent): string[] {
  const at = stamp(event.at);
  switch (event.type) {
    case 'begin':
      return [`${event.scenario} (${event.providers.join(', ')}): ${event.description}`, ''];
    case 'act':
      return [`${at}  > ${event.title}`];
    case 'reached':
      return [`${at}  = ${event.what}, after ${duration(event.afterSeconds)}`];
    case 'bought':
      return [
        `${at}  + ${machine(event)} at ${price(event.pricePerHour)}`,
        `${' '.repeat(at.length)}    ${why(event)}`,
      ];
    case 'ready':
      return [`${at}    ${event.nodeClaim} takes pods, ${duration(event.afterSeconds)} after it was bought`];
    case 'leaving':
      return [`${at}    ${event.nodeClaim} leaves: ${reason(event.reason)}`];
    case 'gone':
      return [`${at}  - ${event.nodeClaim} is gone; it cost ${cost(event.cost)} in ${duration(event.livedSeconds)}`];
    case 'state':
      return [`${at}    ${stateLine(event)}`];
    case 'summary':
      return ['', ...summaryLines(event)];
  }
}

/** `12 pods: 3 pending, 9 running; 1 machine at $0.1520/h`. */
export function stateLine({ pods, machines, pricePerHour }: Omit<StateChanged, 'type' | 'at' | 'nodes'>): string {
  const parts = Object.entries(pods).filter(([, count]) => count > 0);
  const told = parts.map(([phase, count]) => `${count} ${phase}`).join(', ');
  return `pods: ${told || 'none'}; machines: ${machines}; ${price(pricePerHour)}`;
}

/** What was bought and why, how long it took, what it cost, what was removed. */
export function summaryLines(summary: Summary): string[] {
  const { bought, pods, most, left } = summary;
  const lines = [summary.succeeded ? 'The end.' : 'It did not come to its end.'];
  const row = (name: string, text: string): void => void lines.push(`  ${name.padEnd(8)} ${text}`);
  row('bought', `${count(bought.length, 'machine')}${bought.length === 0 ? '' : ':'}`);
  for (const [kind, same] of groups(bought)) {
    const zones = [...new Set(same.map(({ zone }) => zone))].sort(compareStrings);
    lines.push(`           ${same.length} x ${kind}, in ${zones.join(', ')}`, `               ${why(same[0]!)}`);
  }
  if (pods.started > 0) {
    const slow = duration(pods.slowestSeconds);
    row(
      'waited',
      `${count(pods.started, 'pod')} ran ${duration(pods.medianSeconds)} after they were made (median; slowest ${slow})`,
    );
  }
  row('cost', `at most ${price(most.pricePerHour)}; ${cost(summary.cost)} in all`);
  const spot = savings(bought);
  if (spot) row('spot', spot);
  const removed = bought.filter(({ livedSeconds }) => livedSeconds !== undefined);
  row('removed', removed.length === 0 ? 'nothing' : `${count(removed.length, 'machine')} (${reasons(removed)})`);
  row('left', `${count(left.pods, 'pod')}, ${count(left.machines, 'machine')}, ${price(left.pricePerHour)}`);
  row('took', duration(summary.at));
  return lines;
}

/** Machines that were bought alike, under what they are. */
function groups(bought: readonly Purchase[]): [string, Purchase[]][] {
  const found = new Map<string, [string, Purchase[]]>();
  for (const one of bought) {
    const { instanceType, capacityType, pricePerHour, requests } = one;
    const kind = `${instanceType}, ${capacityType}, ${price(pricePerHour)}`;
    const key = JSON.stringify([kind, requests]);
    const group = found.get(key);
    if (group) group[1].push(one);
    else found.set(key, [kind, [one]]);
  }
  return [...found.values()];
}

function reasons(removed: readonly Purchase[]): string {
  const counts = new Map<string, number>();
  for (const { removedFor = 'Deleted' } of removed) counts.set(removedFor, (counts.get(removedFor) ?? 0) + 1);
  return [...counts].map(([why, n]) => (counts.size === 1 ? reason(why) : `${n} ${reason(why)}`)).join(', ');
}

function savings(bought: readonly Purchase[]): string | undefined {
  const cheap = bought.filter(({ onDemandPricePerHour }) => onDemandPricePerHour !== undefined);
  if (cheap.length === 0) return undefined;
  const [paid, full] = cheap.reduce(
    ([a, b], { pricePerHour, onDemandPricePerHour = 0 }) => [a + pricePerHour, b + onDemandPricePerHour],
    [0, 0],
  );
  return `${count(cheap.length, 'machine')} at ${price(paid)} instead of ${price(full)} on demand`;
}

function machine({ nodeClaim, instanceType, capacityType, zone }: Bought): string {
  return `${nodeClaim}: ${instanceType}, ${capacityType}, ${zone}`;
}

function why({ why: because, next }: Pick<Bought, 'why' | 'next'>): string {
  return next ? `${because}; next best: ${next.instanceType} at ${price(next.pricePerHour)}` : because;
}

/** A disruption's reason for people. */
export function reason(name: string): string {
  return name.toLowerCase();
}

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}

export function price(perHour: number): string {
  return `$${perHour.toFixed(4)}/h`;
}

export function cost(amount: number): string {
  return `$${amount.toFixed(5)}`;
}

/** `3.2 s`, `1 min 4 s`. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** `00:03.2`: minutes and seconds since the beginning. */
export function stamp(at: number): string {
  const tenths = Math.floor(at * 10);
  const minutes = String(Math.floor(tenths / 600)).padStart(2, '0');
  return `${minutes}:${((tenths % 600) / 10).toFixed(1).padStart(4, '0')}`;
}
