// SPDX-License-Identifier: Apache-2.0
// The other side of `WorkerExecutor`: a thread that runs one task after the other.
import { parentPort } from 'node:worker_threads';
import type { TaskReply, TaskRequest } from './executor.ts';

const port = parentPort;
port?.on('message', (request: TaskRequest) => {
  void answer(request).then((reply) => {
    try {
      port.postMessage(reply);
    } catch (error) {
      // The result cannot be cloned: say so instead of leaving the caller waiting.
      port.postMessage({ ok: false, error, fields: undefined } satisfies TaskReply);
    }
  });
});

async function answer({ module, name, input }: TaskRequest): Promise<TaskReply> {
  try {
    const exported = (await import(module)) as Record<string, unknown>;
    const run = exported[name];
    if (typeof run !== 'function') throw new TypeError(`${module} exports no function ${name}`);
    return { ok: true, value: await (run as (input: unknown) => unknown)(input) };
  } catch (error) {
    return { ok: false, error, fields: fieldsOf(error) };
  }
}

/** The own data of an error beyond what cloning keeps. */
function fieldsOf(error: unknown): Record<string, unknown> | undefined {
  if (!(error instanceof Error)) return undefined;
  const fields: Record<string, unknown> = { name: error.name };
  for (const [key, value] of Object.entries(error)) {
    try {
      fields[key] = structuredClone(value);
    } catch {
      // A function or a handle: of no use in the other thread.
    }
  }
  return fields;
}
