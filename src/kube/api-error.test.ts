// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { wrap } from '../base/errors.ts';
import {
  ApiError,
  ignoreNotFound,
  isAlreadyExists,
  isConflict,
  isForbidden,
  isGone,
  isInvalid,
  isNotFound,
  isServerError,
  isTooManyRequests,
} from './api-error.ts';
import { failure } from './testing/fake-transport.ts';

const request = { method: 'GET', path: '/api/v1/pods' } as const;

describe('ApiError', () => {
  test('carries the code, the reason, the words and what was asked', () => {
    const error = ApiError.fromResponse(failure(404, 'NotFound', 'pods "a" not found'), request);
    expect(error).toMatchObject({
      status: 404,
      reason: 'NotFound',
      message: 'pods "a" not found',
      code: 'KRP_API_NOT_FOUND',
    });
    expect(error.details).toMatchObject({ method: 'GET', path: '/api/v1/pods' });
    expect(ApiError.fromResponse(failure(429, 'TooManyRequests')).code).toBe('KRP_API_TOO_MANY_REQUESTS');
  });

  test.each([
    ['<html>Bad Gateway</html>', 502, 'the server answered 502: <html>Bad Gateway</html>', 'Unknown'],
    [undefined, 503, 'the server answered 503', 'ServiceUnavailable'],
    [{ error: 'x' }, 403, 'the server answered 403: {"error":"x"}', 'Forbidden'],
  ])('makes sense of a body that is no Status: %j', (body, status, message, reason) => {
    expect(ApiError.fromResponse({ status, body }, request)).toMatchObject({ status, message, reason });
  });

  test('knows how long to wait from the header or the body', () => {
    expect(
      ApiError.fromResponse({ ...failure(429, 'TooManyRequests'), headers: { 'retry-after': '3' } }).retryAfterMs,
    ).toBe(3000);
    expect(
      ApiError.fromResponse(failure(429, 'TooManyRequests', 'm', { details: { retryAfterSeconds: 7 } })).retryAfterMs,
    ).toBe(7000);
    expect(
      ApiError.fromResponse({ ...failure(503, 'x'), headers: { 'retry-after': 'Wed, 21 Oct 2026' } }).retryAfterMs,
    ).toBeUndefined();
  });

  test('is recognised also when wrapped, and told apart', () => {
    const of = (code: number, reason: string): Error => wrap('doing', ApiError.fromResponse(failure(code, reason)));
    expect(isNotFound(of(404, 'NotFound'))).toBe(true);
    expect(isConflict(of(409, 'Conflict'))).toBe(true);
    expect(isConflict(of(409, 'AlreadyExists'))).toBe(false);
    expect(isAlreadyExists(of(409, 'AlreadyExists'))).toBe(true);
    expect(isGone(of(410, 'Expired'))).toBe(true);
    expect(isInvalid(of(422, 'Invalid'))).toBe(true);
    expect(isTooManyRequests(of(429, 'TooManyRequests'))).toBe(true);
    expect(isForbidden(of(403, 'Forbidden'))).toBe(true);
    expect(isServerError(of(504, 'Timeout'))).toBe(true);
    expect(isNotFound(new Error('not found'))).toBe(false);
  });

  test('ignoreNotFound swallows only that', async () => {
    const thrown = (code: number, reason: string) => Promise.reject(ApiError.fromResponse(failure(code, reason)));
    expect(await ignoreNotFound(thrown(404, 'NotFound'))).toBeUndefined();
    await expect(ignoreNotFound(thrown(403, 'Forbidden'))).rejects.toThrow('Forbidden');
    expect(await ignoreNotFound(Promise.resolve(1))).toBe(1);
  });
});
