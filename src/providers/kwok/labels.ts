// SPDX-License-Identifier: Apache-2.0
// What the pretended cloud knows about labels.
import { commonLabelSet, extendLabelSet, type LabelSet } from '../../api/labels.ts';

export const kwokGroup = 'karpenter.kwok.sh';

export const kwokLabels = {
  instanceSize: 'karpenter.kwok.sh/instance-size',
  instanceFamily: 'karpenter.kwok.sh/instance-family',
  instanceCpu: 'karpenter.kwok.sh/instance-cpu',
  instanceMemory: 'karpenter.kwok.sh/instance-memory',
  /** On Nodes, as label and annotation: the kwok controller, or the embedded kubelet, plays this node. */
  fakeNode: 'kwok.x-k8s.io/node',
  /** On Nodes: upstream spreads its nodes over kwok controllers by it. */
  partition: 'kwok-partition',
  /** On Nodes: what eks-node-viewer shows as the price. */
  price: 'eks-node-viewer/instance-price',
} as const;

/** Kubernetes' labels, this cloud's own, and whatever else its offerings are told apart by. */
export function kwokLabelSet(offeringKeys: Iterable<string> = []): LabelSet {
  const { instanceSize, instanceFamily, instanceCpu, instanceMemory } = kwokLabels;
  return extendLabelSet(commonLabelSet, {
    wellKnown: [instanceSize, instanceFamily, instanceCpu, instanceMemory, ...offeringKeys],
    restrictedDomains: [kwokGroup],
  });
}
