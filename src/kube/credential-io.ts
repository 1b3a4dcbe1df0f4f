// SPDX-License-Identifier: Apache-2.0
// The machine as credentials see it: files and programs.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { CredentialIo } from './credentials.ts';

/** Output beyond this is no credential. */
const longestOutput = 1 << 20;

/** The real thing. Programs get `env` on top of what the process has; their complaints are kept and shown on failure. */
export function machineIo(processEnv: Readonly<Record<string, string | undefined>>, isTerminal: boolean): CredentialIo {
  return {
    isTerminal,
    readFile: (path) => readFileSync(path, 'utf8'),
    run: (command, args, { env, interactive, timeoutMs }) =>
      new Promise((resolve, reject) => {
        const child = spawn(command, args, {
          env: { ...processEnv, ...env },
          // Prompts go where the person is; otherwise nobody answers, and what it says is kept for the error.
          stdio: [interactive ? 'inherit' : 'ignore', 'pipe', interactive ? 'inherit' : 'pipe'],
          ...(timeoutMs > 0 ? { timeout: timeoutMs } : {}),
          windowsHide: true,
        });
        let stdout = '';
        let stderr = '';
        child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
          stdout += chunk;
          if (stdout.length > longestOutput) child.kill();
        });
        child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
          stderr = (stderr + chunk).slice(-4096);
        });
        child.on('error', reject);
        child.on('close', (exitCode, signal) => {
          if (signal !== null)
            stderr += `\nended by ${signal}${timeoutMs > 0 ? ` (it has ${timeoutMs / 1000} s)` : ''}`;
          resolve({ exitCode: exitCode ?? 1, stdout, stderr });
        });
      }),
  };
}
