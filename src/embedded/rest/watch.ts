// SPDX-License-Identifier: Apache-2.0
// Watches: the changes of a selection from a revision on, with bookmarks, initial events and time-outs. Watchers share
// the stored objects, and over HTTP the serialised lines.
import type { KubeObject, WatchEvent } from '../../kube/object.ts';
import { apiVersionOf } from '../../kube/object.ts';
import { expired, type StatusError } from '../status.ts';
import type { Cursor, StoreEvent } from '../store.ts';
import { encode, type RequestContext, storageNamespace } from './context.ts';
import { type Selection, selectionOf, selectNow } from './list.ts';
import { type ListOptions, parseListOptions } from './options.ts';
import { type Presentation, presentationOf } from './present.ts';
import type { ApiResponse, ServerWatch } from './request.ts';

export function handleWatch(context: RequestContext): ApiResponse {
  const options = parseListOptions(context.request.query, true);
  const selection = inNamespace(context, selectionOf(context, options));
  const presentation = presentationOf(context);
  const asked = options.resourceVersion ?? 0;
  // A watch from 0 or from nowhere starts with what is there, as does one that asks for initial events.
  const fromNow = options.sendInitialEvents ?? asked === 0;
  const cursor = context.collection.watch(fromNow || asked === 0 ? undefined : asked);
  if (!cursor) {
    const gone = expired(`too old resource version: ${asked} (${context.collection.compactedRevision})`);
    return { status: 200, stream: new EndedWatch(gone) };
  }
  const initial = fromNow ? selectNow(context, options) : [];
  return { status: 200, stream: new OpenWatch(context, options, selection, presentation, cursor, initial) };
}

function inNamespace(context: RequestContext, selection: Selection): Selection {
  const namespace = storageNamespace(context);
  if (namespace === '') return selection;
  if (!selection) return (object) => object.metadata.namespace === namespace;
  return (object) => object.metadata.namespace === namespace && selection(object);
}

const initialEventsEnd = 'k8s.io/initial-events-end';

/** An event before it is shown: shared ones come from the store and may carry cached lines. */
interface Raw {
  readonly type: WatchEvent['type'];
  readonly object: KubeObject;
  readonly shared: StoreEvent | undefined;
}

class OpenWatch implements ServerWatch {
  readonly #context: RequestContext;
  readonly #selection: Selection;
  readonly #presentation: Presentation | undefined;
  readonly #cursor: Cursor;
  #initial: readonly KubeObject[];
  #initialAt = 0;
  #announceEnd: boolean;
  #startRevision: number;
  /** Bookmarks due, at most one: the next says the same. */
  #bookmarkDue = false;
  #ended = false;
  #failure: StatusError | undefined;
  /** Those who wait for the next event, in the order they asked. */
  readonly #waiting: ((next: IteratorResult<WatchEvent>) => void)[] = [];
  /** Whoever writes lines waits for there to be more. */
  #wakeUp: (() => void) | undefined;
  #isServing = false;
  readonly #cleanUp: (() => void)[] = [];

  constructor(
    context: RequestContext,
    options: ListOptions,
    selection: Selection,
    presentation: Presentation | undefined,
    cursor: Cursor,
    initial: readonly KubeObject[],
  ) {
    this.#context = context;
    this.#selection = selection;
    this.#presentation = presentation;
    this.#cursor = cursor;
    this.#initial = initial;
    this.#announceEnd = options.sendInitialEvents === true && options.allowBookmarks;
    this.#startRevision = context.store.revision;
    if (options.allowBookmarks) {
      this.#cleanUp.push(
        context.bookmarks.subscribe(() => {
          this.#bookmarkDue = true;
          this.#woken();
        }),
      );
    }
    if (options.timeoutSeconds !== undefined && options.timeoutSeconds > 0) {
      const timer = context.clock.after(options.timeoutSeconds * 1000, () => this.close());
      this.#cleanUp.push(() => timer.cancel());
    }
    cursor.onMore(() => this.#woken());
  }

  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cursor.close();
    this.#release();
    this.#woken();
  }

  #release(): void {
    this.#initial = [];
    for (const clean of this.#cleanUp.splice(0)) clean();
  }

  /** The next event without waiting; undefined when there is none now. */
  #take(): Raw | undefined {
    if (this.#ended) return undefined;
    if (this.#initialAt < this.#initial.length) {
      return { type: 'ADDED', object: this.#initial[this.#initialAt++]!, shared: undefined };
    }
    this.#initial = [];
    if (this.#announceEnd) {
      this.#announceEnd = false;
      return this.#bookmark(this.#startRevision, true);
    }
    for (;;) {
      const event = this.#cursor.next();
      if (!event) break;
      this.#startRevision = event.revision;
      const raw = this.#select(event);
      if (raw) return raw;
    }
    if (this.#cursor.expired) {
      this.#failure = expired('the watcher was too slow and lost its place: too old resource version');
      this.#ended = true;
      this.#release();
      return { type: 'ERROR', object: this.#failure.status as unknown as KubeObject, shared: undefined };
    }
    if (this.#cursor.closed) this.close();
    else if (this.#bookmarkDue) {
      this.#bookmarkDue = false;
      return this.#bookmark(this.#context.store.revision, false);
    }
    return undefined;
  }

  /** What a change means to this selection: an object may enter or leave it. */
  #select(event: StoreEvent): Raw | undefined {
    const selection = this.#selection;
    if (!selection) return { type: event.type, object: event.object, shared: event };
    const before = event.previous !== undefined && selection(event.previous);
    const after = event.type !== 'DELETED' && selection(event.object);
    if (!before && !after) return undefined;
    if (before && after) return { type: 'MODIFIED', object: event.object, shared: event };
    if (after) return { type: 'ADDED', object: event.object, shared: event };
    if (event.type === 'DELETED') return { type: 'DELETED', object: event.object, shared: event };
    // It left the selection: its last state within, under the revision of the change.
    const metadata = { ...event.previous!.metadata, resourceVersion: String(event.revision) };
    return { type: 'DELETED', object: { ...event.previous!, metadata }, shared: undefined };
  }

  #bookmark(revision: number, endOfInitial: boolean): Raw {
    const { resource, version } = this.#context;
    const object = {
      kind: resource.kind,
      apiVersion: apiVersionOf({ group: resource.group, version: version.name }),
      metadata: {
        resourceVersion: String(revision),
        creationTimestamp: null,
        ...(endOfInitial ? { annotations: { [initialEventsEnd]: 'true' } } : {}),
      },
    };
    return { type: 'BOOKMARK', object, shared: undefined };
  }

  #show(raw: Raw): WatchEvent {
    if (raw.type === 'ERROR') return { type: raw.type, object: raw.object };
    const object = raw.type === 'BOOKMARK' ? raw.object : encode(this.#context, raw.object);
    const shown = this.#presentation ? (this.#presentation.watched(object, raw.type) as KubeObject) : object;
    return { type: raw.type, object: shown };
  }

  /** There may be another event. Nobody is told within the turn of whoever wrote it. */
  #woken(): void {
    this.#wakeUp?.();
    if (this.#isServing || this.#waiting.length === 0) return;
    this.#isServing = true;
    queueMicrotask(() => this.#serve());
  }

  #serve(): void {
    this.#isServing = false;
    while (this.#waiting.length > 0) {
      const next = this.#next();
      if (!next) return;
      this.#waiting.shift()!(next);
    }
  }

  /** What the iterator gives without waiting: an event, or its end. */
  #next(): IteratorResult<WatchEvent> | undefined {
    const raw = this.#take();
    if (raw) return { done: false, value: this.#show(raw) };
    return this.#ended ? { done: true, value: undefined } : undefined;
  }

  /** Resolves when there may be another event. */
  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wakeUp = resolve;
      void this.#cursor.wait().then(resolve);
    });
  }

  [Symbol.asyncIterator](): AsyncIterator<WatchEvent> {
    return {
      next: () => {
        const next = this.#waiting.length === 0 ? this.#next() : undefined;
        if (next) return Promise.resolve(next);
        return new Promise((resolve) => this.#waiting.push(resolve));
      },
      return: () => {
        this.close();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }

  async *lines(): AsyncIterable<Buffer> {
    const form = `${this.#context.version.name} ${this.#presentation?.form ?? ''}`;
    while (!this.#ended) {
      const raw = this.#take();
      if (!raw) await this.#more();
      else yield this.#line(raw, form);
      if (raw?.type === 'ERROR') return;
    }
  }

  #line(raw: Raw, form: string): Buffer {
    if (!raw.shared || this.#presentation?.perWatch) return serialise(this.#show(raw));
    const key = `${raw.type} ${form}`;
    raw.shared.lines ??= new Map();
    let line = raw.shared.lines.get(key);
    if (!line) {
      line = serialise(this.#show(raw));
      raw.shared.lines.set(key, line);
    }
    return line;
  }
}

/** A watch that was accepted only to say why it cannot be. */
class EndedWatch implements ServerWatch {
  readonly #event: WatchEvent;

  constructor(error: StatusError) {
    this.#event = { type: 'ERROR', object: error.status as unknown as KubeObject };
  }

  close(): void {
    // It has ended already.
  }

  async *[Symbol.asyncIterator](): AsyncIterator<WatchEvent> {
    yield this.#event;
  }

  async *lines(): AsyncIterable<Buffer> {
    yield serialise(this.#event);
  }
}

function serialise(event: WatchEvent): Buffer {
  return Buffer.from(`${JSON.stringify(event)}\n`);
}
