// SPDX-License-Identifier: Apache-2.0
// The part of JSONPath that printer columns and selectable fields use: keys, quoted keys, indexes, `[*]`, and filters
// by equality such as `.status.conditions[?(@.type=="Ready")].status`.

type Step = (values: readonly unknown[]) => unknown[];

const token =
  /\.?\*|\.((?:[^.[\](){}*?'"\s\\]|\\.)+)|\[['"]([^'"]+)['"]\]|\[(-?\d+)\]|\[\*\]|\[\?\(@\.([\w.\-/]+)\s*(==|!=)\s*(?:["']([^"']*)["']|([^)\s]+))\)\]/y;

/** Compiles a path; a path that cannot be understood finds nothing. */
export function compileJsonPath(path: string): (object: unknown) => unknown[] {
  const steps: Step[] = [];
  const text = path.startsWith('{') && path.endsWith('}') ? path.slice(1, -1) : path;
  token.lastIndex = 0;
  while (token.lastIndex < text.length) {
    const match = token.exec(text);
    if (!match) return () => [];
    steps.push(stepOf(match));
  }
  return (object) => {
    let values: unknown[] = [object];
    for (const step of steps) values = step(values);
    return values;
  };
}

function stepOf(match: RegExpExecArray): Step {
  const [, key, quoted, index, filterKey, operator, filterText, filterBare] = match;
  const name = key === undefined ? quoted : key.replaceAll(/\\(.)/g, '$1');
  if (name !== undefined) return (values) => values.flatMap((value) => own(value, name));
  if (index !== undefined) {
    return (values) =>
      values.flatMap((value) => {
        const item: unknown = Array.isArray(value) ? value.at(Number(index)) : undefined;
        return item === undefined ? [] : [item];
      });
  }
  if (filterKey !== undefined) {
    const wanted = filterText ?? filterBare ?? '';
    const keys = filterKey.split('.');
    return (values) =>
      values.flatMap((value) => items(value).filter((item) => (read(item, keys) === wanted) === (operator === '==')));
  }
  return (values) => values.flatMap(items);
}

function own(value: unknown, key: string): unknown[] {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return [];
  return [(value as Record<string, unknown>)[key]];
}

function items(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  return typeof value === 'object' && value !== null ? Object.values(value) : [];
}

function read(value: unknown, keys: readonly string[]): string {
  let at = value;
  for (const key of keys) at = own(at, key)[0];
  return scalarText(at);
}

/** A string, number or boolean as text; '' for anything else. */
export function scalarText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}
