// SPDX-License-Identifier: Apache-2.0
// What an answer must look like before anybody reads it, by what was asked. An answer of another shape is none: a machine
// whose tags cannot be read must not be taken for somebody else's, nor a list with a hole in it for the truth.

type Check = (value: unknown) => boolean;
/** By field. Fields that are not listed are not read. */
type Shape = Readonly<Record<string, Check>>;

const text: Check = (value) => typeof value === 'string';
const number: Check = (value) => typeof value === 'number';
const id: Check = (value) => Number.isSafeInteger(value) && (value as number) > 0;
const count: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const truth: Check = (value) => typeof value === 'boolean';
/** The API leaves out what it does not know, or says null. */
const maybe =
  (check: Check): Check =>
  (value) =>
    value === undefined || value === null || check(value);
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const like =
  (shape: Shape): Check =>
  (value) =>
    isObject(value) && wrongField(shape, value) === undefined;
const mapOf =
  (check: Check): Check =>
  (value) =>
    isObject(value) && Object.values(value).every(check);

const pool: Shape = {
  id,
  type: text,
  count,
  tags: listOf(text),
  nodes: maybe(listOf(like({ id: text, instance_id: maybe(count), status: maybe(text) }))),
  labels: maybe(mapOf(text)),
  taints: maybe(listOf(like({ key: text, value: maybe(text), effect: text }))),
  firewall_id: maybe(number),
  disk_encryption: maybe(text),
  k8s_version: maybe(text),
};
const linode: Shape = {
  id,
  label: text,
  type: maybe(text),
  region: text,
  image: maybe(text),
  status: text,
  tags: listOf(text),
  created: text,
  lke_cluster_id: maybe(number),
  placement_group: maybe(like({ id: number })),
  disk_encryption: maybe(text),
  specs: maybe(like({ disk: count })),
};
const cluster: Shape = { id, label: text, region: text, k8s_version: text, tier: maybe(text) };
const disk: Shape = { id, label: text, size: count, filesystem: text };
const config: Shape = { id, devices: mapOf(maybe(like({ disk_id: maybe(count) }))) };
const subnets = listOf(like({ id }));

/** Without the ids in it, what a path leads to. */
const shapes: readonly (readonly [path: RegExp, shape: Shape])[] = [
  [/^lke\/clusters$/, cluster],
  [/^lke\/clusters\/\d+\/pools(?:\/\d+)?$/, pool],
  [/^linode\/instances(?:\/\d+)?$/, linode],
  [/^linode\/instances\/\d+\/disks$/, disk],
  [/^linode\/instances\/\d+\/configs$/, config],
  [/^linode\/instances\/\d+\/firewalls$/, { id }],
  // Plans are judged one by one: see `isPlan`.
  [/^linode\/types$/, { id: text }],
  [/^regions\/[^/]+$/, { id: text, capabilities: listOf(text) }],
  [/^vpcs\/\d+$/, { region: text, subnets }],
  [/^placement\/groups\/\d+$/, { region: text }],
  [
    /^images\/[^/]+$/,
    { label: maybe(text), status: maybe(text), capabilities: maybe(listOf(text)), deprecated: maybe(truth) },
  ],
];

/** What is wrong with what a path leads to, in words; undefined where it can be read. */
export function shapeProblem(path: string, value: unknown): string | undefined {
  const shape = shapes.find(([pattern]) => pattern.test(path))?.[1];
  if (!shape && typeof value === 'object' && value !== null) return undefined;
  if (!shape || !isObject(value)) return 'the answer is not an object';
  const field = wrongField(shape, value);
  return field === undefined ? undefined : `the answer says something else than ${field} can be`;
}

function wrongField(shape: Shape, value: Readonly<Record<string, unknown>>): string | undefined {
  return Object.entries(shape).find(([field, check]) => !check(value[field]))?.[0];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const money = { hourly: maybe(number), monthly: maybe(number) };
const plan: Shape = {
  id: text,
  class: text,
  disk: count,
  memory: count,
  vcpus: count,
  gpus: maybe(count),
  accelerated_devices: maybe(count),
  transfer: maybe(count),
  network_out: maybe(count),
  price: maybe(like(money)),
  region_prices: maybe(listOf(like({ ...money, id: text }))),
};

/** Whether a plan can be read: one that cannot is not for sale, and the others are. */
export const isPlan: Check = like(plan);

/** Whether this says of a plan whether a region has it. */
export const isAvailability: Check = like({ region: text, plan: text, available: truth });
