// SPDX-License-Identifier: Apache-2.0
// What `karpenter convert` makes of one text.
import { type Manifest, toV1 } from '../api/convert.ts';
import { problemsOf } from './manifest-problems.ts';
import { objectsOf } from './manifests.ts';

export interface ConvertedText {
  readonly objects: readonly Manifest[];
  /** What the owner has to know: one sentence each, beginning with the object it is about. */
  readonly remarks: readonly string[];
  /** Whether one of the objects would be refused by an API server. */
  readonly isWrong: boolean;
}

/** The objects of a text in v1; `file` is how it is called in messages. Throws ManifestError. */
export function convertText(file: string, text: string): ConvertedText {
  const remarks: string[] = [];
  let isWrong = false;
  const objects = objectsOf(file, text).map((given) => {
    const { object, notes } = toV1(given);
    const which = `${object.kind} ${nameOf(object)}`;
    const problems = problemsOf(object);
    isWrong ||= problems.length > 0;
    remarks.push(
      ...notes.map((note) => `${which}: ${note}`),
      ...problems.map((problem) => `${which} is not valid: ${problem}`),
    );
    return object;
  });
  return { objects, remarks, isWrong };
}

function nameOf({ metadata }: Manifest): string {
  const name = (metadata as { name?: unknown } | null | undefined)?.name;
  return typeof name === 'string' ? name : '?';
}
