// SPDX-License-Identifier: Apache-2.0
// A stream as a list, for tests that look at the whole.

/** Everything that comes until it ends. */
export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
