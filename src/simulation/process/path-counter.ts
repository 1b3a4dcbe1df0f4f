// SPDX-License-Identifier: Apache-2.0
// Which ways through the program were taken: by what it logs, and by how often each controller reconciled with which result.
import type { Logger } from '../../runtime/logging.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { Coverage } from '../contract.ts';

const reconciled = 'controller_runtime_reconcile_total';

export class PathCounter {
  readonly logger: Logger;
  readonly #coverage: Coverage;
  readonly #pending: Promise<void>[] = [];

  constructor(coverage: Coverage) {
    this.#coverage = coverage;
    const say = (message: string): void => coverage.count('path', `log/${message}`);
    this.logger = { debug: () => undefined, info: say, warn: say, error: say, with: () => this.logger };
  }

  /** Takes over the numbers of a process that is gone. */
  collect(metrics: Metrics): void {
    this.#pending.push(
      metrics.series(reconciled).then((series) => {
        for (const { labels, value } of series)
          this.#coverage.count('path', `reconcile/${labels['controller']}/${labels['result']}`, value);
      }),
    );
  }

  /** Resolves when everything is counted. */
  async finish(): Promise<void> {
    await Promise.all(this.#pending);
  }
}
