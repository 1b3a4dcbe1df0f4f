// SPDX-License-Identifier: Apache-2.0
// One exchange with the API: the request as it comes, what a handler sees of it, and how lists are cut into pages.
import { parseFilter } from './filter.ts';
import { badRequest, notFound } from './refusal.ts';

/** One HTTP request; `path` begins with `/v4` or `/v4beta` and may carry a query. Header names are lower-case. */
export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

/** The answer as it goes over the wire. */
export interface ApiResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Json = Readonly<Record<string, unknown>>;

/** Anything that is no object reads as an empty one: what it lacks is then found missing. */
export function asObject(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

/** Anything that is no text reads as none. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** What a handler sees. */
export interface Call {
  readonly method: string;
  /** Decoded, by the names in the route. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Json;
  /** `/v4beta`: some fields are told only there. */
  readonly beta: boolean;
}

/** Found, or 404. */
export function found<T>(value: T | undefined): T {
  if (value === undefined) throw notFound();
  return value;
}

/** A number in a path; what is none is not there. */
export function idOf(call: Call, name: string): number {
  const text = call.params[name] ?? '';
  if (!/^\d{1,15}$/.test(text)) throw notFound();
  return Number(text);
}

const smallestPage = 25;
const largestPage = 500;
const usualPage = 100;

/** One page of a list, filtered and ordered as `X-Filter` says. */
export function page(call: Call, items: readonly object[]): object {
  const filter = parseFilter(call.headers['x-filter']);
  const chosen = filter.apply(items);
  const size = wholeNumber(call, 'page_size', usualPage);
  if (size < smallestPage || size > largestPage) {
    throw badRequest(`Must be ${smallestPage}-${largestPage}`, 'page_size');
  }
  const number = wholeNumber(call, 'page', 1);
  if (number < 1) throw badRequest('Must be 1 or greater', 'page');
  const pages = Math.max(1, Math.ceil(chosen.length / size));
  if (number > pages) throw notFound();
  const data = chosen.slice((number - 1) * size, number * size);
  return { data, page: number, pages, results: chosen.length };
}

function wholeNumber(call: Call, name: string, otherwise: number): number {
  const text = call.query.get(name);
  if (text === null || text === '') return otherwise;
  if (!/^-?\d{1,9}$/.test(text)) throw badRequest('Must be an integer', name);
  return Number(text);
}

/** Time as the API writes it: UTC, without a zone. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19);
}
