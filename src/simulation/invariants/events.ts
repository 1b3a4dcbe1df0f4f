// SPDX-License-Identifier: Apache-2.0
// Events tell people what happens; the same thing again is one event that counts, not another.
import type { Event } from '../../kube/kinds.ts';
import { collections } from '../collections.ts';
import type { Invariant } from '../contract.ts';
import { isOurs, minute } from './reading.ts';

/** New Event objects about one thing for one reason within an hour. */
const mostPerHour = 60;

export function eventsInProportion(): Invariant {
  const born = new Map<string, number[]>();
  return {
    name: 'events/in-proportion',
    onChange(change, facts, report) {
      if (change.collection !== collections.events || change.event.type !== 'ADDED' || !isOurs(change)) return;
      report.checked();
      const { involvedObject: of, reason = '' } = change.event.object as Event;
      const key = `${of.kind}/${of.namespace ?? ''}/${of.name}/${reason}`;
      const lately = (born.get(key) ?? []).filter((at) => facts.now - at < 60 * minute);
      lately.push(facts.now);
      born.set(key, lately);
      if (lately.length > mostPerHour) {
        report.violated(`${lately.length} events ${reason} about ${of.kind} ${of.name} within an hour`);
      }
    },
  };
}
