// SPDX-License-Identifier: Apache-2.0
import { createServer, type Server } from 'node:net';
import { expect, test } from 'vitest';
import { freePort, RunningProgram, startListening } from './processes.ts';

/** A program that listens on one port, and is ready when it does. */
const launchOn = (port: number): { program: RunningProgram; health: number } => {
  const code = `require('node:http').createServer((_, answer) => answer.end('ok')).listen(${port}, '127.0.0.1')`;
  return { program: new RunningProgram('a listener', process.execPath, ['-e', code]), health: port };
};

const taken = async (): Promise<{ port: number; server: Server }> => {
  const [port, server] = [await freePort(), createServer()];
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  // Whoever takes it for the program's own is not answered.
  server.on('connection', (socket) => socket.destroy());
  return { port, server };
};

test('a program whose port was taken in the meantime is started on another', async () => {
  const { port, server } = await taken();
  const tried: number[] = [];
  const program = await startListening(async () => {
    tried.push(tried.length === 0 ? port : await freePort());
    return launchOn(tried.at(-1)!);
  });
  expect(tried).toHaveLength(2);
  expect(await (await fetch(`http://127.0.0.1:${tried[1]}`)).text()).toBe('ok');
  await program.stop();
  server.close();
});

test('a program that ends for another reason is not started again', async () => {
  let launched = 0;
  const failing = startListening(async () => {
    launched++;
    return { program: new RunningProgram('a failure', process.execPath, ['-e', 'throw new Error("no")']), health: 1 };
  });
  await expect(failing).rejects.toThrow('a failure ended with 1');
  expect(launched).toBe(1);
});

test('no port is given twice, nor one that the system gives to clients', async () => {
  const ports = await Promise.all(Array.from({ length: 50 }, freePort));
  expect(new Set(ports).size).toBe(50);
  expect(Math.max(...ports)).toBeLessThan(32_768);
});
