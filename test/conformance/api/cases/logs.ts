// SPDX-License-Identifier: Apache-2.0
// `pods/log`, as far as the API server itself decides: options, containers, pods without a node.
import { type ConformanceCase, missing, ok, refused, same } from '../case.ts';
import { container, pod } from '../objects.ts';

const two = [
  { ...container, name: 'a' },
  { ...container, name: 'b' },
];
const invalid = (name: string, why: string): string => `PodLogOptions "${name}" is invalid: ${why}`;

export const logCases: readonly ConformanceCase[] = [
  {
    id: 'logs/unscheduled',
    title: 'a pod without a node has no log, whatever is asked of it, and none once it is gone',
    run: async ({ a, b, c, path }) => {
      await ok(a.post(path('pods'), pod('x')));
      const questions = [{}, { follow: 'true' }, { previous: 'true' }, { tailLines: '1', timestamps: 'maybe' }];
      for (const query of questions) same((await b.get(path('pods', 'x', 'log'), query)).status, 204);
      await ok(c.delete(path('pods', 'x'), undefined, { gracePeriodSeconds: '0' }));
      await missing(b.get(path('pods', 'x', 'log')));
    },
  },
  {
    id: 'logs/containers',
    title: 'a container must be named when there are several, and be one of the pod',
    run: async ({ a, b, c, path }) => {
      const initContainers = [{ ...container, name: 'first' }];
      await ok(a.post(path('pods'), pod('x', { initContainers, containers: two })));
      await refused(
        b.get(path('pods', 'x', 'log')),
        400,
        'BadRequest',
        'a container name must be specified for pod x, choose one of: [first a b]',
      );
      const stranger = 'container z is not valid for pod x';
      await refused(c.get(path('pods', 'x', 'log'), { container: 'z' }), 400, 'BadRequest', stranger);
      for (const name of ['first', 'a', 'b']) {
        same((await c.get(path('pods', 'x', 'log'), { container: name })).status, 204);
      }
    },
  },
  {
    id: 'logs/options',
    title: 'options are checked before the pod is looked for, and before its containers',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x', { containers: two })));
      const numbers: [Record<string, string>, string][] = [
        [{ tailLines: '-1' }, 'tailLines: Invalid value: -1: must be greater than or equal to 0'],
        [{ limitBytes: '0' }, 'limitBytes: Invalid value: 0: must be greater than 0'],
        [{ sinceSeconds: '0' }, 'sinceSeconds: Invalid value: 0: must be greater than 0'],
        [
          { sinceSeconds: '1', sinceTime: '2020-01-01T00:00:00Z' },
          '[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified',
        ],
        [{ stream: 'All' }, 'stream: Forbidden: may not be specified'],
      ];
      for (const [query, why] of numbers) {
        for (const name of ['x', 'absent'])
          await refused(b.get(path('pods', name, 'log'), query), 422, 'Invalid', invalid(name, why));
      }
      const words: [Record<string, string>, string][] = [
        [{ tailLines: 'abc' }, 'strconv.ParseInt: parsing "abc": invalid syntax'],
        [{ sinceSeconds: '' }, 'strconv.ParseInt: parsing "": invalid syntax'],
        [{ sinceTime: 'abc' }, 'parsing time "abc" as "2006-01-02T15:04:05Z07:00": cannot parse "abc" as "2006"'],
      ];
      for (const [query, why] of words) await refused(b.get(path('pods', 'x', 'log'), query), 400, 'BadRequest', why);
    },
  },
];
