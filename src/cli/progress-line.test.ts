// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { VirtualClock } from '../base/clock.ts';
import { ProgressLine } from './progress-line.ts';

function setUp(isTTY: boolean) {
  const clock = new VirtualClock();
  const written: string[] = [];
  const line = new ProgressLine({ isTTY, write: (text) => written.push(text) }, clock);
  return { clock, line, written };
}

describe('the progress of something', () => {
  test('is not told where it is over in a moment', async () => {
    const { clock, line, written } = setUp(true);
    line.tell('1 of 2');
    await clock.step(1900);
    line.tell('2 of 2');
    line.end();
    expect(written).toEqual([]);
  });

  test('is one line on a terminal, which goes before something else is printed', async () => {
    const { clock, line, written } = setUp(true);
    await clock.step(2000);
    line.tell('1 of 3');
    line.tell('2 of 3');
    await clock.step(200);
    line.tell('3 of 3');
    line.end();
    expect(written).toEqual(['\r\u001b[2K1 of 3', '\r\u001b[2K3 of 3', '\r\u001b[2K']);
  });

  test('is a line now and then in a log', async () => {
    const { clock, line, written } = setUp(false);
    for (let second = 0; second < 20; second++) {
      await clock.step(1000);
      line.tell(`after ${second + 1} s`);
    }
    line.end();
    expect(written).toEqual(['after 2 s\n', 'after 12 s\n']);
  });
});
