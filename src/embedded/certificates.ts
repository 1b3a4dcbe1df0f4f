// SPDX-License-Identifier: Apache-2.0
// A certificate authority for one run of the server, and the server certificate it signs. Elliptic keys, so that making
// them takes milliseconds.
import type { webcrypto } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';

export interface ServerCertificate {
  /** The authority, for the kubeconfig; PEM. */
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const yearMs = 365 * 24 * 3_600_000;

/** Makes both for the given host names and addresses. */
export async function makeCertificate(
  clock: Clock,
  random: Random,
  names: readonly string[],
  addresses: readonly string[],
): Promise<ServerCertificate> {
  // Loaded here: who never listens never pays for it.
  const x509 = await import('@peculiar/x509');
  const [authorityKeys, serverKeys] = await Promise.all([newKeys(), newKeys()]);
  // An hour back: clocks of clients may lag.
  const notBefore = new Date(clock.now() - 3_600_000);
  const notAfter = new Date(clock.now() + yearMs);
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(random),
    name: 'CN=karpenter-ts embedded cluster',
    notBefore,
    notAfter,
    signingAlgorithm: algorithm,
    keys: authorityKeys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(authorityKeys.publicKey),
    ],
  });
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(random),
    subject: 'CN=kube-apiserver',
    issuer: authority.subject,
    notBefore,
    notAfter,
    signingAlgorithm: algorithm,
    publicKey: serverKeys.publicKey,
    signingKey: authorityKeys.privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([
        ...names.map((value) => ({ type: 'dns' as const, value })),
        ...addresses.map((value) => ({ type: 'ip' as const, value })),
      ]),
      await x509.AuthorityKeyIdentifierExtension.create(authorityKeys.publicKey),
    ],
  });
  return {
    authority: authority.toString('pem'),
    certificate: certificate.toString('pem'),
    key: await pemOf(serverKeys.privateKey),
  };
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
}

/** A positive serial number. */
function serial(random: Random): string {
  return `01${random.uuid().replaceAll('-', '').slice(0, 30)}`;
}

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  const text = Buffer.from(await crypto.subtle.exportKey('pkcs8', key)).toString('base64');
  return `-----BEGIN PRIVATE KEY-----\n${text.replace(/(.{64})/g, '$1\n')}\n-----END PRIVATE KEY-----\n`;
}
