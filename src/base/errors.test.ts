// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { findCause, isBug, KarpenterError, messageOf, wrap } from './errors.ts';

class NoRoomError extends KarpenterError {
  constructor(cause?: unknown) {
    super('KRP_NO_ROOM', 'no room', { cause, details: { zone: 'a' } });
  }
}

describe('an error of ours', () => {
  test('carries its class name, a code, data and its cause', () => {
    const cause = new Error('below');
    const error = new NoRoomError(cause);
    expect(error).toMatchObject({
      name: 'NoRoomError',
      code: 'KRP_NO_ROOM',
      message: 'no room',
      details: { zone: 'a' },
    });
    expect(error.cause).toBe(cause);
    expect('cause' in new NoRoomError()).toBe(false);
  });

  test('keeps its code and meaning when it is wrapped', () => {
    const inner = new NoRoomError();
    const outer = wrap('launching nodeclaim', wrap('calling the cloud', inner), { name: 'n-1' });
    expect(outer).toMatchObject({
      code: 'KRP_NO_ROOM',
      message: 'launching nodeclaim: calling the cloud: no room',
      details: { name: 'n-1' },
    });
    expect(findCause(outer, NoRoomError)).toBe(inner);
    expect(findCause(outer, TypeError)).toBeUndefined();
  });

  test('can wrap anything that was thrown', () => {
    expect(wrap('reading', 'text').message).toBe('reading: text');
    expect(wrap('reading', undefined)).toMatchObject({ code: 'KRP_WRAPPED', message: 'reading: undefined' });
  });
});

test('a chain of causes that loops is no trap', () => {
  const [a, b] = [new Error('a'), new Error('b')];
  a.cause = b;
  b.cause = a;
  expect(findCause(a, TypeError)).toBeUndefined();
});

test('anything thrown has a message', () => {
  expect([messageOf(new Error('x')), messageOf('y'), messageOf(null), messageOf({})]).toEqual([
    'x',
    'y',
    'null',
    '[object Object]',
  ]);
  expect(messageOf(Object.create(null))).toBe('unknown error');
});

test('defects of our own are told from failures of the world', () => {
  expect([new TypeError('x'), new RangeError('x'), 'thrown text'].map(isBug)).toEqual([true, true, true]);
  expect([new Error('x'), new NoRoomError()].map(isBug)).toEqual([false, false]);
});
