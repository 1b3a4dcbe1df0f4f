// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { embeddedClouds } from '../embedded-clouds.ts';
import type { DemoEvent } from './events.ts';
import { perform } from './perform.ts';
import { Screen, type Terminal } from './screen.ts';
import type { World } from './world.ts';

/** A terminal that knows the three escapes we use. Rows above the top are lost: it cannot go up to them. */
class FakeTerminal implements Terminal {
  readonly columns: number;
  readonly rows: number;
  lines = [''];
  #row = 0;

  constructor(columns: number, rows: number) {
    this.columns = columns;
    this.rows = rows;
  }

  write(text: string): void {
    for (const [i, part] of text.split('\u001b').entries()) {
      const end = i === 0 ? 0 : part.search(/[A-Za-z]/) + 1;
      if (end > 0) this.#obey(part.slice(1, end));
      for (const [j, line] of part.slice(end).split('\n').entries()) {
        if (j > 0) this.#down();
        this.#put(line);
      }
    }
  }

  #down(): void {
    this.#row++;
    if (this.#row === this.lines.length) this.lines.push('');
  }

  #put(text: string): void {
    this.lines[this.#row] += text;
    expect(this.lines[this.#row]!.length, 'a line that wraps breaks the picture').toBeLessThan(this.columns);
  }

  #obey(escape: string): void {
    const count = Number(escape.slice(0, -1));
    switch (escape.slice(-1)) {
      case 'A':
        expect(count, 'what has scrolled away cannot be drawn again').toBeLessThan(this.rows);
        this.#row -= count;
        break;
      case 'K':
        this.lines[this.#row] = '';
        break;
      case 'J':
        this.lines.length = this.#row + 1;
        this.lines[this.#row] = '';
        break;
      case 'm':
        break;
      default:
        throw new Error(`an escape that is not known: ${JSON.stringify(escape)}`);
    }
  }
}

type Moment = readonly [DemoEvent, World];

async function recorded(name: string): Promise<Moment[]> {
  const [cloud] = embeddedClouds;
  const moments: Moment[] = [];
  const show = (event: DemoEvent, world: World): void => void moments.push([event, world]);
  const scenario = cloud!.scenarios.find((one) => one.name === name)!;
  await perform({ scenario, clouds: [cloud!], show, signal: new AbortController().signal, virtual: {}, tickMs: 1000 });
  return moments;
}

test('one picture is drawn again and again, and the summary stays below it', async () => {
  const terminal = new FakeTerminal(120, 40);
  const screen = new Screen({ terminal, colors: true });
  let atTheTop: string[] = [];
  for (const [event, world] of await recorded('inflate')) {
    screen.show(event, world);
    if (event.type === 'reached' && atTheTop.length === 0) atTheTop = [...terminal.lines];
  }
  const [title, blank, ...rest] = atTheTop;
  expect(title).toMatch(
    /^inflate: a deployment grows from 0 to 5 pods of one CPU each, and shrinks to 0 again {2}00:04\.\d$/,
  );
  expect(blank).toBe('');
  expect(rest.slice(0, 6)).toEqual([
    '  ✔ the deployment inflate is created, with no pods yet',
    expect.stringMatching(/^ {2}✔ it is scaled to 5 \d\.\d s$/),
    '  · it is scaled to 0',
    '',
    `  pods      ${'█'.repeat(40)} 5 running`,
    expect.stringMatching(/^ {2}machines {2}\d$/),
  ]);
  expect(rest.filter((line) => /^ {2}kwok-\w{5} .* ready$/.test(line)).length).toBeGreaterThan(0);
  expect(rest.at(-2)).toMatch(/^00:04\.\d {4}kwok-\w{5} takes pods, 3\.0 s after it was bought$/);
  const end = terminal.lines.join('\n');
  expect(end.match(/inflate: a deployment grows/g)).toHaveLength(1);
  expect(end).toContain('  ✔ it is scaled to 0');
  expect(end).toContain('The end.\n  bought   ');
});

test('fits terminals of any size', async () => {
  const moments = await recorded('zones');
  for (const [columns, rows] of [
    [40, 12],
    [80, 24],
    [200, 60],
  ] as const) {
    const terminal = new FakeTerminal(columns, rows);
    const screen = new Screen({ terminal, colors: true });
    // The summary is text like any other: it may wrap.
    for (const [event, world] of moments) if (event.type !== 'summary') screen.show(event, world);
    expect(terminal.lines.length).toBeLessThanOrEqual(rows);
  }
});
