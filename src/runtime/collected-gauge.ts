// SPDX-License-Identifier: Apache-2.0
// Gauges that are read when somebody scrapes: about each node, pod or condition there can be hundreds of thousands of
// series, and all of them are in memory already in another form. Nothing is kept, and what is gone is gone.
import type { MetricDeclaration } from './metrics.ts';

/** One series as it is written: its labels as `labelText` gives them, and its value. */
export interface CollectedSample {
  readonly labels: string;
  readonly value: number;
}

/** Gives the series of a gauge as they are now. Called at each scrape. */
export type Collector = () => Iterable<CollectedSample>;

/** Labels in the text format, without braces: `a="1",b="2"`. Texts of different labels may be joined with a comma. */
export function labelText(labels: Readonly<Record<string, string>>): string {
  let text = '';
  for (const name in labels) text += `${text === '' ? '' : ','}${name}="${escaped(labels[name]!)}"`;
  return text;
}

const special = /[\\\n"]/;

function escaped(value: string): string {
  if (!special.test(value)) return value;
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

/** How much text is handed out at once. */
const chunkLength = 64 * 1024;

/** A gauge and whoever knows its series. */
export class CollectedGauge {
  readonly #declaration: MetricDeclaration<'gauge'>;
  readonly #collectors = new Set<Collector>();

  constructor(declaration: MetricDeclaration<'gauge'>) {
    this.#declaration = declaration;
  }

  /** Adds a source of series. Sources must not give the same series. Returns the undo. */
  add(collector: Collector): () => void {
    this.#collectors.add(collector);
    return () => void this.#collectors.delete(collector);
  }

  /** The gauge in the text format, in pieces; nothing when it has no series. */
  *chunks(): Generator<string, void, undefined> {
    const { name, help } = this.#declaration;
    const header = `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} gauge\n`;
    let text = '';
    let empty = true;
    for (const collector of this.#collectors) {
      for (const { labels, value } of collector()) {
        if (empty) text = header;
        empty = false;
        text += labels === '' ? `${name} ${valueText(value)}\n` : `${name}{${labels}} ${valueText(value)}\n`;
        if (text.length < chunkLength) continue;
        yield text;
        text = '';
      }
    }
    if (!empty) yield `${text}\n`;
  }

  /** The value of the first series that has all of these labels. */
  value(labels: Readonly<Record<string, string>>): number | undefined {
    const wanted = Object.keys(labels).map((name) => `,${labelText({ [name]: labels[name]! })},`);
    for (const collector of this.#collectors) {
      for (const sample of collector()) {
        const text = `,${sample.labels},`;
        if (wanted.every((pair) => text.includes(pair))) return sample.value;
      }
    }
    return undefined;
  }
}

function valueText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}
