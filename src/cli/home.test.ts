// SPDX-License-Identifier: Apache-2.0
import { homedir } from 'node:os';
import { expect, test } from 'vitest';
import { homeDirectory } from './home.ts';

test('the home of the user is where the system says', () => {
  expect(homeDirectory()).toBe(homedir());
});

test('a user that the system does not know has one too', () => {
  const unknown = (): never => {
    throw new Error('uv_os_homedir returned ENOENT');
  };
  expect(homeDirectory(unknown)).toBe('/');
});
