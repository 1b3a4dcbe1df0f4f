// SPDX-License-Identifier: Apache-2.0
// Shapes that several of our kinds share: durations, taints, requirements, resource lists, conditions.
import {
  array,
  dateTime,
  integer,
  map,
  object,
  quantity,
  type Schema,
  string,
  type TypeOf,
  type ValidationRule,
} from './schema.ts';

// The patterns are wire facts: a text is accepted here exactly when upstream's CRDs accept it.
const durationPattern = '^([0-9]+(s|m|h))+$';
const durationOrNeverPattern = '^(([0-9]+(s|m|h))+|Never)$';
const labelValuePattern = '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$';
const qualifiedNamePattern =
  '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$';

/** A span of time such as `90s` or `1h30m`. */
export function duration(options: { description: string }): Schema<string> {
  return string({ ...options, pattern: durationPattern });
}

/** A span of time, or `Never`. */
export function durationOrNever(options: { description: string; default: string }): Schema<string> {
  return string({ ...options, pattern: durationOrNeverPattern });
}

/** Amounts by resource name. */
export function resourceList(options: { description: string; rules?: readonly ValidationRule[] }) {
  return map(quantity, options);
}
export type ResourceList = TypeOf<ReturnType<typeof resourceList>>;

const domainOf = (key: string): string => `${key}.find("^([^/]+)")`;
const keyInReservedDomain = (key: string): string =>
  `${key} in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"] || !${domainOf(key)}.endsWith("karpenter.sh")`;
const reservedDomainMessage =
  'the label domain karpenter.sh is reserved; of its labels only karpenter.sh/capacity-type may be used here';
const reservedDomainExceptPoolMessage =
  'the label domain karpenter.sh is reserved; of its labels only karpenter.sh/capacity-type and karpenter.sh/nodepool may be used here';
const hostnameMessage = 'kubernetes.io/hostname belongs to the node itself and may not be chosen';
const poolMessage = 'karpenter.sh/nodepool is set by the NodePool itself and may not be chosen';

/** The labels a NodePool puts on its nodes: reserved keys are refused. */
export const templateLabels = map(string({ maxLength: 63, pattern: labelValuePattern }), {
  description:
    'Labels for every NodeClaim and Node of this pool. A pod may select on them, and a change of them makes existing nodes drift.',
  mapType: 'atomic',
  maxProperties: 100,
  rules: [
    { rule: `self.all(key, ${keyInReservedDomain('key')})`, message: reservedDomainMessage },
    { rule: 'self.all(key, key != "karpenter.sh/nodepool")', message: poolMessage },
    { rule: 'self.all(key, key != "kubernetes.io/hostname")', message: hostnameMessage },
  ],
});

/** A taint of the core API. */
const taint = object({
  description: 'A mark that keeps pods away from a node unless they tolerate it.',
  required: ['key', 'effect'],
  fields: {
    key: string({ description: 'The key of the taint.', minLength: 1, pattern: qualifiedNamePattern }),
    value: string({ description: 'The value of the taint; may be left out.', pattern: qualifiedNamePattern }),
    effect: string({
      description:
        'What happens to pods that do not tolerate the taint: NoSchedule keeps new ones away, PreferNoSchedule tries to, NoExecute also evicts running ones.',
      enum: ['NoSchedule', 'PreferNoSchedule', 'NoExecute'],
    }),
    timeAdded: dateTime({ description: 'When the taint was added.' }),
  },
});
export type Taint = TypeOf<typeof taint>;

/** A list of taints, replaced as a whole by whoever writes it. */
export function taintList(options: { description: string }) {
  return array(taint, { ...options, listType: 'atomic' });
}

/** The operators of a requirement: those of node affinity, and the two inclusive comparisons. */
export const requirementOperators = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt', 'Gte', 'Lte'] as const;
export type RequirementOperator = (typeof requirementOperators)[number];

const inNeedsValues: ValidationRule = {
  rule: "self.all(x, x.operator != 'In' || (has(x.values) && x.values.size() > 0))",
  message: 'operator In needs at least one value',
};
const notInNeedsValues: ValidationRule = {
  rule: "self.all(x, x.operator != 'NotIn' || (has(x.values) && x.values.size() > 0))",
  message: 'operator NotIn needs at least one value',
};
const comparisonNeedsOneInteger: ValidationRule = {
  rule: "self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(x.values) && x.values.size() == 1 && int(x.values[0]) >= 0))",
  message: 'operators Gt, Lt, Gte and Lte need exactly one value, a whole number of at least 0',
};
const enoughValuesForMinValues: ValidationRule = {
  rule: "self.all(x, x.operator != 'In' || !has(x.minValues) || (has(x.values) && x.values.size() >= x.minValues))",
  message: 'operator In with minValues needs at least that many values',
};

function requirementKey(poolAllowed: boolean) {
  return string({
    description: 'The label key that the requirement is about.',
    maxLength: 316,
    pattern: qualifiedNamePattern,
    rules: [
      {
        rule: keyInReservedDomain('self'),
        message: poolAllowed ? reservedDomainExceptPoolMessage : reservedDomainMessage,
      },
      ...(poolAllowed ? [] : [{ rule: 'self != "karpenter.sh/nodepool"', message: poolMessage }]),
      { rule: 'self != "kubernetes.io/hostname"', message: hostnameMessage },
    ],
  });
}

const requirementOperator = string({
  description:
    'How the label of a node relates to the values: one of them (In), none of them (NotIn), present (Exists), absent (DoesNotExist), or a number above (Gt), below (Lt), at least (Gte) or at most (Lte) the value.',
  enum: requirementOperators,
});

// The items carry no pattern: upstream's CRD does not check them either. Run-time validation does.
const requirementValues = array(string(), {
  description:
    'The values to compare with. In and NotIn take a list, Gt, Lt, Gte and Lte one whole number, Exists and DoesNotExist none. Each must be a valid label value.',
  listType: 'atomic',
});

/** The requirements of a NodePool (`poolAllowed` false) or of a NodeClaim (true). */
export function requirementList(options: { description: string; poolAllowed: boolean }) {
  const { description, poolAllowed } = options;
  const requirement = object({
    description: 'A condition on one label of the node.',
    required: ['key', 'operator'],
    fields: {
      key: requirementKey(poolAllowed),
      operator: requirementOperator,
      values: requirementValues,
      minValues: integer({
        description:
          'Alpha. How many different values the instance types under consideration must offer for this label, so that a launch stays flexible.',
        minimum: 1,
        maximum: 50,
      }),
    },
  });
  return array(requirement, {
    description,
    maxItems: 100,
    listType: 'atomic',
    rules: [inNeedsValues, comparisonNeedsOneInteger, enoughValuesForMinValues],
  });
}

/** The requirements of a NodeOverlay: no `minValues`, and NotIn must name what it excludes. */
export function overlayRequirementList(options: { description: string }) {
  const requirement = object({
    description: 'A condition on one label of an instance type.',
    required: ['key', 'operator'],
    fields: { key: requirementKey(true), operator: requirementOperator, values: requirementValues },
  });
  return array(requirement, {
    ...options,
    maxItems: 100,
    listType: 'atomic',
    rules: [notInNeedsValues, inNeedsValues, comparisonNeedsOneInteger],
  });
}

/** A condition on one label of a node. */
export type Requirement = TypeOf<ReturnType<typeof requirementList>>[number];

/** The NodeClass that says how a cloud makes the machine. */
export function nodeClassRef(options: { rules?: readonly ValidationRule[] } = {}) {
  return object({
    description:
      'The NodeClass that holds the settings of the cloud for these machines. Its group and kind pick the cloud.',
    required: ['group', 'kind', 'name'],
    fields: {
      group: string({
        description: 'The API group of the NodeClass, without a version.',
        pattern: '^[^/]*$',
        rules: [{ rule: "self != ''", message: 'group must not be empty' }],
      }),
      kind: string({
        description: 'The kind of the NodeClass.',
        rules: [{ rule: "self != ''", message: 'kind must not be empty' }],
      }),
      name: string({
        description: 'The name of the NodeClass.',
        rules: [{ rule: "self != ''", message: 'name must not be empty' }],
      }),
    },
    ...options,
  });
}
export type NodeClassRef = TypeOf<ReturnType<typeof nodeClassRef>>;

const conditionFields = {
  type: string({
    description: 'What the condition is about, in CamelCase, optionally with a domain in front.',
    maxLength: 316,
    pattern:
      '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$',
  }),
  status: string({ description: 'Whether it holds.', enum: ['True', 'False', 'Unknown'] }),
  lastTransitionTime: dateTime({ description: 'When the status last changed.' }),
  message: string({ description: 'The details, for people. May be empty.', maxLength: 32768 }),
  observedGeneration: integer({
    description:
      'The metadata.generation that the condition was computed from; a smaller one than the current means it is out of date.',
    format: 'int64',
    minimum: 0,
  }),
} as const;

const condition = object({
  description: 'One aspect of the current state of the object.',
  required: ['type', 'status', 'lastTransitionTime', 'reason', 'message'],
  fields: {
    ...conditionFields,
    reason: string({
      description: 'Why the status is what it is, as one CamelCase word for programs.',
      minLength: 1,
      maxLength: 1024,
      pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
    }),
  },
});
const relaxedCondition = object({
  description: 'One aspect of the current state of the object.',
  required: ['type', 'status', 'lastTransitionTime'],
  fields: {
    ...conditionFields,
    reason: string({
      description: 'Why the status is what it is, as one CamelCase word for programs. May be empty.',
      maxLength: 1024,
      pattern: '^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$',
    }),
  },
});

/** A condition as any of our kinds may carry it: reason and message may be missing on a NodeClaim. */
export type Condition = TypeOf<typeof relaxedCondition>;

const conditionsDescription = 'Signals of health and progress, one per type.';

/** The conditions of most kinds. */
export const conditionList = array(condition, {
  description: conditionsDescription,
  listType: 'map',
  mapKeys: ['type'],
});

/** The conditions of a NodeClaim, whose reason and message may be left out. */
export const relaxedConditionList = array(relaxedCondition, {
  description: conditionsDescription,
  listType: 'map',
  mapKeys: ['type'],
});

/** The conditions of a KWOKNodeClass: upstream declares no merge key there, so duplicates are not refused. */
export const plainConditionList = array(condition, { description: conditionsDescription });
