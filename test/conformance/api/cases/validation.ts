// SPDX-License-Identifier: Apache-2.0
// Field validation (strict, warn, ignore) and the rules of built-in kinds.
import { type ConformanceCase, has, missing, ok, refused, same } from '../case.ts';
import { budget, configMap, container, deployment, pod } from '../objects.ts';

interface Rule {
  readonly id: string;
  readonly title: string;
  readonly plural: string;
  readonly body: object;
  readonly message: string | RegExp;
}

const withContainer = (more: object) => pod('x', { containers: [{ ...container, ...more }] });

const rules: readonly Rule[] = [
  {
    id: 'no-containers',
    title: 'a pod without containers',
    plural: 'pods',
    body: pod('x', { containers: [] }),
    message: 'Pod "x" is invalid: spec.containers: Required value',
  },
  {
    id: 'no-image',
    title: 'a container without an image',
    plural: 'pods',
    body: pod('x', { containers: [{ name: 'c' }] }),
    message: 'Pod "x" is invalid: spec.containers[0].image: Required value',
  },
  {
    id: 'container-name',
    title: 'a container with a bad name',
    plural: 'pods',
    body: pod('x', { containers: [{ name: 'Bad_Name', image: 'i' }] }),
    message: /spec\.containers\[0\]\.name: Invalid value: "Bad_Name": a lowercase RFC 1123 label must consist of/,
  },
  {
    id: 'container-twice',
    title: 'two containers of one name',
    plural: 'pods',
    body: pod('x', { containers: [container, container] }),
    message: 'Pod "x" is invalid: spec.containers[1].name: Duplicate value: "main"',
  },
  {
    id: 'request-over-limit',
    title: 'requests above limits',
    plural: 'pods',
    body: withContainer({ resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } }),
    message:
      'Pod "x" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
  },
  {
    id: 'negative-request',
    title: 'negative requests',
    plural: 'pods',
    body: withContainer({ resources: { requests: { cpu: '-1' } } }),
    message:
      /spec\.containers\[0\]\.resources\.requests\[cpu\]: Invalid value: "-1": must be greater than or equal to 0/,
  },
  {
    id: 'restart-policy',
    title: 'an unknown restart policy',
    plural: 'pods',
    body: pod('x', { restartPolicy: 'Sometimes' }),
    message:
      /spec\.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "(Never|OnFailure)", "(Never|OnFailure)"/,
  },
  {
    id: 'toleration-operator',
    title: 'a toleration with an unknown operator',
    plural: 'pods',
    body: pod('x', { tolerations: [{ key: 'a', operator: 'Perhaps' }] }),
    message: /spec\.tolerations\[0\]\.operator: Unsupported value: "Perhaps"/,
  },
  {
    id: 'affinity-operator',
    title: 'node affinity without values',
    plural: 'pods',
    body: pod('x', {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'In' }] }],
          },
        },
      },
    }),
    message:
      /nodeSelectorTerms\[0\]\.matchExpressions\[0\]\.values: Required value: must be specified when `operator` is 'In' or 'NotIn'/,
  },
  {
    id: 'spread-skew',
    title: 'a spread with no skew',
    plural: 'pods',
    body: pod('x', {
      topologySpreadConstraints: [{ maxSkew: 0, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
    }),
    message: /spec\.topologySpreadConstraints\[0\]\.maxSkew: Invalid value: 0: must be greater than zero/,
  },
  {
    id: 'label-value',
    title: 'a label with a bad value',
    plural: 'configmaps',
    body: configMap('x', {}, { labels: { a: 'b c' } }),
    message:
      /metadata\.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters/,
  },
  {
    id: 'label-key',
    title: 'a label with a bad key',
    plural: 'configmaps',
    body: configMap('x', {}, { labels: { '/a': 'b' } }),
    message: /metadata\.labels: Invalid value: "\/a": prefix part must be non-empty/,
  },
  {
    id: 'annotation-key',
    title: 'an annotation with a bad key',
    plural: 'configmaps',
    body: configMap('x', {}, { annotations: { 'a b': 'c' } }),
    message: /metadata\.annotations: Invalid value: "a b": name part must consist of/,
  },
  {
    id: 'owner-uid',
    title: 'an owner without a uid',
    plural: 'configmaps',
    body: configMap('x', {}, { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p' }] }),
    message: 'ConfigMap "x" is invalid: metadata.ownerReferences.uid: Invalid value: "": must not be empty',
  },
  {
    id: 'two-controllers',
    title: 'two owners that control',
    plural: 'configmaps',
    body: configMap(
      'x',
      {},
      {
        ownerReferences: ['p', 'q'].map((name) => ({
          apiVersion: 'v1',
          kind: 'Pod',
          name,
          uid: name,
          controller: true,
        })),
      },
    ),
    message:
      /metadata\.ownerReferences: Invalid value: .*: Only one reference can have Controller set to true\. Found "true" in references for Pod\/p and Pod\/q/,
  },
  {
    id: 'selector-mismatch',
    title: 'a Deployment that does not select its own pods',
    plural: 'deployments',
    body: deployment('x', { selector: { matchLabels: { app: 'other' } } }),
    message: /spec\.template\.metadata\.labels: Invalid value: .*: `selector` does not match template `labels`/,
  },
  {
    id: 'no-selector',
    title: 'a Deployment without a selector',
    plural: 'deployments',
    body: deployment('x', { selector: undefined }),
    message: /spec\.selector: Required value/,
  },
  {
    id: 'negative-replicas',
    title: 'negative replicas',
    plural: 'deployments',
    body: deployment('x', { replicas: -1 }),
    message: 'Deployment.apps "x" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
  },
  {
    id: 'rolling-update',
    title: 'a rolling update that can never move',
    plural: 'deployments',
    body: deployment('x', { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } } }),
    message: /spec\.strategy\.rollingUpdate\.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0/,
  },
  {
    id: 'template-restart',
    title: 'a Deployment whose pods never restart',
    plural: 'deployments',
    body: deployment('x', {
      template: { metadata: { labels: { app: 'x' } }, spec: { containers: [container], restartPolicy: 'Never' } },
    }),
    message: /spec\.template\.spec\.restartPolicy: Unsupported value: "Never": supported values: "Always"/,
  },
  {
    id: 'budget-both',
    title: 'a budget with both limits',
    plural: 'poddisruptionbudgets',
    body: budget('x', { minAvailable: 1, maxUnavailable: 1 }),
    message: /spec: Invalid value: .*: minAvailable and maxUnavailable cannot be both set/,
  },
  {
    id: 'budget-percent',
    title: 'a budget of more than all',
    plural: 'poddisruptionbudgets',
    body: budget('x', { minAvailable: '101%' }),
    message: /spec\.minAvailable: Invalid value: "101%": must not be greater than 100%/,
  },
  {
    id: 'service-port',
    title: 'a service port out of range',
    plural: 'services',
    body: { metadata: { name: 'x' }, spec: { ports: [{ port: 70_000 }] } },
    message: /spec\.ports\[0\]\.port: Invalid value: 70000: must be between 1 and 65535, inclusive/,
  },
  {
    id: 'job-restart',
    title: 'a Job whose pods always restart',
    plural: 'jobs',
    body: { metadata: { name: 'x' }, spec: { template: { spec: { containers: [container] } } } },
    message: /spec\.template\.spec\.restartPolicy: Required value: valid values: "OnFailure", "Never"/,
  },
  {
    id: 'cron-schedule',
    title: 'a CronJob with a bad schedule',
    plural: 'cronjobs',
    body: {
      metadata: { name: 'x' },
      spec: {
        schedule: 'daily-ish',
        jobTemplate: { spec: { template: { spec: { restartPolicy: 'Never', containers: [container] } } } },
      },
    },
    message: /spec\.schedule: Invalid value: "daily-ish"/,
  },
  {
    id: 'claim-without-size',
    title: 'a volume claim without a size',
    plural: 'persistentvolumeclaims',
    body: { metadata: { name: 'x' }, spec: { accessModes: ['ReadWriteOnce'] } },
    message: /spec\.resources\[storage\]: Required value/,
  },
  {
    id: 'lease-duration',
    title: 'a lease of no duration',
    plural: 'leases',
    body: { metadata: { name: 'x' }, spec: { leaseDurationSeconds: 0 } },
    message: /spec\.leaseDurationSeconds: Invalid value: 0: must be greater than 0/,
  },
  {
    id: 'role-without-verbs',
    title: 'a role rule without verbs',
    plural: 'roles',
    body: { metadata: { name: 'x' }, rules: [{ apiGroups: [''], resources: ['pods'] }] },
    message: /rules\[0\]\.verbs: Required value: verbs must contain at least one value/,
  },
  {
    id: 'config-map-key',
    title: 'a ConfigMap with a bad key',
    plural: 'configmaps',
    body: configMap('x', { 'a/b': 'c' }),
    message: /data\[a\/b\]: Invalid value: "a\/b": a valid config key must consist of alphanumeric characters/,
  },
];

const ruleCases: readonly ConformanceCase[] = rules.map(({ id, title, plural, body, message }) => ({
  id: `validation/${id}`,
  title: `${title} is refused, dry or not`,
  run: async ({ a, b, path }) => {
    await refused(a.post(path(plural), body, { dryRun: 'All' }), 422, 'Invalid', message);
    await refused(b.post(path(plural), body), 422, 'Invalid', message, { name: 'x' });
    await missing(a.get(path(plural, 'x')));
  },
}));

export const validationCases: readonly ConformanceCase[] = [
  ...ruleCases,
  {
    id: 'validation/strict-unknown',
    title: 'strict validation refuses an unknown field, by its path',
    run: async ({ a, b, path }) => {
      const body = { ...pod('x', { containers: [{ ...container, imagee: 'x' }], nodeNam: 'n' }) };
      await refused(
        a.post(path('pods'), body, { fieldValidation: 'Strict' }),
        400,
        'BadRequest',
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.containers[0].imagee", unknown field "spec.nodeNam"',
      );
      await missing(b.get(path('pods', 'x')));
    },
  },
  {
    id: 'validation/strict-duplicate',
    title: 'strict validation refuses a key that comes twice',
    wire: true,
    run: async ({ a, b, path }) => {
      const raw = '{"metadata":{"name":"x"},"data":{"a":"1","a":"2"}}';
      await refused(
        a.call({ method: 'POST', path: path('configmaps'), query: { fieldValidation: 'Strict' }, raw }),
        400,
        'BadRequest',
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data.a"',
      );
      await ok(b.call({ method: 'POST', path: path('configmaps'), query: { fieldValidation: 'Ignore' }, raw }), {
        data: { a: '2' },
      });
    },
  },
  {
    id: 'validation/warn',
    title: 'by default unknown fields are dropped with a warning each',
    run: async ({ a, b, path }) => {
      const { status, headers } = await a.post(path('configmaps'), { ...configMap('x'), dta: {}, more: 1 });
      same([status, headers['warning']], [201, '299 - "unknown field \\"dta\\"", 299 - "unknown field \\"more\\""']);
      has(await ok(b.get(path('configmaps', 'x'))), { dta: undefined, more: undefined });
    },
  },
  {
    id: 'validation/ignore',
    title: 'unknown fields can be dropped in silence',
    run: async ({ a, b, path }) => {
      const { status, headers } = await a.post(
        path('configmaps'),
        { ...configMap('x'), dta: {} },
        { fieldValidation: 'Ignore' },
      );
      same([status, headers['warning']], [201, undefined]);
      has(await ok(b.get(path('configmaps', 'x'))), { dta: undefined });
    },
  },
  {
    id: 'validation/strict-patch',
    title: 'strict validation holds for patches, too',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('deployments'), deployment('x')));
      await refused(
        b.merge(path('deployments', 'x'), { spec: { replica: 3 } }, { fieldValidation: 'Strict' }),
        422,
        'Invalid',
        /strict decoding error: unknown field "spec.replica"/,
      );
      await refused(
        b.put(path('deployments', 'x'), { ...made, spek: {} }, { fieldValidation: 'Strict' }),
        400,
        'BadRequest',
        /strict decoding error: unknown field "spek"/,
      );
      same(await ok(a.get(path('deployments', 'x'))), made);
    },
  },
  {
    id: 'validation/strict-unknown-mode',
    title: 'an unknown mode of validation is refused',
    run: async ({ a, b, path }) => {
      await refused(
        a.post(path('configmaps'), configMap('x'), { fieldValidation: 'Kind' }),
        422,
        'Invalid',
        'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Kind": supported values: "", "Ignore", "Strict", "Warn"',
      );
      await missing(b.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'validation/wrong-type',
    title: 'a field of the wrong type cannot be read at all',
    run: async ({ a, b, path }) => {
      await refused(
        a.post(path('deployments'), deployment('x', { replicas: 'three' })),
        400,
        'BadRequest',
        'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32',
      );
      await refused(
        a.post(path('configmaps'), { metadata: { name: 'x' }, data: ['a'] }),
        400,
        'BadRequest',
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string',
      );
      await missing(b.get(path('deployments', 'x')));
    },
  },
  {
    id: 'validation/bad-quantity',
    title: 'a quantity that is none cannot be read',
    run: async ({ a, b, path }) => {
      await refused(
        a.post(path('pods'), withContainer({ resources: { requests: { cpu: 'lots' } } })),
        400,
        'BadRequest',
        'Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression \'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$\'',
      );
      await missing(b.get(path('pods', 'x')));
    },
  },
  {
    id: 'validation/quantities-canonical',
    title: 'quantities come back in their canonical form',
    run: async ({ a, b, path }) => {
      const requests = { cpu: '1500m', memory: '1024Mi', 'ephemeral-storage': '0.5Gi' };
      await ok(a.post(path('pods'), withContainer({ resources: { requests } })));
      await ok(b.get(path('pods', 'x')), {
        spec: {
          containers: [{ resources: { requests: { cpu: '1500m', memory: '1Gi', 'ephemeral-storage': '512Mi' } } }],
        },
      });
    },
  },
  {
    id: 'validation/claims-are-volumes',
    title: 'the claims of a StatefulSet are volumes of its pods: they are mounted by name, and nothing else is',
    run: async ({ a, b, path }) => {
      const labels = { app: 'x' };
      const set = (name: string, mount: string, more: object = {}) => ({
        metadata: { name },
        spec: {
          serviceName: 'x',
          replicas: 0,
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: { containers: [{ ...container, volumeMounts: [{ name: mount, mountPath: '/data' }] }], ...more },
          },
          volumeClaimTemplates: [
            {
              metadata: { name: 'data' },
              spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
            },
          ],
        },
      });
      const created = await ok(a.post(path('statefulsets'), set('claimed', 'data')));
      // The template is kept as it was given.
      has(created, { spec: { template: { spec: { volumes: undefined } } } });
      await ok(b.merge(path('statefulsets', 'claimed'), { spec: { minReadySeconds: 1 } }));
      await ok(a.post(path('statefulsets'), set('both', 'data', { volumes: [{ name: 'data', emptyDir: {} }] })));
      await ok(a.post(path('statefulsets'), set('own', 'logs', { volumes: [{ name: 'logs', emptyDir: {} }] })));
      await refused(
        b.post(path('statefulsets'), set('x', 'logs')),
        422,
        'Invalid',
        'StatefulSet.apps "x" is invalid: spec.template.spec.containers[0].volumeMounts[0].name: Not found: "logs"',
      );
    },
  },
  {
    id: 'validation/immutable-selector',
    title: 'the selector of a Deployment is fixed',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('deployments'), deployment('x')));
      const labels = { app: 'y' };
      const spec = { selector: { matchLabels: labels }, template: { metadata: { labels } } };
      await refused(
        b.merge(path('deployments', 'x'), { spec }),
        422,
        'Invalid',
        /spec\.selector: Invalid value: .*: field is immutable/,
      );
      same(await ok(a.get(path('deployments', 'x'))), made);
    },
  },
  {
    id: 'validation/priority-class',
    title: 'a pod gets the priority of its class, and an unknown class is refused',
    run: async ({ a, b, path, unique }) => {
      const name = unique('class');
      await ok(a.post(path('priorityclasses'), { metadata: { name }, value: 1234, preemptionPolicy: 'Never' }));
      await ok(b.post(path('pods'), pod('x', { priorityClassName: name })), {
        spec: { priority: 1234, preemptionPolicy: 'Never' },
      });
      await refused(
        b.post(path('pods'), pod('y', { priorityClassName: 'no-such-class' })),
        403,
        'Forbidden',
        'pods "y" is forbidden: no PriorityClass with name no-such-class was found',
      );
    },
  },
];
