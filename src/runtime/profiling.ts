// SPDX-License-Identifier: Apache-2.0
// What `--enable-profiling` adds to the metrics port: CPU profiles and heap snapshots for Chrome's developer tools.
import { Session } from 'node:inspector/promises';
import { pipeline } from 'node:stream/promises';
import { getHeapSnapshot } from 'node:v8';
import type { Clock } from '../base/clock.ts';
import { type Route, sendText } from './health.ts';

const longestProfileSeconds = 300;

/** `/debug/pprof/profile?seconds=30` and `/debug/pprof/heap`. One at a time: each slows the program down. */
export function profilingRoute(clock: Clock): Route {
  let busy = false;
  return async (_request, url, response) => {
    if (!url.pathname.startsWith('/debug/pprof')) return false;
    const what = url.pathname.slice('/debug/pprof'.length).replace(/\/$/, '');
    if (what === '') {
      sendText(response, 200, 'profile?seconds=30  CPU profile (.cpuprofile)\nheap  heap snapshot (.heapsnapshot)\n');
      return true;
    }
    if (what !== '/profile' && what !== '/heap') return false;
    const seconds = Number(url.searchParams.get('seconds') ?? 30);
    if (!(seconds > 0 && seconds <= longestProfileSeconds)) {
      sendText(response, 400, `seconds must be above 0 and at most ${longestProfileSeconds}\n`);
      return true;
    }
    if (busy) {
      sendText(response, 429, 'a profile is being taken already\n');
      return true;
    }
    busy = true;
    const abort = new AbortController();
    response.once('close', () => abort.abort());
    try {
      if (what === '/heap') {
        response.setHeader('content-disposition', 'attachment; filename="karpenter.heapsnapshot"');
        response.setHeader('content-type', 'application/json');
        await pipeline(getHeapSnapshot(), response).catch((error: unknown) => {
          // Who asked hung up: nobody is left to tell.
          if (!response.destroyed) throw error;
        });
      } else {
        response.setHeader('content-disposition', 'attachment; filename="karpenter.cpuprofile"');
        const profile = await takeProfile(clock, seconds * 1000, abort.signal);
        sendText(response, 200, profile, 'application/json');
      }
    } finally {
      busy = false;
    }
    return true;
  };
}

async function takeProfile(clock: Clock, ms: number, signal: AbortSignal): Promise<string> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    // Whoever asked may have gone: what there is so far is thrown away with the response.
    await clock.sleep(ms, signal).catch(() => undefined);
    const { profile } = await session.post('Profiler.stop');
    return JSON.stringify(profile);
  } finally {
    session.disconnect();
  }
}
