// SPDX-License-Identifier: Apache-2.0
// Ports that pods take on their node: two pods that want the same one cannot share a node.
import type { PodSpec } from './objects.ts';

export interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

const anyIp = new Set(['', '0.0.0.0', '::']);

/** The host ports of a pod. Init containers are done before others start: theirs do not count. */
export function hostPortsOf(spec: PodSpec): HostPort[] {
  const ports: HostPort[] = [];
  for (const container of spec.containers ?? []) {
    for (const { hostPort, hostIP, protocol } of container.ports ?? []) {
      if (!hostPort) continue;
      ports.push({ ip: hostIP ?? '0.0.0.0', protocol: protocol ?? 'TCP', port: hostPort });
    }
  }
  return ports;
}

/** Whether any of `wanted` is taken. */
export function portsConflict(taken: readonly HostPort[], wanted: readonly HostPort[]): boolean {
  return wanted.some((w) =>
    taken.some(
      (t) => t.port === w.port && t.protocol === w.protocol && (t.ip === w.ip || anyIp.has(t.ip) || anyIp.has(w.ip)),
    ),
  );
}
