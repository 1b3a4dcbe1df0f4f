// SPDX-License-Identifier: Apache-2.0
// Many similar writes at once, but carefully: a batch that fails is not followed by a larger one.

/**
 * Does `action` for 0 … count-1 in batches of 1, 2, 4, …; stops after the first batch with a failure.
 * Returns how many succeeded and the first failure.
 */
export async function inGrowingBatches(
  count: number,
  action: (index: number) => Promise<void>,
): Promise<{ succeeded: number; error: unknown }> {
  let succeeded = 0;
  for (let done = 0, size = 1; done < count; size *= 2) {
    const batch = Math.min(size, count - done);
    const results = await Promise.allSettled(Array.from({ length: batch }, (_, i) => action(done + i)));
    done += batch;
    succeeded += results.filter((result) => result.status === 'fulfilled').length;
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) return { succeeded, error: failed.reason };
  }
  return { succeeded, error: undefined };
}
