// SPDX-License-Identifier: Apache-2.0
// The functions of kube-apiserver's CEL environment and what they take and give, from the generated table
// (hack/vectors/cel-rules).

import table from './cel-declarations.json' with { type: 'json' };
import { type CelStaticType, parseCelType, splitTypes } from './cel-types.ts';

/** One way to call a function. */
export interface CelOverload {
  /** cel-go's name of it: costs go by this. */
  readonly id: string;
  /** Called on a value, which is its first argument. */
  readonly member: boolean;
  readonly args: readonly CelStaticType[];
  readonly result: CelStaticType;
}

const rows = table as Readonly<Record<string, readonly string[]>>;
const parsed = new Map<string, readonly CelOverload[]>();

/** The overloads of a function or operator (`_+_`); undefined when there is none of that name. */
export function overloadsOf(name: string): readonly CelOverload[] | undefined {
  let found = parsed.get(name);
  if (found === undefined && Object.hasOwn(rows, name)) {
    found = rows[name]!.map(readOverload);
    parsed.set(name, found);
  }
  return found;
}

/** `m list_join_string list(string), string -> string`. */
function readOverload(row: string): CelOverload {
  const [, style, id = '', args = '', result = ''] = /^([fm]) (\S+) (.*) -> (.*)$/.exec(row) ?? [];
  return {
    id,
    member: style === 'm',
    args: splitTypes(args).map(parseCelType),
    result: parseCelType(result),
  };
}
