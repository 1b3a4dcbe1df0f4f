// SPDX-License-Identifier: Apache-2.0
// The embedded API server as a process of its own, so that its death, its silence and its size can be seen from outside.
import { RealClock } from '../../src/base/clock.ts';
import { SystemRandom } from '../../src/base/random.ts';
import { ApiServer } from '../../src/embedded/api-server.ts';
import type { Logger } from '../../src/runtime/logging.ts';

// What a failed request leaves in the log is what one needs to repair it.
const say = (message: string, fields?: object): void => console.error(message, fields);
const stderrLogger = { debug: () => {}, info: () => {}, warn: say, error: say, with: () => stderrLogger } as Logger;

const server = new ApiServer({
  clock: new RealClock(),
  random: new SystemRandom(),
  log: stderrLogger,
  tokens: { fuzz: { username: 'fuzz', groups: ['system:masters'] } },
});
const { url } = await server.listen();
process.send?.({ url });
process.on('message', (question) => {
  if (question === 'heap') {
    (globalThis as { gc?: () => void }).gc?.();
    process.send?.({ heap: process.memoryUsage().heapUsed });
  } else process.send?.({ cpu: process.cpuUsage().user / 1000 });
});
process.on('disconnect', () => process.exit(0));
