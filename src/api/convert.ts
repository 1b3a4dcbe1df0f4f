// SPDX-License-Identifier: Apache-2.0
// NodePools and NodeClaims of `karpenter.sh/v1beta1`, which no served version accepts any more, as `karpenter.sh/v1`.

/** An object that says what it is, and of which nothing else is known. */
export interface Manifest extends Readonly<Record<string, unknown>> {
  readonly apiVersion: string;
  readonly kind: string;
}

/** What became of an object, and what its owner has to know. */
export interface Converted {
  readonly object: Manifest;
  /** What v1 has no place for, or means differently: one sentence each. */
  readonly notes: readonly string[];
}

type Fields = Record<string, unknown>;

const from = 'karpenter.sh/v1beta1';
const to = 'karpenter.sh/v1';
/** Written by the controller of the old version; the new one writes its own. */
const staleAnnotations = ['karpenter.sh/nodepool-hash', 'karpenter.sh/nodepool-hash-version'];
/** What v1beta1 took when nothing was said. */
const defaultExpireAfter = '720h';

/** Whether an object is of the old version. */
export function isV1beta1({ apiVersion, kind }: Manifest): boolean {
  return apiVersion === from && (kind === 'NodePool' || kind === 'NodeClaim');
}

/** The object in v1; as it is when it is none of the old version. Its argument is not changed. */
export function toV1(object: Manifest): Converted {
  if (!isV1beta1(object)) return { object, notes: [] };
  const notes: string[] = [];
  const { status: _, kind, spec, metadata, ...rest } = object;
  const given = fieldsOf(spec);
  const converted = kind === 'NodePool' ? nodePoolSpec(given, notes) : nodeClaimSpec(given, 'spec', notes, undefined);
  return {
    object: { ...rest, apiVersion: to, kind, metadata: metadataOf(fieldsOf(metadata)), spec: converted },
    notes,
  };
}

/** What is no object has no fields: an API server will say so of what comes out. */
function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function metadataOf(metadata: Fields): Fields {
  const { annotations, ...rest } = metadata;
  const kept = Object.entries(fieldsOf(annotations)).filter(([key]) => !staleAnnotations.includes(key));
  return { ...rest, ...(kept.length > 0 ? { annotations: Object.fromEntries(kept) } : {}) };
}

function nodePoolSpec(spec: Fields, notes: string[]): Fields {
  const { template: givenTemplate, disruption, ...rest } = spec;
  const template = fieldsOf(givenTemplate);
  const { expireAfter = defaultExpireAfter, ...times } = fieldsOf(disruption);
  return {
    ...rest,
    template: {
      ...template,
      spec: nodeClaimSpec(fieldsOf(template['spec']), 'spec.template.spec', notes, expireAfter),
    },
    ...(disruption ? { disruption: disruptionOf(times) } : {}),
  };
}

function disruptionOf({ consolidationPolicy = 'WhenUnderutilized', consolidateAfter, ...rest }: Fields): Fields {
  const isEager = consolidationPolicy === 'WhenUnderutilized';
  return {
    ...rest,
    consolidationPolicy: isEager ? 'WhenEmptyOrUnderutilized' : consolidationPolicy,
    // It could not be set with WhenUnderutilized, which acted at once.
    consolidateAfter: consolidateAfter ?? '0s',
  };
}

function nodeClaimSpec(spec: Fields, path: string, notes: string[], expireAfter: unknown): Fields {
  const { nodeClassRef, kubelet, resources, ...rest } = spec;
  if (kubelet !== undefined) {
    notes.push(`${path}.kubelet was left out: v1 has it in the NodeClass. It was ${JSON.stringify(kubelet)}`);
  }
  const isPool = expireAfter !== undefined;
  return {
    ...rest,
    ...(nodeClassRef === undefined ? {} : { nodeClassRef: referenceOf(fieldsOf(nodeClassRef), path, notes) }),
    // On a NodePool it never meant anything; on a NodeClaim it is what was asked for.
    ...(isPool || resources === undefined ? {} : { resources }),
    ...(isPool ? { expireAfter } : {}),
  };
}

function referenceOf(ref: Fields, path: string, notes: string[]): Fields {
  const { apiVersion, ...rest } = ref;
  if (typeof apiVersion !== 'string') {
    if (rest['group'] === undefined) {
      notes.push(`${path}.nodeClassRef says no apiVersion: v1 needs a group, which is yours to fill in`);
    }
    return rest;
  }
  return { group: apiVersion.split('/', 1)[0], ...rest };
}
