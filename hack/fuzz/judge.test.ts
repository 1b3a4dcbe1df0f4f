// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { problemWith } from './judge.ts';

const status = (code: number, more: object = {}) =>
  JSON.stringify({ kind: 'Status', status: 'Failure', code, message: 'm', reason: 'R', ...more });

test('a refusal must be a Status that says its own code', () => {
  expect(problemWith(400, 'application/json', status(400))).toBeUndefined();
  expect(problemWith(400, 'application/json', status(404))).toContain('says 404');
  expect(problemWith(400, 'application/json', '{}')).toContain('without a Status');
  expect(problemWith(400, 'application/json', '{')).toContain('no JSON');
  expect(problemWith(400, 'text/plain', 'oh')).toContain('without a Status');
  expect(problemWith(400, 'application/json', status(400, { message: '' }))).toContain('without a message');
});

test('internal errors are failures, but for those that the real server is known to give', () => {
  const said = (message: string, reason?: string) =>
    problemWith(500, 'application/json', status(500, { message, reason }));
  expect(said('m', 'InternalError')).toBe('an internal error: m');
  expect(said('m')).toBe('an internal error: m');
  expect(said('target.name: Required value')).toBeUndefined();
  expect(said('target.name: Required value', 'InternalError')).toContain('internal error');
});

test('codes that no API server gives are failures', () => {
  expect(problemWith(502, 'application/json', status(502))).toBe('the code 502');
  expect(problemWith(404, 'text/plain', '404 page not found')).toBeUndefined();
  expect(problemWith(200, 'application/json', 'anything')).toBeUndefined();
});
