// SPDX-License-Identifier: Apache-2.0
// What users are told about the annotation by which a pod protects itself from disruption.
import { annotations } from '../api/labels.ts';
import { messageOf } from '../base/errors.ts';
import type { EventToRecord } from '../kube/event-recorder.ts';
import type { Pod } from '../kube/kinds.ts';
import { formatTime, parseDuration } from '../kube/time.ts';
import { doNotDisrupt, isActive } from '../state/pod-predicates.ts';
import { eventKinds, eventOf } from './events.ts';

/** None for most pods; one that says until when the pod is protected, that it no longer is, or what is wrong. */
export function protectionEvents(pod: Pod, now: number): EventToRecord[] {
  const protection = doNotDisrupt(pod, now);
  if (protection.state === 'absent' || !isActive(pod)) return [];
  const { uid = '' } = pod.metadata;
  switch (protection.state) {
    case 'active': {
      if (protection.untilMs === undefined) return [];
      const until = formatTime(protection.untilMs);
      const message = `The ${annotations.doNotDisrupt} grace period will elapse at ${until}`;
      return [eventOf(eventKinds.doNotDisruptUntil, pod, message, { dedupeValues: [uid, until] })];
    }
    case 'elapsed': {
      const kind = eventKinds.doNotDisruptGracePeriodElapsed;
      // It is news once, not for the rest of the pod's life.
      if (now - protection.sinceMs >= kind.dedupeMs) return [];
      return [eventOf(kind, pod, `The ${annotations.doNotDisrupt} grace period has elapsed, pod is now disruptable`)];
    }
    case 'invalid': {
      const problem = problemOf(protection.value);
      const message = `Invalid ${annotations.doNotDisrupt} annotation: ${problem}, ignoring annotation`;
      return [eventOf(eventKinds.invalidDoNotDisruptAnnotation, pod, message, { dedupeValues: [uid, problem] })];
    }
  }
}

function problemOf(value: string): string {
  try {
    parseDuration(value);
    return `duration ${JSON.stringify(value)} must be positive`;
  } catch (error) {
    return `failed to parse ${JSON.stringify(value)} as a duration: ${messageOf(error)}`;
  }
}
