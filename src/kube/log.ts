// SPDX-License-Identifier: Apache-2.0
// What the client half of `kube` says to whoever listens; the runtime's Logger fits.

/** A constant message and the data beside it. */
export interface Log {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

/** Says nothing. */
export const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
