// SPDX-License-Identifier: Apache-2.0
// An authority and the certificates it signs, made on the spot with node:crypto and a few lines of DER: for tests over TLS.
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface TestAuthority {
  readonly ca: string;
  issue(name: string, hosts?: { dns?: string[]; ip?: string[] }): TestCertificate;
}

let serial = 1;

/** A certificate authority with a key of its own (P-256). */
export function testAuthority(): TestAuthority {
  const name = `test authority ${serial}`;
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const isAuthority = extension('551d13', true, sequence(der(0x01, Buffer.from([0xff]))));
  const ca = certificate(name, keys.publicKey, name, keys.privateKey, [isAuthority]);
  return {
    ca,
    issue(subject, { dns = [], ip = [] } = {}) {
      const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const hosts = [
        ...dns.map((host) => der(0x82, Buffer.from(host))),
        ...ip.map((address) => der(0x87, Buffer.from(address.split('.').map(Number)))),
      ];
      const extensions = hosts.length > 0 ? [extension('551d11', false, sequence(...hosts))] : [];
      return {
        cert: certificate(subject, own.publicKey, name, keys.privateKey, extensions),
        key: own.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      };
    },
  };
}

function certificate(subject: string, key: KeyObject, issuer: string, signer: KeyObject, extensions: Buffer[]): string {
  const algorithm = sequence(oid('2a8648ce3d040302'));
  const body = sequence(
    der(0xa0, integer(2)),
    integer(serial++),
    algorithm,
    commonName(issuer),
    sequence(der(0x17, Buffer.from('200101000000Z')), der(0x18, Buffer.from('21000101000000Z'))),
    commonName(subject),
    key.export({ type: 'spki', format: 'der' }),
    ...(extensions.length > 0 ? [der(0xa3, sequence(...extensions))] : []),
  );
  const signature = sign('sha256', body, signer);
  const whole = sequence(body, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function commonName(name: string): Buffer {
  return sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(name)))));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(critical ? [der(0x01, Buffer.from([0xff]))] : []), der(0x04, value));
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

function integer(value: number): Buffer {
  return der(0x02, Buffer.from([value >> 8, value & 0xff].slice(value > 127 ? 0 : 1)));
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const head =
    length < 128 ? [tag, length] : length < 256 ? [tag, 0x81, length] : [tag, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(head), content]);
}
