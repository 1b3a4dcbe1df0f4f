// SPDX-License-Identifier: Apache-2.0
// A play on a terminal: one picture that is drawn again whenever something happens, and the summary below it.
import type { DemoEvent, PodCounts } from './events.ts';
import { cost, duration, linesOf, price, stamp, summaryLines } from './text.ts';
import type { Machine, World } from './world.ts';

/** What a terminal needs to be for this. */
export interface Terminal {
  write(text: string): void;
  readonly columns: number;
  readonly rows: number;
}

export interface ScreenOptions {
  readonly terminal: Terminal;
  readonly colors: boolean;
}

const newsLines = 6;
const barWidth = 40;

/** Draws in place: it never scrolls what was there before out of sight, and leaves its last picture behind. */
export class Screen {
  readonly #options: ScreenOptions;
  readonly #paint: Paint;
  #drawn = 0;
  #title = '';
  #acts: readonly string[] = [];
  #current = -1;
  #goal: string | undefined;
  #reached = new Map<number, number>();
  #news: string[] = [];
  #spent = 0;
  #at = 0;

  constructor(options: ScreenOptions) {
    this.#options = options;
    this.#paint = paintFor(options.colors);
  }

  /** Takes in what happened, and draws the world as it is then. */
  show(event: DemoEvent, world: World): void {
    this.#at = event.at;
    switch (event.type) {
      case 'begin':
        this.#title = `${event.scenario}: ${event.description}`;
        this.#acts = event.acts;
        break;
      case 'act':
        this.#current = event.act;
        this.#goal = event.goal;
        break;
      case 'reached':
        this.#reached.set(event.act, event.afterSeconds);
        break;
      case 'state':
        break;
      case 'summary':
        this.#current = this.#acts.length;
        this.#draw(world);
        this.#options.terminal.write(`\n${summaryLines(event).join('\n')}\n`);
        return;
      case 'gone':
        this.#spent += event.cost;
        this.#news.push(linesOf(event)[0]!);
        break;
      case 'bought':
      case 'ready':
      case 'leaving':
        this.#news.push(linesOf(event)[0]!);
    }
    this.#draw(world);
  }

  #draw(world: World): void {
    const { terminal } = this.#options;
    const lines = this.#picture(world).slice(0, Math.max(1, terminal.rows - 1));
    const cut = lines.map((line) => clip(line, terminal.columns));
    const up = this.#drawn > 0 ? `\u001b[${this.#drawn}A` : '';
    // Each line is cleared as it is written, and what is below the new end goes too: nothing flickers.
    terminal.write(`${up}${cut.map((line) => `\u001b[2K${line}\n`).join('')}\u001b[J`);
    this.#drawn = cut.length;
  }

  #picture(world: World): string[] {
    const { bold, dim } = this.#paint;
    const acts = this.#acts.map((title, i) => this.#act(title, i));
    const head = [`${bold(this.#title)}  ${dim(stamp(this.#at))}`, '', ...acts, ''];
    const news = this.#news.slice(-newsLines).map(dim);
    return [...head, ...this.#numbers(world), '', ...this.#machines(world.machines), ...news];
  }

  #act(title: string, number: number): string {
    const { green, dim, bold } = this.#paint;
    const after = this.#reached.get(number);
    if (after !== undefined) return `  ${green('✔')} ${title} ${dim(duration(after))}`;
    if (number < this.#current) return `  ${green('✔')} ${title}`;
    const until = this.#goal === undefined ? '' : dim(` … until ${this.#goal}`);
    return number === this.#current ? `  ${bold('▸')} ${bold(title)}${until}` : `  ${dim(`· ${title}`)}`;
  }

  #numbers({ pods, machines, pricePerHour }: World): string[] {
    const { bold, dim } = this.#paint;
    const told = Object.entries(pods)
      .filter(([, count]) => count > 0)
      .map(([phase, count]) => `${count} ${phase}`)
      .join(', ');
    const spent = this.#spent > 0 ? dim(` (${cost(this.#spent)} for those that are gone)`) : '';
    return [
      `  pods      ${this.#bar(pods)} ${told || 'none'}`,
      `  machines  ${bold(String(machines.length))}`,
      `  cost      ${bold(price(pricePerHour))}${spent}`,
    ];
  }

  #bar(pods: PodCounts): string {
    const { green, yellow, red, dim } = this.#paint;
    const all = pods.running + pods.starting + pods.pending + pods.leaving;
    if (all === 0) return dim('░'.repeat(barWidth));
    const cells = (upTo: number): number => Math.round((upTo / all) * barWidth);
    const [a, b, c] = [
      cells(pods.running),
      cells(pods.running + pods.starting),
      cells(pods.running + pods.starting + pods.leaving),
    ];
    return green('█'.repeat(a)) + yellow('▓'.repeat(b - a)) + dim('▒'.repeat(c - b)) + red('░'.repeat(barWidth - c));
  }

  #machines(machines: readonly Machine[]): string[] {
    if (machines.length === 0) return [];
    const head = ['NODECLAIM', 'TYPE', 'CAPACITY', 'ZONE', '$/H', 'PODS', 'STATE'];
    const most = Math.max(1, this.#options.terminal.rows - this.#acts.length - newsLines - 12);
    const rows = machines
      .slice(0, most)
      .map((m) => [
        m.nodeClaim,
        m.instanceType || '-',
        m.capacityType || '-',
        m.zone || '-',
        m.pricePerHour === 0 ? '-' : m.pricePerHour.toFixed(4),
        String(m.pods),
        m.state,
      ]);
    const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]!.length)));
    const line = (row: readonly string[]): string => `  ${row.map((cell, i) => cell.padEnd(widths[i]!)).join('  ')}`;
    const more = machines.length - rows.length;
    return [this.#paint.dim(line(head)), ...rows.map(line), ...(more > 0 ? [`  and ${more} more`] : []), ''];
  }
}

type Paint = Readonly<Record<'bold' | 'dim' | 'green' | 'yellow' | 'red', (text: string) => string>>;

function paintFor(colors: boolean): Paint {
  const style =
    (code: number) =>
    (text: string): string =>
      colors && text !== '' ? `\u001b[${code}m${text}\u001b[0m` : text;
  return { bold: style(1), dim: style(2), green: style(32), yellow: style(33), red: style(31) };
}

/** Cuts a line to what fits, not counting escapes: a line that wraps would break the picture. */
function clip(line: string, columns: number): string {
  const [first = '', ...styled] = line.split('\u001b');
  let left = columns - 1;
  const take = (text: string): string => {
    const fits = text.slice(0, Math.max(0, left));
    left -= fits.length;
    return fits;
  };
  let text = take(first);
  for (const part of styled) {
    const end = part.indexOf('m') + 1;
    text += `\u001b${part.slice(0, end)}${take(part.slice(end))}`;
  }
  return text;
}
