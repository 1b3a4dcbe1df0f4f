// SPDX-License-Identifier: Apache-2.0
// Where heavy pure work runs: in a worker thread in production, so that watches and probes are served meanwhile; inline
// in simulation and tests, so that a run can be repeated.
import { Worker } from 'node:worker_threads';
import { KarpenterError } from '../base/errors.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a constructor of any shape
type ErrorClass = abstract new (...args: any[]) => Error;

/**
 * A pure function that another thread can find: by the module it is exported from and its name there. Input and output
 * are plain data (they are cloned on the way).
 */
export interface TaskRef<I, O> {
  /** The URL of the module. */
  readonly module: string;
  /** The name under which the module exports the function. */
  readonly name: string;
  readonly run: (input: I) => O | Promise<O>;
  /** Error classes of its own that the function throws: they keep their class on the way back. */
  readonly errors: readonly ErrorClass[];
}

/** Call it in the module that exports `run` as `name`, with `import.meta.url`: right in sources and in the build. */
export function defineTask<I, O>(
  moduleUrl: string,
  name: string,
  run: (input: I) => O | Promise<O>,
  options: { readonly errors?: readonly ErrorClass[] } = {},
): TaskRef<I, O> {
  return { module: moduleUrl, name, run, errors: options.errors ?? [] };
}

/** Runs heavy pure work. Rejects with what the task throws, or with the signal's reason when it aborts first. */
export interface Executor {
  run<I, O>(task: TaskRef<I, O>, input: I, signal?: AbortSignal): Promise<O>;
  /** Gives up what runs and waits; nothing runs afterwards. */
  close(): Promise<void>;
}

/** The thread ended under the task, or the executor was closed. */
export class ExecutorError extends KarpenterError {
  constructor(message: string, cause?: unknown) {
    super('KRP_EXECUTOR', message, cause === undefined ? {} : { cause });
  }
}

/** Runs each task in the caller's thread, one after the other, in the order they came. */
export class InlineExecutor implements Executor {
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  run<I, O>(task: TaskRef<I, O>, input: I, signal?: AbortSignal): Promise<O> {
    const result = this.#last.then(() => {
      if (this.#closed) throw new ExecutorError('the executor is closed');
      signal?.throwIfAborted();
      return task.run(input);
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#last;
  }
}

export interface WorkerExecutorOptions {
  /** How many threads at most; 1 unless told. They are started when they are needed. */
  readonly threads?: number;
  /** The heap of each thread. */
  readonly maxHeapMb?: number;
}

interface Job {
  readonly task: TaskRef<unknown, unknown>;
  readonly input: unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** What goes to the thread, and what comes back from it. */
export interface TaskRequest {
  readonly module: string;
  readonly name: string;
  readonly input: unknown;
}

export type TaskReply =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown; readonly fields: Readonly<Record<string, unknown>> | undefined };

/** Each thread runs one task at a time. To cancel a running task its thread is ended, and a new one takes its place. */
export class WorkerExecutor implements Executor {
  readonly #threads: number;
  readonly #maxHeapMb: number | undefined;
  readonly #waiting: Job[] = [];
  readonly #workers = new Map<Worker, Job | undefined>();
  #closed = false;

  constructor(options: WorkerExecutorOptions = {}) {
    this.#threads = options.threads ?? 1;
    this.#maxHeapMb = options.maxHeapMb;
  }

  run<I, O>(task: TaskRef<I, O>, input: I, signal?: AbortSignal): Promise<O> {
    if (this.#closed) return Promise.reject(new ExecutorError('the executor is closed'));
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    return new Promise<O>((resolve, reject) => {
      const settled = (): void => signal?.removeEventListener('abort', onAbort);
      const job: Job = {
        task: task as unknown as TaskRef<unknown, unknown>,
        input,
        resolve: (value) => {
          settled();
          resolve(value as O);
        },
        reject: (error) => {
          settled();
          reject(error as Error);
        },
      };
      const onAbort = (): void => this.#cancel(job, signal?.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.push(job);
      this.#dispatch();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    const error = new ExecutorError('the executor was closed');
    for (const job of this.#waiting.splice(0)) job.reject(error);
    const workers = [...this.#workers];
    this.#workers.clear();
    for (const [, job] of workers) job?.reject(error);
    await Promise.all(workers.map(([worker]) => worker.terminate()));
  }

  #dispatch(): void {
    while (this.#waiting.length > 0) {
      const worker = this.#idleWorker();
      if (!worker) return;
      const job = this.#waiting.shift()!;
      const request: TaskRequest = { module: job.task.module, name: job.task.name, input: job.input };
      try {
        worker.postMessage(request);
      } catch (error) {
        // Input that cannot be cloned is the caller's defect; the thread has not seen it.
        job.reject(error);
        continue;
      }
      this.#workers.set(worker, job);
      worker.ref();
    }
  }

  #idleWorker(): Worker | undefined {
    for (const [worker, job] of this.#workers) if (!job) return worker;
    return this.#workers.size < this.#threads ? this.#startWorker() : undefined;
  }

  #startWorker(): Worker {
    // Sources run as they are, the build has .js: the neighbour has the extension of this file.
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'));
    const limits = this.#maxHeapMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: this.#maxHeapMb } };
    const worker = new Worker(new URL(`./executor-worker${extension}`, import.meta.url), limits);
    this.#workers.set(worker, undefined);
    // An idle thread must not keep the process alive.
    worker.unref();
    worker.on('message', (reply: TaskReply) => this.#finish(worker, reply));
    worker.on('error', (error) => this.#lose(worker, error));
    worker.on('exit', (code) => this.#lose(worker, new Error(`exit code ${code}`)));
    return worker;
  }

  #finish(worker: Worker, reply: TaskReply): void {
    const job = this.#workers.get(worker);
    if (!job) return;
    this.#workers.set(worker, undefined);
    worker.unref();
    if (reply.ok) job.resolve(reply.value);
    else job.reject(revive(reply.error, reply.fields, job.task.errors));
    this.#dispatch();
  }

  /** The thread ended by itself. */
  #lose(worker: Worker, cause: unknown): void {
    const job = this.#workers.get(worker);
    if (!this.#workers.delete(worker)) return;
    job?.reject(new ExecutorError(`the thread ended while it ran ${job.task.name}`, cause));
    this.#dispatch();
  }

  #cancel(job: Job, reason: unknown): void {
    const waiting = this.#waiting.indexOf(job);
    if (waiting >= 0) this.#waiting.splice(waiting, 1);
    for (const [worker, running] of this.#workers) {
      if (running !== job) continue;
      this.#workers.delete(worker);
      void worker.terminate();
    }
    job.reject(reason);
    this.#dispatch();
  }
}

/** Gives a cloned error its class back: cloning keeps only the built-in ones, and of those only name and message. */
function revive(
  error: unknown,
  fields: Readonly<Record<string, unknown>> | undefined,
  classes: readonly ErrorClass[],
): unknown {
  if (!fields || !(error instanceof Error)) return error;
  const known = classes.find((kind) => kind.name === fields['name']);
  if (known || String(fields['code']).startsWith('KRP_')) {
    Object.setPrototypeOf(error, (known ?? KarpenterError).prototype as object);
  }
  for (const [name, value] of Object.entries(fields)) {
    Object.defineProperty(error, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return error;
}
