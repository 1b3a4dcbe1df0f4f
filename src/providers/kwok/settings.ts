// SPDX-License-Identifier: Apache-2.0
// The settings of the pretended cloud.
import { text } from '../../runtime/setting-types.ts';

export const kwokSettings = {
  instanceTypesFilePath: text({
    flag: 'instance-types-file-path',
    env: 'INSTANCE_TYPES_FILE_PATH',
    chart: ['settings.instanceTypesFilePath'],
    default: '',
    help: 'A JSON file of machines that the KWOK provider pretends to sell instead of its own 144.',
  }),
};
