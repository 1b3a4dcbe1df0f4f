// SPDX-License-Identifier: Apache-2.0
// What the parts of an object look like that the solver reads, to tell people where theirs does not. An API server has seen to
// most of it; a file that somebody wrote has not. Null counts as left out.
import { Quantity } from '../kube/quantity.ts';

/** What is wrong with a value, as it goes on after the path to it; undefined when nothing is. A value that is right costs no text. */
type Check = (value: unknown) => string | undefined;

const text: Check = (value) => {
  if (typeof value === 'string') return undefined;
  const plain = typeof value === 'number' || typeof value === 'boolean';
  return ` must be a text${plain ? `: put ${String(value)} in quotes` : ''}`;
};

const integer: Check = (value) => (Number.isInteger(value) ? undefined : ' must be a whole number');

const quantity: Check = (value) => {
  if (typeof value !== 'string' && typeof value !== 'number') return ' must be a quantity, such as 500m or 2Gi';
  try {
    Quantity.parse(value);
    return undefined;
  } catch {
    // Whatever it is that Quantity does not like: it is not one.
    return `: ${JSON.stringify(value)} is not a quantity, such as 500m or 2Gi`;
  }
};

const room: Check = (value) => {
  const wrong = quantity(value);
  if (wrong !== undefined) return wrong;
  return Quantity.parse(value as string).nano < 0n ? ' must not be negative' : undefined;
};

const anything: Check = () => undefined;

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function list(each: Check): Check {
  return (value) => {
    if (!Array.isArray(value)) return ' must be a list';
    for (let i = 0; i < value.length; i++) {
      const wrong = each(value[i]);
      if (wrong !== undefined) return `[${i}]${wrong}`;
    }
    return undefined;
  };
}

function mapOf(each: Check): Check {
  return (value) => {
    if (!isObject(value)) return ' must be a map';
    for (const key in value) {
      const wrong = each(value[key]);
      if (wrong !== undefined) return `.${key}${wrong}`;
    }
    return undefined;
  };
}

/** An object with these fields, if it has them; those that end with `!` it must have. Others are not looked at. */
function object(fields: Readonly<Record<string, Check>>): Check {
  const checks = Object.entries(fields).map(([field, check]) => {
    const isNeeded = field.endsWith('!');
    return { name: isNeeded ? field.slice(0, -1) : field, isNeeded, check };
  });
  return (value) => {
    if (!isObject(value)) return ' must be an object';
    for (let i = 0; i < checks.length; i++) {
      const { name, isNeeded, check } = checks[i]!;
      const field = value[name];
      if (field === undefined || field === null) {
        if (isNeeded) return `.${name} is missing`;
        continue;
      }
      const wrong = check(field);
      if (wrong !== undefined) return `.${name}${wrong}`;
    }
    return undefined;
  };
}

/** A check of a whole object: a sentence that begins with the path to what is wrong. */
function whole(check: Check, path = ''): Check {
  return (value) => {
    const wrong = check(value);
    return wrong === undefined ? undefined : `${path}${wrong}`.replace(/^\./, '');
  };
}

const expression = object({ 'key!': text, 'operator!': text, values: list(text), minValues: integer });
const nodeTerm = object({ matchExpressions: list(expression), matchFields: list(anything) });
const nodeTerms = object({ 'nodeSelectorTerms!': list(nodeTerm) });
// What is in a selector is told by whoever compiles it.
const selector = object({
  matchLabels: mapOf(text),
  matchExpressions: list(object({ 'key!': text, values: list(text) })),
});
const podTerm = object({
  'topologyKey!': text,
  labelSelector: selector,
  namespaces: list(text),
  namespaceSelector: selector,
  matchLabelKeys: list(text),
  mismatchLabelKeys: list(text),
});
const podTerms = object({
  requiredDuringSchedulingIgnoredDuringExecution: list(podTerm),
  preferredDuringSchedulingIgnoredDuringExecution: list(object({ 'weight!': integer, 'podAffinityTerm!': podTerm })),
});
const affinity = object({
  nodeAffinity: object({
    requiredDuringSchedulingIgnoredDuringExecution: nodeTerms,
    preferredDuringSchedulingIgnoredDuringExecution: list(object({ 'weight!': integer, 'preference!': nodeTerm })),
  }),
  podAffinity: podTerms,
  podAntiAffinity: podTerms,
});
const toleration = object({ key: text, operator: text, value: text, effect: text });
const spread = object({
  'topologyKey!': text,
  labelSelector: selector,
  matchLabelKeys: list(text),
  minDomains: integer,
});
const constraints = {
  nodeSelector: mapOf(text),
  affinity,
  tolerations: list(toleration),
  topologySpreadConstraints: list(spread),
};
const amounts = mapOf(quantity);
const resources = object({ requests: amounts, limits: amounts });
const containers = list(object({ resources, ports: list(object({ hostIP: text, protocol: text })) }));
const podSpec = object({
  ...constraints,
  containers,
  initContainers: containers,
  resources,
  overhead: amounts,
  volumes: list(object({})),
});
const taints = list(object({ 'key!': text, value: text, 'effect!': text }));

/** What is wrong with the shape of a pod's constraints. */
export const constraintsShape = whole(object(constraints), 'spec');
/** What is wrong with the shape of a pod. */
export const podShape = whole(object({ 'spec!': podSpec }));
/** What is wrong with the shape of a NodePool. */
export const nodePoolShape = whole(
  object({
    'spec!': object({
      weight: integer,
      limits: amounts,
      'template!': object({
        metadata: object({ labels: mapOf(text) }),
        spec: object({ requirements: list(expression), taints, startupTaints: taints }),
      }),
    }),
  }),
);
/** What is wrong with the shape of a DaemonSet. */
export const daemonSetShape = whole(object({ 'spec!': object({ 'template!': object({ 'spec!': podSpec }) }) }));
/** What is wrong with the shape of a node, or of the claim for one. */
export const nodeShape = whole(
  object({
    spec: object({ taints, startupTaints: taints }),
    status: object({ capacity: amounts, allocatable: amounts }),
  }),
);
const rooms = mapOf(room);
/** What is wrong with the shape of an instance type. */
export const instanceTypeShape = whole(
  object({
    'name!': text,
    requirements: list(expression),
    'offerings!': list(object({ requirements: list(expression), capacityOverride: rooms, overheadOverride: rooms })),
    'capacity!': rooms,
    overhead: object({ kubeReserved: rooms, systemReserved: rooms, evictionThreshold: rooms }),
  }),
);
/** What is wrong with the places that a volume may be at. */
export const nodeTermsShape = whole(nodeTerms, 'spec.nodeAffinity.required');
/** What is wrong with the places that a storage class names. */
export const allowedTopologiesShape = whole(
  list(object({ matchLabelExpressions: list(object({ 'key!': text, values: list(text) })) })),
  'allowedTopologies',
);
/** What is wrong with the drivers of a CSINode. */
export const driversShape = whole(
  list(object({ 'name!': text, allocatable: object({ count: integer }) })),
  'spec.drivers',
);
