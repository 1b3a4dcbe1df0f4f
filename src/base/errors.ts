// SPDX-License-Identifier: Apache-2.0
// The root of our errors: a stable code for programs, a sentence for people, data beside it instead of inside it.

/** Every error this program throws on purpose. `code` is stable and listed in the reference (`KRP_…`). */
export class KarpenterError extends Error {
  readonly code: string;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: string,
    message: string,
    options: { cause?: unknown; details?: Readonly<Record<string, unknown>> } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.details = options.details ?? {};
  }
}

/** Wraps a failure in what was being done, in the style `launching nodeclaim: connection refused`. */
export function wrap(doing: string, cause: unknown, details?: Readonly<Record<string, unknown>>): KarpenterError {
  const code = cause instanceof KarpenterError ? cause.code : 'KRP_WRAPPED';
  return new KarpenterError(code, `${doing}: ${messageOf(cause)}`, { cause, ...(details ? { details } : {}) });
}

/** The message of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message;
  try {
    return String(thrown);
  } catch {
    // An object that cannot be made a string; what it is remains in the cause.
    return 'unknown error';
  }
}

/** No honest chain of causes is longer; one that loops must not hang whoever looks along it. */
const longestChain = 100;

/** The error that was thrown and the errors that caused it, outermost first. */
export function causesOf(thrown: unknown): Error[] {
  const causes: Error[] = [];
  for (let at = thrown; at instanceof Error && causes.length < longestChain; at = at.cause) causes.push(at);
  return causes;
}

/** The first error of `kind` along the chain of causes: a wrapped error keeps its meaning. */
export function findCause<E extends Error>(
  thrown: unknown,
  // oxlint-disable-next-line typescript/no-explicit-any -- a constructor of any shape
  kind: abstract new (...args: any[]) => E,
): E | undefined {
  return causesOf(thrown).find((error): error is E => error instanceof kind);
}

/** Whether what was thrown is a defect of the program itself rather than of the world it meets: show its stack. */
export function isBug(thrown: unknown): boolean {
  return (
    !(thrown instanceof Error) ||
    thrown instanceof TypeError ||
    thrown instanceof ReferenceError ||
    thrown instanceof RangeError ||
    thrown instanceof SyntaxError ||
    thrown instanceof EvalError
  );
}
