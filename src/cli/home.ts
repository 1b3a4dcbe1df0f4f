// SPDX-License-Identifier: Apache-2.0
// The user's home directory, also where there is no such user.
import { homedir } from 'node:os';

/** Never throws: in a container the user may have neither HOME nor an entry among the users, and then `/` has to do. */
export function homeDirectory(find: () => string = homedir): string {
  try {
    return find();
  } catch {
    return '/';
  }
}
