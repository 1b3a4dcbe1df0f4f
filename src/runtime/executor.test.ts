// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, test } from 'vitest';
import { KarpenterError } from '../base/errors.ts';
import { type Executor, ExecutorError, InlineExecutor, WorkerExecutor } from './executor.ts';
import {
  addTask,
  crashTask,
  failTask,
  failUnlistedTask,
  missingTask,
  NoFitError,
  spinTask,
  unclonableTask,
} from './testing/tasks.ts';

const open: Executor[] = [];
function opened<E extends Executor>(executor: E): E {
  open.push(executor);
  return executor;
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((executor) => executor.close()));
});

describe.each([
  ['inline', () => new InlineExecutor(), true],
  ['worker', () => new WorkerExecutor({ threads: 2 }), false],
] as const)('the %s executor', (_name, make, inMainThread) => {
  test('runs a task and gives its result', async () => {
    const executor = opened<Executor>(make());
    const results = await Promise.all([1, 2, 3].map((n) => executor.run(addTask, [n, 10])));
    expect(results.map(({ sum }) => sum)).toEqual([11, 12, 13]);
    expect(results[0]?.inMainThread).toBe(inMainThread);
  });

  test('keeps the class, the code and the data of an error', async () => {
    const executor = opened<Executor>(make());
    const error = await executor.run(failTask, 'own').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NoFitError);
    expect(error).toMatchObject({
      code: 'KRP_NO_FIT',
      name: 'NoFitError',
      message: 'pod web-1 does not fit',
      pod: 'web-1',
      details: { pod: 'web-1' },
    });
    await expect(executor.run(failTask, 'type')).rejects.toBeInstanceOf(TypeError);
    await expect(executor.run(failTask, 'string')).rejects.toBe('just text');
    const unlisted = await executor.run(failUnlistedTask, 'unlisted').catch((thrown: unknown) => thrown);
    expect(unlisted).toBeInstanceOf(KarpenterError);
    expect(unlisted).toMatchObject({ code: 'KRP_NO_FIT', name: 'NoFitError' });
  });

  test('does not begin what is aborted already', async () => {
    const reason = new Error('no longer needed');
    await expect(opened<Executor>(make()).run(addTask, [1], AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  test('refuses work once it is closed', async () => {
    const executor = make();
    await executor.close();
    await expect(executor.run(addTask, [1])).rejects.toBeInstanceOf(ExecutorError);
  });
});

describe('the worker executor', () => {
  test('ends a running task when it is cancelled, and goes on with the next', async () => {
    const executor = opened(new WorkerExecutor());
    const abort = new AbortController();
    const endless = executor.run(spinTask, undefined, abort.signal);
    const next = executor.run(addTask, [1, 2]);
    const reason = new Error('enough');
    setTimeout(() => abort.abort(reason), 50);
    await expect(endless).rejects.toBe(reason);
    expect((await next).sum).toBe(3);
  });

  test('takes a waiting task out when it is cancelled', async () => {
    const executor = opened(new WorkerExecutor());
    const [first, second] = [new AbortController(), new AbortController()];
    const endless = executor.run(spinTask, undefined, first.signal);
    const waiting = executor.run(addTask, [1], second.signal);
    second.abort(new Error('never mind'));
    await expect(waiting).rejects.toThrow('never mind');
    first.abort(new Error('enough'));
    await expect(endless).rejects.toThrow('enough');
  });

  test('survives a thread that dies', async () => {
    const executor = opened(new WorkerExecutor());
    await expect(executor.run(crashTask, undefined)).rejects.toMatchObject({ code: 'KRP_EXECUTOR' });
    expect((await executor.run(addTask, [4, 5])).sum).toBe(9);
  });

  test('says what cannot be passed between threads, either way', async () => {
    const executor = opened(new WorkerExecutor());
    await expect(executor.run(unclonableTask, undefined)).rejects.toThrow('could not be cloned');
    await expect(executor.run(addTask, [(() => 1) as unknown as number])).rejects.toThrow('could not be cloned');
    await expect(executor.run(missingTask, undefined)).rejects.toThrow('exports no function missing');
    expect((await executor.run(addTask, [1])).sum).toBe(1);
  });

  test('rejects what runs and waits when it is closed', async () => {
    const executor = new WorkerExecutor();
    const outcomes = Promise.allSettled([executor.run(spinTask, undefined), executor.run(addTask, [1])]);
    await executor.close();
    expect((await outcomes).map((outcome) => outcome.status)).toEqual(['rejected', 'rejected']);
  });
});
