// SPDX-License-Identifier: Apache-2.0
// Which proxy the environment asks for, by the rules that Go programs and so kubectl follow.
import { BlockList, isIP } from 'node:net';

type Environment = Readonly<Record<string, string | undefined>>;

/** The proxy for `server`, from HTTPS_PROXY or HTTP_PROXY unless NO_PROXY exempts it; the machine itself always is. */
export function proxyFromEnvironment(server: string, env: Environment): string | undefined {
  const url = new URL(server);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const variable = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const proxy = env[variable] || env[variable.toLowerCase()];
  if (!proxy || host === 'localhost' || isLoopback(host)) return undefined;
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  const exempt = (env['NO_PROXY'] || env['no_proxy'] || '')
    .split(',')
    .some((entry) => matches(entry.trim(), host, port));
  if (exempt) return undefined;
  return proxy.includes('://') ? proxy : `http://${proxy}`;
}

function isLoopback(host: string): boolean {
  return host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** An entry of NO_PROXY: `*`, an address, a range of addresses, or a domain (with its subdomains), some with a port. */
function matches(entry: string, host: string, port: string): boolean {
  if (entry === '') return false;
  if (entry === '*') return true;
  if (entry.includes('/')) return inRange(entry, host);
  const [, name = entry, entryPort] = /^(.*?)(?::(\d+))?$/.exec(isIP(entry) === 6 ? `[${entry}]` : entry) ?? [];
  if (entryPort && entryPort !== port) return false;
  const plain = name
    .replace(/^\[|\]$/g, '')
    .replace(/^\*(?=\.)/, '')
    .toLowerCase();
  if (isIP(plain)) return plain === host;
  return plain.startsWith('.') ? host.endsWith(plain) : host === plain || host.endsWith(`.${plain}`);
}

function inRange(range: string, host: string): boolean {
  const [address = '', bits = ''] = range.split('/');
  const family = isIP(address);
  if (family === 0 || family !== isIP(host) || !/^\d{1,3}$/.test(bits) || Number(bits) > (family === 4 ? 32 : 128))
    return false;
  const list = new BlockList();
  const kind = family === 4 ? 'ipv4' : 'ipv6';
  list.addSubnet(address, Number(bits), kind);
  return list.check(host, kind);
}
