// SPDX-License-Identifier: Apache-2.0
// `docs/images/demo.svg`: a play of the demo as a chart of pods, machines and cost over time. It is drawn from the events
// of a real run on virtual time, which are the same on every machine.

import type { DemoEvent, StateChanged } from '../../src/cli/demo/events.ts';
import { perform } from '../../src/cli/demo/perform.ts';
import { price } from '../../src/cli/demo/text.ts';
import { embeddedClouds } from '../../src/cli/embedded-clouds.ts';
import type { Generator } from './generator.ts';

/** The events of a scenario, as `karpenter demo SCENARIO --speed -o json` prints them. */
export async function eventsOf(name: string): Promise<DemoEvent[]> {
  const cloud = embeddedClouds[0]!;
  const scenario = cloud.scenarios.find((one) => one.name === name)!;
  const events: DemoEvent[] = [];
  const show = (event: DemoEvent): void => void events.push(event);
  await perform({ scenario, clouds: [cloud], show, signal: new AbortController().signal, virtual: {} });
  return events;
}

const width = 880;
const left = 100;
const right = 20;
const bandHeight = 84;
const bandGap = 34;
const top = 96;

interface Layer {
  readonly css: string;
  readonly value: (state: StateChanged) => number;
}

interface Band {
  readonly name: string;
  /** Stacked on each other, the first at the bottom. */
  readonly layers: readonly Layer[];
  readonly label: (value: number) => string;
}

const bands: readonly Band[] = [
  {
    name: 'pods',
    layers: [
      { css: 'running', value: ({ pods }) => pods.running },
      { css: 'starting', value: ({ pods }) => pods.starting },
      { css: 'pending', value: ({ pods }) => pods.pending },
    ],
    label: String,
  },
  { name: 'machines', layers: [{ css: 'machines', value: ({ machines }) => machines }], label: String },
  { name: 'cost', layers: [{ css: 'cost', value: ({ pricePerHour }) => pricePerHour }], label: price },
];

/** The chart. Colours follow the reader's choice of a light or a dark page. */
export function pictureOf(events: readonly DemoEvent[]): string {
  const states = events.filter((event) => event.type === 'state');
  const acts = events.filter((event) => event.type === 'act');
  // A little longer than the play: one sees that nothing is left.
  const end = Math.ceil(events.at(-1)!.at) + 2;
  const x = (at: number): number => left + (at / end) * (width - left - right);
  const chartEnd = top + bands.length * (bandHeight + bandGap) - bandGap;
  const legendTop = chartEnd + 58;
  const height = legendTop + acts.length * 20 + 4;
  const parts = [
    ...bands.flatMap((band, i) => drawBand(band, states, { x, end, y: top + i * (bandHeight + bandGap) })),
    ...timeAxis(end, x, chartEnd),
    ...acts.flatMap(({ at, title, act }, i) => [
      `<line class="act" x1="${n(x(at))}" x2="${n(x(at))}" y1="${top - 10}" y2="${chartEnd}"/>`,
      ...bullet(x(at) + actOffset(acts, i), top - 22, act + 1),
      ...bullet(left + 8, legendTop + i * 20, act + 1),
      text(left + 24, legendTop + i * 20 + 4, `${clockOf(at)}  ${title}`),
    ]),
  ];
  const begin = events[0]!;
  const [title, subtitle] = begin.type === 'begin' ? [`karpenter demo ${begin.scenario}`, begin.description] : ['', ''];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escape(`${title}: ${subtitle}`)}">`,
    `<style>${css}</style>`,
    text(8, 22, title, 'title'),
    text(8, 42, subtitle, 'value'),
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

/** Bullets of acts that follow at once stand side by side. */
function actOffset(acts: readonly { readonly at: number }[], i: number): number {
  const before = acts.slice(0, i).filter(({ at }) => acts[i]!.at - at < 0.8).length;
  return before * 20;
}

function drawBand(
  { name, layers, label }: Band,
  states: readonly StateChanged[],
  { x, y, end }: { x: (at: number) => number; y: number; end: number },
): string[] {
  const sum = (state: StateChanged, upTo: number): number =>
    layers.slice(0, upTo).reduce((total, { value }) => total + value(state), 0);
  const most = Math.max(...states.map((state) => sum(state, layers.length)));
  const height = (value: number): number => y + bandHeight * (1 - value / most);
  const shapes = layers.map((layer, i) => {
    const lower = steps(states, (state) => height(sum(state, i)), x, end);
    const upper = steps(states, (state) => height(sum(state, i + 1)), x, end);
    return `<polygon class="${layer.css}" points="${[...upper, ...lower.toReversed()].join(' ')}"/>`;
  });
  const key = layers.length < 2 ? [] : legend(layers, y);
  return [
    `<line class="axis" x1="${left}" x2="${width - right}" y1="${y + bandHeight}" y2="${y + bandHeight}"/>`,
    ...shapes,
    text(8, y - 8, name, 'name'),
    text(left - 8, y + 10, label(most), 'value', 'end'),
    text(left - 8, y + bandHeight, label(0), 'value', 'end'),
    ...key,
  ];
}

function legend(layers: readonly Layer[], y: number): string[] {
  return layers.flatMap(({ css: name }, i) => [
    `<rect class="${name}" x="8" y="${y + 18 + i * 18}" width="10" height="10"/>`,
    text(22, y + 27 + i * 18, name, 'value'),
  ]);
}

/** Corners of a line that jumps when something changes. */
function steps(
  states: readonly StateChanged[],
  height: (state: StateChanged) => number,
  x: (at: number) => number,
  end: number,
): string[] {
  return states.flatMap((state, i) => {
    const next = states[i + 1]?.at ?? end;
    const y = n(height(state));
    return [`${n(x(state.at))},${y}`, `${n(x(next))},${y}`];
  });
}

function timeAxis(end: number, x: (at: number) => number, y: number): string[] {
  const marks = Array.from({ length: Math.floor(end / 10) + 1 }, (_, i) => i * 10);
  return marks.map((at) => text(x(at), y + 20, `${at} s`, 'value', 'middle'));
}

function bullet(cx: number, cy: number, number: number): string[] {
  return [
    `<circle class="bullet" cx="${n(cx)}" cy="${cy}" r="9"/>`,
    text(cx, cy + 4, String(number), 'number', 'middle'),
  ];
}

function text(x: number, y: number, content: string, css = 'plain', anchor = 'start'): string {
  return `<text class="${css}" x="${n(x)}" y="${n(y)}" text-anchor="${anchor}">${escape(content)}</text>`;
}

function clockOf(at: number): string {
  return `${at.toFixed(1)} s`.padStart(7, '\u2007');
}

function n(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function escape(value: string): string {
  return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

const css = `
text { font: 12px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2328; }
.title { font-size: 14px; font-weight: 600; }
.name { font-weight: 600; }
.value { fill: #59636e; font-size: 11px; }
.number { fill: #ffffff; font-size: 11px; font-weight: 600; }
.bullet { fill: #59636e; }
.axis { stroke: #d1d9e0; }
.act { stroke: #818b98; stroke-dasharray: 2 3; }
.running { fill: #2da44e; }
.starting { fill: #d4a72c; }
.pending { fill: #eac7c4; }
.machines { fill: #0969da; }
.cost { fill: #8250df; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .value { fill: #9198a1; }
  .number { fill: #0d1117; }
  .bullet { fill: #9198a1; }
  .axis { stroke: #3d444d; }
  .act { stroke: #656c76; }
  .running { fill: #3fb950; }
  .starting { fill: #d29922; }
  .pending { fill: #67383a; }
  .machines { fill: #4493f8; }
  .cost { fill: #a371f7; }
}
`;

export const pictureGenerators: readonly Generator[] = [
  { path: 'docs/images/demo.svg', content: async () => pictureOf(await eventsOf('zones')) },
];
