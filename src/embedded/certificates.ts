// SPDX-License-Identifier: Apache-2.0
// A certificate authority for one run of the server, and the server certificate it signs (X.509 in DER, by hand: the
// few fields we need cost less than a library that makes them, above all at start-up).
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import { bitString, boolean, integer, objectId, octetString, sequence, set, tagged, time, utf8 } from './der.ts';

export interface ServerCertificate {
  /** The authority, for the kubeconfig; PEM. */
  readonly authority: string;
  /** What it signs with; PEM. */
  readonly authorityKey: string;
  readonly certificate: string;
  readonly key: string;
}

const yearMs = 365 * 24 * 3_600_000;
const ids = {
  commonName: '2.5.4.3',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  alternativeName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
};
const signatureAlgorithm = sequence(objectId(ids.ecdsaWithSha256));

/** Makes both for the given host names and addresses. Elliptic keys: a few milliseconds. */
export function makeCertificate(
  clock: Clock,
  random: Random,
  names: readonly string[],
  addresses: readonly string[],
): ServerCertificate {
  const authorityKeys = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const serverKeys = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const issuer = nameOf('karpenter-ts embedded cluster');
  // An hour back: clocks of clients may lag.
  const validity = sequence(time(clock.now() - 3_600_000), time(clock.now() + yearMs));
  const authorityId = keyIdOf(authorityKeys.publicKey);
  const authority = signed(authorityKeys.privateKey, [
    ...head(random, issuer, validity, issuer, authorityKeys.publicKey),
    extensions([
      extension(ids.basicConstraints, true, sequence(boolean(true), integer(Buffer.from([0])))),
      // keyCertSign and cRLSign: bits 5 and 6.
      extension(ids.keyUsage, true, bitString(Buffer.from([0b0000_0110]), 1)),
      extension(ids.subjectKeyId, false, octetString(authorityId)),
    ]),
  ]);
  const certificate = signed(authorityKeys.privateKey, [
    ...head(random, issuer, validity, nameOf('kube-apiserver'), serverKeys.publicKey),
    extensions([
      extension(ids.basicConstraints, true, sequence()),
      // digitalSignature: bit 0.
      extension(ids.keyUsage, true, bitString(Buffer.from([0b1000_0000]), 7)),
      extension(ids.extendedKeyUsage, false, sequence(objectId(ids.serverAuth))),
      extension(ids.authorityKeyId, false, sequence(tagged(0x80, authorityId))),
      extension(
        ids.alternativeName,
        false,
        sequence(
          ...names.map((name) => tagged(0x82, Buffer.from(name, 'ascii'))),
          ...addresses.map((address) => tagged(0x87, addressBytes(address))),
        ),
      ),
    ]),
  ]);
  return {
    authority: pem('CERTIFICATE', authority),
    authorityKey: authorityKeys.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    certificate: pem('CERTIFICATE', certificate),
    key: serverKeys.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  };
}

function head(random: Random, issuer: Buffer, validity: Buffer, subject: Buffer, key: KeyObject): Buffer[] {
  const serial = Buffer.from(`01${random.uuid().replaceAll('-', '').slice(0, 30)}`, 'hex');
  return [
    // Version 3.
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(serial),
    signatureAlgorithm,
    issuer,
    validity,
    subject,
    key.export({ type: 'spki', format: 'der' }) as Buffer,
  ];
}

function nameOf(commonName: string): Buffer {
  return sequence(set(sequence(objectId(ids.commonName), utf8(commonName))));
}

function extensions(all: readonly Buffer[]): Buffer {
  return tagged(0xa3, sequence(...all));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(objectId(id), ...(critical ? [boolean(true)] : []), octetString(value));
}

function keyIdOf(key: KeyObject): Buffer {
  return createHash('sha1')
    .update(key.export({ type: 'spki', format: 'der' }) as Buffer)
    .digest();
}

function signed(key: KeyObject, fields: readonly Buffer[]): Buffer {
  const body = sequence(...fields);
  return sequence(body, signatureAlgorithm, bitString(sign('sha256', body, key), 0));
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const [before = '', after] = address.split('::');
  const words = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const left = words(before);
  const right = words(after ?? '');
  const zeros = after === undefined ? 0 : 8 - left.length - right.length;
  const all = [...left, ...Array.from({ length: zeros }, () => '0'), ...right];
  return Buffer.from(all.map((word) => word.padStart(4, '0')).join(''), 'hex');
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
