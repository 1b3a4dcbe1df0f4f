// SPDX-License-Identifier: Apache-2.0
// The production logger: JSON lines with upstream's keys, or coloured ones for people at a terminal.
import { type DestinationStream, destination, type Logger as Pino, pino } from 'pino';
import type { Clock } from '../base/clock.ts';
import { KarpenterError, messageOf } from '../base/errors.ts';
import { computeFields, type LogFields, type Logger, type LogLevel, renderFields } from './logging.ts';

/** Where lines go. */
export interface LogOutput {
  write(line: string): void;
}

export interface LoggerOptions {
  readonly clock: Clock;
  /** `info` unless told; '' means the same. */
  readonly level?: LogLevel | '';
  /** Each line goes to all of them. */
  readonly outputs: readonly LogOutput[];
  /** In every line: `logger`, `commit`, … */
  readonly fields?: object;
  /**
   * Of lines with the same level and message, the first `first` of a second are written and then each `thereafter`th:
   * a failing dependency must not fill the disk. None are left out unless told.
   */
  readonly sampling?: { readonly first: number; readonly thereafter: number };
}

/** Upstream's sampling. */
export const productionSampling = { first: 100, thereafter: 100 } as const;

/** A logger that writes one JSON object a line: level, time, the fields, message. */
export function createLogger(options: LoggerOptions): Logger {
  const { clock, outputs } = options;
  const stream: DestinationStream = {
    write(line) {
      for (const output of outputs) output.write(line);
    },
  };
  const root = pino(
    {
      level: options.level || 'info',
      base: null,
      messageKey: 'message',
      timestamp: () => `,"time":"${new Date(clock.now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label.toUpperCase() }) },
    },
    stream,
  );
  const sampler = options.sampling && new Sampler(clock, options.sampling);
  return new PinoLogger({ pino: root, sampler }, options.fields ? renderFields(options.fields) : {});
}

/** What a logger shares with those made of it. */
interface Sink {
  readonly pino: Pino;
  readonly sampler: Sampler | undefined;
}

/** Fields are kept as they are until a line is written: a key that comes again takes the place of the first. */
class PinoLogger implements Logger {
  readonly #sink: Sink;
  readonly #fields: object;

  constructor(sink: Sink, fields: object) {
    this.#sink = sink;
    this.#fields = fields;
  }

  debug(message: string, fields?: LogFields): void {
    this.#write('debug', message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#write('info', message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#write('warn', message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.#write('error', message, fields);
  }

  with(fields: object): Logger {
    return new PinoLogger(this.#sink, { ...this.#fields, ...renderFields(fields) });
  }

  #write(level: LogLevel, message: string, fields: LogFields | undefined): void {
    const { pino, sampler } = this.#sink;
    if (!pino.isLevelEnabled(level)) return;
    if (sampler && !sampler.admits(level, message)) return;
    // As upstream: only who debugs wants to know, and pays for it.
    const own = pino.isLevelEnabled('debug') ? { ...callerField(this[level]), ...this.#fields } : this.#fields;
    try {
      const data = computeFields(fields);
      pino[level](data ? { ...own, ...renderFields(data) } : own, message);
    } catch (error) {
      // Fields that cannot be computed or written must not stop who logs them.
      pino[level]({ ...own, loggingError: messageOf(error) }, message);
    }
  }
}

/** Who called `method`, as folder, file and line: `provisioning/provisioner.ts:120`. */
function callerField(method: (message: string) => void): { readonly caller?: string } {
  const here: { stack?: string } = {};
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 1;
  Error.captureStackTrace(here, method);
  Error.stackTraceLimit = limit;
  const caller = /([^/\\]+[/\\][^/\\]+:\d+):\d+\)?$/.exec(here.stack ?? '')?.[1];
  return caller === undefined ? {} : { caller: caller.replace('\\', '/') };
}

/** Counts equal lines within a second. */
class Sampler {
  readonly #clock: Clock;
  readonly #first: number;
  readonly #thereafter: number;
  readonly #counts = new Map<string, number>();
  #second = -1;

  constructor(clock: Clock, { first, thereafter }: { readonly first: number; readonly thereafter: number }) {
    this.#clock = clock;
    this.#first = first;
    this.#thereafter = thereafter;
  }

  admits(level: LogLevel, message: string): boolean {
    const second = Math.floor(this.#clock.monotonic() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#counts.clear();
    }
    const key = `${level} ${message}`;
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return count <= this.#first || (count - this.#first) % this.#thereafter === 0;
  }
}

/**
 * Opens `stdout`, `stderr` and files (appended to; their folders must exist). Throws `LogOutputError` for a file that
 * cannot be opened; what fails later, while writing, goes to `onError`, never to the caller.
 */
export function openOutputs(paths: readonly string[], onError: (error: Error) => void): LogOutput[] {
  const descriptors: Readonly<Record<string, number>> = { stdout: 1, stderr: 2 };
  return paths.map((path) => {
    try {
      // Synchronous: the last lines before a crash are the ones that matter.
      const output = destination({ dest: descriptors[path] ?? path, sync: true });
      output.on('error', onError);
      return output;
    } catch (error) {
      throw new LogOutputError(path, error);
    }
  });
}

/** A log file cannot be opened. */
export class LogOutputError extends KarpenterError {
  constructor(path: string, cause: unknown) {
    super('KRP_LOG_OUTPUT', `cannot write the log to ${path}: ${messageOf(cause)}`, { cause });
  }
}

/**
 * An output that shows lines to people: time, level, controller, message and fields, in colours if wanted. What only
 * machines need (the reconcileID, the commit, the caller) is left out. The formatter is loaded here and not before: a server never
 * needs it.
 */
export async function prettyOutput(target: LogOutput, options: { readonly colors: boolean }): Promise<LogOutput> {
  const { prettyFactory } = await import('pino-pretty');
  const format = prettyFactory({
    colorize: options.colors,
    colorizeObjects: false,
    messageKey: 'message',
    timestampKey: 'time',
    translateTime: 'SYS:HH:MM:ss.l',
    customLevels: 'DEBUG:20,INFO:30,WARN:40,ERROR:50',
    hideObject: true,
    // Not a field of ours, or the name of an object would stand in front of every message.
    ignore: 'name',
    messageFormat: (line, _key, _label, { colors }) => {
      const { controller, message, stacktrace } = line as Record<string, unknown>;
      const parts = [
        ...(typeof controller === 'string' ? [colors.magenta(controller)] : []),
        String(message),
        ...shownFields(line).map(([key, value]) => `${colors.gray(`${key}=`)}${value}`),
      ];
      return typeof stacktrace === 'string' ? `${parts.join(' ')}\n${colors.gray(stacktrace)}` : parts.join(' ');
    },
  });
  return {
    write(line) {
      const shown = format(line);
      if (typeof shown === 'string') target.write(shown);
    },
  };
}

const hiddenFields = new Set(
  'level time logger commit caller message controller stacktrace namespace name reconcileID'.split(' '),
);

/** The fields worth a look, an object by its name alone: `NodeClaim=x-1`, `Pod=default/web-1`. */
function shownFields(line: object): [string, string][] {
  return Object.entries(line)
    .filter(([key]) => !hiddenFields.has(key))
    .map(([key, value]: [string, unknown]) => [key, shownValue(value)]);
}

function shownValue(value: unknown): string {
  if (typeof value === 'string') return /^[^\s"]+$/.test(value) ? value : JSON.stringify(value);
  if (typeof value === 'object' && value !== null && 'name' in value) {
    const { name, namespace, ...rest } = value as { name: unknown; namespace?: unknown };
    if (typeof name === 'string' && Object.keys(rest).length === 0) {
      return typeof namespace === 'string' ? `${namespace}/${name}` : name;
    }
  }
  return JSON.stringify(value);
}

/** Whether output to a terminal should be coloured: https://no-color.org. */
export function wantsColors(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): boolean {
  return isTerminal && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
}
