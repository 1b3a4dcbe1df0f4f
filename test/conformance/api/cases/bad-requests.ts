// SPDX-License-Identifier: Apache-2.0
// What no client should send, and the words it gets back. The server is asked once more each time: it stays up.

import type { Call } from '../caller.ts';
import { type ConformanceCase, has, missing, ok, refused, same } from '../case.ts';
import { configMap, deployment, pod } from '../objects.ts';

interface Bad {
  readonly id: string;
  readonly title: string;
  readonly call: (path: string) => Call;
  readonly code: number;
  readonly reason: string;
  readonly message: string | RegExp;
}

const post =
  (raw: string, more: Partial<Call> = {}) =>
  (path: string): Call => ({ method: 'POST', path, raw, ...more });

const bad: readonly Bad[] = [
  {
    id: 'no-json',
    title: 'a body that is no JSON',
    call: post('hello'),
    code: 400,
    reason: 'BadRequest',
    message:
      /^the object provided is unrecognized \(must be of type ConfigMap\): couldn't get version\/kind; json parse error: invalid character 'h' looking for beginning of value \(68656c6c6f\)$/,
  },
  {
    id: 'cut-json',
    title: 'a body that ends too early',
    call: post('{"metadata":{"name":"x"'),
    code: 400,
    reason: 'BadRequest',
    message: /json parse error: unexpected end of JSON input/,
  },
  {
    id: 'trailing',
    title: 'a body with something after it',
    call: post('{"metadata":{"name":"x"}} trailing'),
    code: 400,
    reason: 'BadRequest',
    message: /invalid character 't' after top-level value/,
  },
  {
    id: 'list-body',
    title: 'a list as a body',
    call: post('[]'),
    code: 400,
    reason: 'BadRequest',
    message: /json: cannot unmarshal array into Go value/,
  },
  {
    id: 'number-body',
    title: 'a number as a body',
    call: post('42'),
    code: 400,
    reason: 'BadRequest',
    message: /json: cannot unmarshal number into Go value/,
  },
  {
    id: 'empty-object',
    title: 'an empty object',
    call: post('{}'),
    code: 422,
    reason: 'Invalid',
    message: /metadata\.name: Required value: name or generateName is required/,
  },
  {
    id: 'wrong-kind',
    title: 'a body of another kind',
    call: post('{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}'),
    code: 400,
    reason: 'BadRequest',
    message:
      'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion',
  },
  {
    id: 'unknown-kind',
    title: 'a body of an unknown kind',
    call: post('{"apiVersion":"v1","kind":"Sculpture","metadata":{"name":"x"}}'),
    code: 400,
    reason: 'BadRequest',
    message:
      'Sculpture in version "v1" cannot be handled as a ConfigMap: no kind "Sculpture" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
  },
  {
    id: 'unknown-version',
    title: 'a body of an unknown version',
    call: post('{"apiVersion":"v9","kind":"ConfigMap","metadata":{"name":"x"}}'),
    code: 400,
    reason: 'BadRequest',
    message:
      'ConfigMap in version "v9" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v9" in scheme "pkg/runtime/scheme.go:111"',
  },
  {
    id: 'metadata-type',
    title: 'metadata that is no object',
    call: post('{"metadata":"x"}'),
    code: 400,
    reason: 'BadRequest',
    message: /json: cannot unmarshal string into Go struct field ConfigMap\.metadata of type v1\.ObjectMeta/,
  },
  {
    id: 'name-type',
    title: 'a name that is a number',
    call: post('{"metadata":{"name":5}}'),
    code: 400,
    reason: 'BadRequest',
    message: /json: cannot unmarshal number into Go struct field ObjectMeta\.metadata\.name of type string/,
  },
  {
    id: 'media-type',
    title: 'a body of an unknown format',
    call: post('a=b', { contentType: 'application/x-www-form-urlencoded' }),
    code: 415,
    reason: 'UnsupportedMediaType',
    message:
      /^the body of the request was in an unknown format - accepted media types include: application\/json, application\/yaml, application\/vnd\.kubernetes\.protobuf/,
  },
  {
    id: 'patch-media-type',
    title: 'a patch that does not say its kind',
    call: (path) => ({ method: 'PATCH', path: `${path}/x`, raw: '{}', contentType: 'application/json' }),
    code: 415,
    reason: 'UnsupportedMediaType',
    message: '415: Unsupported Media Type',
  },
  {
    id: 'accept',
    title: 'a wish for an unknown format',
    call: (path) => ({ method: 'GET', path, accept: 'text/csv' }),
    code: 406,
    reason: 'NotAcceptable',
    message:
      '406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch',
  },
  {
    id: 'post-to-object',
    title: 'a create on the path of an object',
    call: (path) => ({ method: 'POST', path: `${path}/x`, raw: '{}' }),
    code: 405,
    reason: 'MethodNotAllowed',
    message: 'the server does not allow this method on the requested resource',
  },
  {
    id: 'put-to-collection',
    title: 'an update of a collection',
    call: (path) => ({ method: 'PUT', path, raw: '{}' }),
    code: 405,
    reason: 'MethodNotAllowed',
    message: 'the server does not allow this method on the requested resource',
  },
  {
    id: 'patch-collection',
    title: 'a patch of a collection',
    call: (path) => ({ method: 'PATCH', path, raw: '{}', contentType: 'application/merge-patch+json' }),
    code: 405,
    reason: 'MethodNotAllowed',
    message: 'the server does not allow this method on the requested resource',
  },
  {
    id: 'unknown-subresource',
    title: 'an unknown subresource',
    call: (path) => ({ method: 'GET', path: `${path}/x/shape` }),
    code: 404,
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
  },
  {
    id: 'patch-no-json',
    title: 'a patch that is no JSON',
    call: (path) => ({ method: 'PATCH', path: `${path}/here`, raw: '{', contentType: 'application/merge-patch+json' }),
    code: 400,
    reason: 'BadRequest',
    message: /error decoding patch: unexpected end of JSON input|unexpected end of JSON input/,
  },
  {
    id: 'json-patch-no-json',
    title: 'a JSON patch that is no JSON',
    call: (path) => ({ method: 'PATCH', path: `${path}/here`, raw: '[{', contentType: 'application/json-patch+json' }),
    code: 400,
    reason: 'BadRequest',
    message: /error decoding patch: unexpected end of JSON input/,
  },
  {
    id: 'apply-no-yaml',
    title: 'an apply that is no YAML',
    call: (path) => ({
      method: 'PATCH',
      path: `${path}/here`,
      query: { fieldManager: 'm' },
      raw: 'a: [',
      contentType: 'application/apply-patch+yaml',
    }),
    code: 400,
    reason: 'BadRequest',
    message: /error decoding YAML: /,
  },
  {
    id: 'delete-options',
    title: 'delete options that are none',
    call: (path) => ({ method: 'DELETE', path: `${path}/here`, raw: '{"gracePeriodSeconds":"soon"}' }),
    code: 400,
    reason: 'BadRequest',
    message: /json: cannot unmarshal string into Go struct field DeleteOptions\.gracePeriodSeconds of type int64/,
  },
  {
    id: 'delete-options-kind',
    title: 'delete options of another kind',
    call: (path) => ({ method: 'DELETE', path: `${path}/here`, raw: '{"apiVersion":"v1","kind":"Sculpture"}' }),
    code: 400,
    reason: 'BadRequest',
    message: /Sculpture/,
  },
  {
    id: 'name-mismatch',
    title: 'an update under another name',
    call: (path) => ({ method: 'PUT', path: `${path}/here`, raw: '{"metadata":{"name":"there"}}' }),
    code: 400,
    reason: 'BadRequest',
    message: 'the name of the object (there) does not match the name on the URL (here)',
  },
  {
    id: 'name-empty',
    title: 'an update without a name',
    call: (path) => ({ method: 'PUT', path: `${path}/here`, raw: '{"metadata":{}}' }),
    code: 400,
    reason: 'BadRequest',
    message: /name must be provided|the name of the object \(\) does not match/,
  },
  {
    id: 'namespace-mismatch',
    title: 'a create in another namespace than its path says',
    call: post('{"metadata":{"name":"x","namespace":"other"}}'),
    code: 400,
    reason: 'BadRequest',
    message: 'the namespace of the provided object does not match the namespace sent on the request',
  },
  {
    id: 'empty-body',
    title: 'a create without a body',
    call: (path) => ({ method: 'POST', path, raw: '' }),
    code: 400,
    reason: 'BadRequest',
    message: /./,
  },
];

const badCases: readonly ConformanceCase[] = bad.map(({ id, title, call, code, reason, message }) => ({
  id: `bad-requests/${id}`,
  title: `${title} is refused with ${code}, and another client goes on`,
  wire: true,
  run: async ({ a, b, path }) => {
    await ok(a.post(path('configmaps'), configMap('here')));
    await refused(b.call(call(path('configmaps'))), code, reason, message);
    await ok(a.get(path('configmaps', 'here')), { data: { a: '1' } });
    await missing(a.get(path('configmaps', 'x')));
  },
}));

export const badRequestCases: readonly ConformanceCase[] = [
  ...badCases,
  {
    id: 'bad-requests/too-large',
    title: 'a body of more than 3 MiB is refused',
    wire: true,
    run: async ({ a, b, path }) => {
      const raw = JSON.stringify(configMap('x', { a: 'v'.repeat(3 * 1024 * 1024 + 1) }));
      await refused(
        a.call({ method: 'POST', path: path('configmaps'), raw }),
        413,
        'RequestEntityTooLarge',
        'Request entity too large: limit is 3145728',
      );
      await missing(b.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'bad-requests/too-large-config-map',
    title: 'a ConfigMap of more than 1 MiB is refused in other words',
    run: async ({ a, b, path }) => {
      await refused(
        a.post(path('configmaps'), configMap('x', { a: 'v'.repeat(1024 * 1024 + 1) })),
        422,
        'Invalid',
        'ConfigMap "x" is invalid: []: Too long: may not be more than 1048576 bytes',
      );
      await missing(b.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'bad-requests/yaml',
    title: 'YAML is taken where JSON is',
    wire: true,
    run: async ({ a, b, path }) => {
      const raw = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  a: "1"\n';
      await ok(a.call({ method: 'POST', path: path('configmaps'), raw, contentType: 'application/yaml' }), {
        data: { a: '1' },
      });
      await ok(b.get(path('configmaps', 'x')), { data: { a: '1' } });
    },
  },
  {
    id: 'bad-requests/unknown-method',
    title: 'an unknown method is not allowed',
    wire: true,
    run: async ({ a, b, path }) => {
      same((await a.call({ method: 'PROPFIND', path: path('configmaps') })).status, 405);
      await ok(b.get(path('configmaps')));
    },
  },
  {
    id: 'bad-requests/unknown-path',
    title: 'a path of nothing is a plain 404',
    wire: true,
    run: async ({ a, b, path }) => {
      const { status, body, headers } = await a.get('/apis/nowhere.example.com/v1/things');
      same([status, body], [404, '404 page not found\n']);
      has(headers, { 'content-type': /^text\/plain/ });
      await ok(b.get(path('configmaps')));
    },
  },
  {
    id: 'bad-requests/head',
    title: 'HEAD answers like GET, without a body',
    wire: true,
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      const { status } = await b.call({ method: 'HEAD', path: path('configmaps', 'x') });
      same(status === 200 || status === 405, true);
    },
  },
  {
    id: 'bad-requests/namespaced-without-namespace',
    title: 'a namespaced object cannot be created outside of a namespace',
    run: async ({ a, b, path }) => {
      await refused(
        a.post('/api/v1/configmaps', configMap('x')),
        405,
        'MethodNotAllowed',
        'the server does not allow this method on the requested resource',
      ).catch(() => refused(a.post('/api/v1/configmaps', configMap('x')), 400, 'BadRequest'));
      await refused(b.delete('/apis/apps/v1/deployments'), 405, 'MethodNotAllowed');
      same((await ok(b.get(path('configmaps')))).items, []);
    },
  },
  {
    id: 'bad-requests/deep-json',
    title: 'a body nested ten thousand deep is refused, and nothing breaks',
    wire: true,
    run: async ({ a, b, path }) => {
      const raw = `{"metadata":{"name":"x"},"data":${'['.repeat(11_000)}${']'.repeat(11_000)}}`;
      const { status } = await a.call({ method: 'POST', path: path('configmaps'), raw });
      same(status, 400);
      await ok(b.get(path('configmaps')));
    },
  },
  {
    id: 'bad-requests/put-creates-nothing',
    title: 'an update never creates a Deployment',
    run: async ({ a, b, path }) => {
      await refused(
        a.put(path('deployments', 'x'), deployment('x')),
        404,
        'NotFound',
        'deployments.apps "x" not found',
      );
      await missing(b.get(path('deployments', 'x')));
    },
  },
  {
    id: 'bad-requests/null-body',
    title: 'null as a body is refused',
    wire: true,
    run: async ({ a, b, path }) => {
      const { status } = await a.call({ method: 'POST', path: path('configmaps'), raw: 'null' });
      same(status >= 400 && status < 500, true);
      await ok(b.get(path('configmaps')));
    },
  },
  {
    id: 'bad-requests/order',
    title: 'a request with many faults is refused for the first one: access, path, answer, options, body, name',
    wire: true,
    run: async ({ a, b, anonymous, path }) => {
      const maps = path('configmaps');
      const broken = { raw: '{', contentType: 'application/x' };
      const picky = { accept: 'text/html' };
      const stranger = anonymous();
      await refused(stranger.call({ method: 'POST', path: maps, ...broken, ...picky }), 403, 'Forbidden');
      await refused(a.call({ method: 'PATCH', path: maps, ...broken, ...picky }), 405, 'MethodNotAllowed');
      same((await a.call({ method: 'POST', path: maps, ...broken, ...picky })).status, 406);
      await refused(a.call({ method: 'POST', path: maps, ...broken }), 415, 'UnsupportedMediaType');
      await refused(
        b.call({ method: 'POST', path: maps, raw: '{', query: { dryRun: 'Some' } }),
        422,
        'Invalid',
        /dryRun: Unsupported value: \["Some"\]: supported values: "All"/,
      );
      await refused(
        b.call({ method: 'POST', path: maps, raw: '{' }),
        400,
        'BadRequest',
        /unexpected end of JSON input/,
      );
      await refused(
        b.put(`${maps}/x`, { metadata: { name: 'y' } }),
        400,
        'BadRequest',
        'the name of the object (y) does not match the name on the URL (x)',
      );
      await missing(b.put(`${maps}/x`, { metadata: { name: 'x' } }));
    },
  },
  {
    id: 'bad-requests/nameless-update',
    title: 'an update must say what it is of',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      await refused(
        b.put(path('configmaps', 'x'), { metadata: {}, data: {} }),
        400,
        'BadRequest',
        'the name of the object (x based on URL) was undeterminable: name must be provided',
      );
      await ok(b.get(path('configmaps', 'x')), { data: { a: '1' } });
    },
  },
  {
    id: 'bad-requests/dots',
    title: 'names that would lead elsewhere in a path are refused',
    wire: true,
    run: async ({ a, b, path }) => {
      await refused(
        a.get(path('configmaps', '..')),
        400,
        'BadRequest',
        `Name parameter invalid: "..": may not be '..'`,
      );
      await refused(b.delete(path('secrets', '.')), 400, 'BadRequest', `Name parameter invalid: ".": may not be '.'`);
      // An escaped slash is a slash: what follows is a subresource that is not there.
      await refused(
        a.get(path('configmaps', 'x%2Fy')),
        404,
        'NotFound',
        'the server could not find the requested resource',
      );
    },
  },
  {
    id: 'bad-requests/strange-credentials',
    title: 'who sends no bearer token is nobody in particular',
    wire: true,
    run: async ({ anonymous, a, path }) => {
      const stranger = anonymous();
      for (const authorization of ['', 'Basic eDp5', 'Bearer', 'token']) {
        await refused(
          stranger.call({ method: 'GET', path: path('configmaps'), headers: { authorization } }),
          403,
          'Forbidden',
          /User "system:anonymous" cannot list resource "configmaps"/,
        );
      }
      await ok(a.get(path('configmaps')));
    },
  },
  {
    id: 'bad-requests/nobody-may-not',
    title: 'without credentials only health and version can be seen',
    wire: true,
    run: async ({ anonymous, a, path }) => {
      const stranger = anonymous();
      for (const open of ['/healthz', '/livez', '/readyz', '/version']) {
        same((await stranger.get(open)).status, 200, open);
      }
      await refused(stranger.get('/apis'), 403, 'Forbidden');
      await refused(stranger.post(path('configmaps'), configMap('x')), 403, 'Forbidden');
      await missing(a.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'bad-requests/strange-fields',
    title: 'fields named like parts of a language are unknown fields like others, warned about in any script',
    wire: true,
    run: async ({ a, b, path }) => {
      const strange = { metadata: { name: 'x', hasOwnProperty: '', constructor: {} }, toString: 1, 'größe�': 2 };
      const reply = await a.post(path('configmaps'), strange);
      same(reply.status, 201);
      has(reply.headers, { warning: /unknown field \\"toString\\"/ });
      const { metadata } = await ok(b.get(path('configmaps', 'x')));
      same(Object.hasOwn(metadata, 'hasOwnProperty'), false);
      await refused(
        b.put(path('configmaps', 'x'), strange, { fieldValidation: 'Strict' }),
        400,
        'BadRequest',
        /strict decoding error: /,
      );
    },
  },
  {
    id: 'bad-requests/wrong-types',
    title: 'a value of the wrong type is refused wherever it stands',
    run: async ({ a, b, path }) => {
      await refused(
        a.post(path('roles'), { metadata: { name: {} }, rules: [] }),
        400,
        'BadRequest',
        'Role in version "v1" cannot be handled as a Role: json: cannot unmarshal object into Go struct field ObjectMeta.metadata.name of type string',
      );
      await refused(
        b.post(path('selfsubjectaccessreviews'), { spec: { resourceAttributes: { verb: ['get'] } } }),
        400,
        'BadRequest',
        /cannot unmarshal array into Go struct field ResourceAttributes\.spec\.resourceAttributes\.verb of type string/,
      );
      await refused(
        b.delete(path('configmaps', 'x'), { propagationPolicy: [] }),
        400,
        'BadRequest',
        /cannot unmarshal array into Go struct field DeleteOptions\.propagationPolicy of type/,
      );
      await ok(a.post(path('configmaps'), configMap('x')));
      await refused(
        b.patch('json', path('configmaps', 'x'), [{ op: 'add', path: 1 }]),
        400,
        'BadRequest',
        'error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string',
      );
    },
  },
  {
    id: 'bad-requests/only-questions',
    title: 'reviews are asked, not kept: there is nothing under their names',
    run: async ({ a, b, path }) => {
      const reviews = path('selfsubjectaccessreviews');
      const question = { spec: { resourceAttributes: { verb: 'get', resource: 'pods' } } };
      await ok(a.post(reviews, question), { status: { allowed: true } });
      await refused(b.get(reviews), 405, 'MethodNotAllowed');
      await refused(
        b.put(`${reviews}/x`, question),
        404,
        'NotFound',
        'the server could not find the requested resource',
      );
      await refused(b.delete(`${reviews}/x`), 404, 'NotFound');
    },
  },
  {
    id: 'bad-requests/pod-again',
    title: 'a pod can be replaced by the manifest it was made from, in which the server filled gaps',
    run: async ({ a, b, c, path }) => {
      const made = pod('x', { tolerations: [{ key: 'a', operator: 'Exists' }] });
      const first = await ok(a.post(path('pods'), made));
      const again = await ok(b.put(path('pods', 'x'), made));
      same(again.spec['tolerations'], first.spec['tolerations']);
      same(again.metadata.resourceVersion, first.metadata.resourceVersion);
      await refused(
        c.put(path('pods', 'x'), pod('x')),
        422,
        'Invalid',
        /spec\.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds/,
      );
    },
  },
];
