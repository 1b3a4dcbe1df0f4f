// SPDX-License-Identifier: Apache-2.0
// Checks NodePools against the labels their provider knows: the condition ValidationSucceeded. Writes NodePools in the
// cluster `karpenter`.
import { falseCondition, nodePoolConditions, trueCondition } from '../../../api/conditions.ts';
import { validateNodePool } from '../../../api/validation.ts';
import { UnknownNodeClassError } from '../../../cloud/errors.ts';
import type { Controller } from '../../../runtime/controller.ts';
import { ChangeMonitor } from '../../../runtime/logging.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';

const { validationSucceeded } = nodePoolConditions;

/** The controller `nodepool.validation`. */
export function validationController(context: ControllerContext): Controller {
  const { pools, registry, clock } = context;
  const news = new ChangeMonitor(clock);
  const controller = context.controller({
    name: 'nodepool.validation',
    kind: 'NodePool',
    concurrent: 10,
    reconciler: {
      async reconcile(key, signal, run) {
        const known = pools.get(key);
        if (!known) return;
        const pool = context.pool(key);
        if (!pool) {
          // Perhaps another autoscaler's, perhaps a typo: nothing of it is touched, but somebody may wonder.
          const error = new UnknownNodeClassError(
            known.spec.template.spec.nodeClassRef,
            registry.nodeClasses.map(nameOf),
          );
          if (news.hasChanged(`unserved ${key}`, error.message))
            run.log.warn('ignoring nodepool, no provider serves its nodeClassRef', { error: error.message });
          return;
        }
        const { problems, warnings } = validateNodePool(pool, registry.ofNodePool(pool)!.labels);
        if (warnings.length > 0 && news.hasChanged(key, warnings))
          run.log.warn('nodepool has unusable values', { warnings });
        const draft = context.draftOfPool(pool);
        draft.set(
          problems.length > 0
            ? falseCondition(validationSucceeded, 'NodePoolValidationFailed', problems.join('; '))
            : trueCondition(validationSucceeded),
        );
        if (draft.changed) await draft.save(pools, signal);
      },
    },
  });
  return controller.watch(pools.informer);
}

function nameOf({ kind, group }: { readonly kind: string; readonly group: string }): string {
  return `${kind}.${group}`;
}
