// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { VirtualClock } from '../base/clock.ts';
import { KarpenterError } from '../base/errors.ts';
import {
  ChangeMonitor,
  formatEntries,
  formatList,
  objectField,
  RecordingLogger,
  renderError,
  silentLogger,
} from './logging.ts';
import {
  createLogger,
  type LoggerOptions,
  openOutputs,
  prettyOutput,
  productionSampling,
  wantsColors,
} from './pino-logger.ts';

function makeLogger(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const clock = new VirtualClock();
  const log = createLogger({ clock, outputs: [{ write: (line) => void lines.push(line) }], ...options });
  return { clock, log, lines, parsed: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

describe('a line', () => {
  test('is one JSON object with the keys of upstream', () => {
    const { log, lines, parsed } = makeLogger({ fields: { logger: 'controller', commit: 'abc1234' } });
    log
      .with({ controller: 'nodeclaim.lifecycle', ...objectField({ kind: 'NodeClaim', metadata: { name: 'n-1' } }) })
      .info('launched nodeclaim', { 'provider-id': 'kwok://n-1' });
    expect(lines[0]).toMatch(/^\{"level":"INFO",.*\}\n$/);
    expect(parsed()).toEqual([
      {
        level: 'INFO',
        time: '2026-01-01T00:00:00.000Z',
        logger: 'controller',
        commit: 'abc1234',
        controller: 'nodeclaim.lifecycle',
        NodeClaim: { name: 'n-1' },
        'provider-id': 'kwok://n-1',
        message: 'launched nodeclaim',
      },
    ]);
  });

  test('shows an error as its message with its data behind it, and the stack of a defect', () => {
    const { log, parsed } = makeLogger();
    const refused = new KarpenterError('KRP_X', 'no capacity', { details: { zone: 'a', tries: 3 } });
    log.error('Reconciler error', { error: refused });
    log.error('Reconciler error', { error: new TypeError('x is not a function') });
    expect(parsed()[0]).toMatchObject({ level: 'ERROR', error: 'no capacity (zone=a, tries=3)' });
    expect(parsed()[0]).not.toHaveProperty('stacktrace');
    expect(parsed()[1]).toMatchObject({
      error: 'x is not a function',
      stacktrace: expect.stringContaining('logging.test') as unknown,
    });
  });

  test('below the level is not written, and its fields are not even computed', () => {
    const { log, lines } = makeLogger({ level: 'info' });
    log.debug('detail', () => {
      throw new Error('computed');
    });
    expect(lines).toEqual([]);
    const verbose = makeLogger({ level: 'debug' });
    verbose.log.debug('detail', () => ({ n: 1 }));
    expect(verbose.parsed()[0]).toMatchObject({ level: 'DEBUG', n: 1, message: 'detail' });
  });

  test('says who wrote it, to those who debug and to nobody else', () => {
    const verbose = makeLogger({ level: 'debug' });
    verbose.log.with({ controller: 'x' }).info('went on', { n: 1 });
    verbose.log.debug('detail');
    for (const line of verbose.parsed()) expect(line['caller']).toMatch(/^runtime\/logging\.test\.ts:\d+$/);
    expect(verbose.parsed()[0]?.['caller']).not.toBe(verbose.parsed()[1]?.['caller']);
    const usual = makeLogger({ level: 'info' });
    usual.log.error('failed');
    expect(usual.parsed()[0]).not.toHaveProperty('caller');
  });

  test('has each key once: what is said last holds', () => {
    const { log, lines } = makeLogger({ fields: { logger: 'controller' } });
    log
      .with({ Node: { name: 'a' } })
      .with({ Node: { name: 'b' } })
      .info('initialized nodeclaim', { Node: { name: 'c' } });
    expect(lines[0]?.match(/"Node":/g)).toHaveLength(1);
    expect(lines[0]).toContain('"Node":{"name":"c"}');
  });

  test('whose fields cannot be computed is written all the same', () => {
    const { log, parsed } = makeLogger();
    log.info('went on', () => {
      throw new Error('no such thing');
    });
    expect(parsed()[0]).toMatchObject({ message: 'went on', loggingError: 'no such thing' });
  });

  test('that comes too often is thinned out, and counted anew each second', async () => {
    const { clock, log, lines } = makeLogger({ sampling: productionSampling });
    for (let i = 0; i < 350; i++) log.info('again');
    expect(lines).toHaveLength(102);
    log.info('something else');
    expect(lines).toHaveLength(103);
    await clock.step(1000);
    log.info('again');
    expect(lines).toHaveLength(104);
  });
});

describe('an output', () => {
  test('can be a file, which is appended to', () => {
    const folder = mkdtempSync(join(tmpdir(), 'log-'));
    const path = join(folder, 'karpenter.log');
    for (const message of ['hello', 'again']) {
      const outputs = openOutputs([path], (error) => expect.unreachable(error.message));
      createLogger({ clock: new VirtualClock(), outputs }).info(message);
    }
    expect(readFileSync(path, 'utf8')).toMatch(/"hello"\}\n.*"again"\}\n$/);
    rmSync(folder, { recursive: true });
  });

  test('that cannot be opened is an error that names it', () => {
    const path = join(tmpdir(), 'no', 'such', 'folder', 'x.log');
    expect(() => openOutputs([path], () => undefined)).toThrow('cannot write the log to');
  });

  test('has every key once, the last value of it', () => {
    const lines: string[] = [];
    createLogger({ clock: new VirtualClock(), outputs: [{ write: (line) => void lines.push(line) }], fields: { a: 1 } })
      .with({ Node: { name: 'old' } })
      .with({ Node: { name: 'n-1' } })
      .info('initialized nodeclaim', { Node: { name: 'n-1' }, a: 2 });
    expect(lines[0]).toMatch(/"a":2,"Node":\{"name":"n-1"\},"message":"initialized nodeclaim"\}\n$/);
    expect(lines[0]!.match(/"Node"/g)).toHaveLength(1);
  });

  test('for people has what they look for and no more, and colours only when wanted', async () => {
    const shown: string[] = [];
    const target = { write: (line: string) => void shown.push(line) };
    for (const colors of [false, true]) {
      createLogger({ clock: new VirtualClock(), outputs: [await prettyOutput(target, { colors })] })
        .with({ logger: 'controller', commit: 'abc', controller: 'disruption', name: 'x', reconcileID: 'r' })
        .warn('disrupting node(s)', {
          reason: 'drifted',
          why: 'two words',
          NodeClaim: { name: 'n-1' },
          Pod: { name: 'p', namespace: 'default' },
          limits: { cpu: 4 },
        });
    }
    expect(shown[0]).toMatch(
      /^\[\d\d:\d\d:\d\d\.000\] WARN: disruption disrupting node\(s\) reason=drifted why="two words" NodeClaim=n-1 Pod=default\/p limits=\{"cpu":4\}\n$/,
    );
    expect(shown[1]).toContain('\u001b[');
  });

  test('for people shows the stack of a defect on lines of its own', async () => {
    const shown: string[] = [];
    const pretty = await prettyOutput({ write: (line) => void shown.push(line) }, { colors: false });
    createLogger({ clock: new VirtualClock(), outputs: [pretty] }).error('failed', { error: new TypeError('oh no') });
    expect(shown[0]).toMatch(/ERROR: failed error="oh no"\nTypeError: oh no\n {4}at /);
  });

  test.each([
    [true, {}, true],
    [false, {}, false],
    [true, { NO_COLOR: '1' }, false],
    [true, { NO_COLOR: '' }, true],
    [true, { TERM: 'dumb' }, false],
  ])('on a terminal (%s) with %o is coloured: %s', (terminal, env, colored) => {
    expect(wantsColors(terminal, env)).toBe(colored);
  });
});

test('a recording logger keeps what was said, with the fields of its parents', () => {
  const log = new RecordingLogger({ a: 1 });
  log.with({ b: 2 }).info('said', () => ({ c: 3 }));
  log.debug('whispered');
  expect(log.lines[0]).toEqual({ level: 'info', message: 'said', fields: { a: 1, b: 2, c: 3 } });
  expect(log.messages()).toEqual(['said']);
  expect(log.messages('debug')).toEqual(['said', 'whispered']);
});

test('a silent logger says nothing and computes nothing', () => {
  silentLogger.with({}).error('x', () => expect.unreachable('computed'));
});

describe('a change monitor', () => {
  test('tells news from repetition, whatever the order of keys and items', () => {
    const monitor = new ChangeMonitor(new VirtualClock());
    expect(monitor.hasChanged('zones', { a: ['x', 'y'], b: 1 })).toBe(true);
    expect(monitor.hasChanged('zones', { b: 1, a: ['y', 'x'] })).toBe(false);
    expect(monitor.hasChanged('types', { a: ['x', 'y'], b: 1 })).toBe(true);
    expect(monitor.hasChanged('zones', { a: ['x'], b: 1 })).toBe(true);
    expect(monitor.hasChanged('sets', new Set(['p', 'q']))).toBe(true);
    expect(monitor.hasChanged('sets', new Set(['q', 'p']))).toBe(false);
  });

  test('repeats the news after a day and forgets what is older', async () => {
    const clock = new VirtualClock();
    const monitor = new ChangeMonitor(clock);
    monitor.hasChanged('a', 1);
    await clock.step(24 * 3_600_000 - 1);
    expect(monitor.hasChanged('a', 1)).toBe(false);
    await clock.step(1);
    expect(monitor.hasChanged('b', 1)).toBe(true);
    expect(monitor.size).toBe(1);
    expect(monitor.hasChanged('a', 1)).toBe(true);
  });
});

test('long lists are cut', () => {
  expect(formatList(['a', 'b', 'c', 'd', 'e'], 2)).toBe('a, b and 3 other(s)');
  expect(formatList(['a', 'b'], 2)).toBe('a, b');
  expect(formatList([], 2)).toBe('');
  expect(formatEntries({ b: 2, a: 1, c: 3 }, 2)).toBe('a: 1, b: 2 and 1 other(s)');
});

test('anything thrown has words', () => {
  expect(renderError('plain')).toBe('plain');
  expect(renderError(new Error('x'))).toBe('x');
});
