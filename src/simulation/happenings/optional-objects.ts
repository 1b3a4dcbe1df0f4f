// SPDX-License-Identifier: Apache-2.0
// Objects that mean something only where a feature gate is on.
import { type CapacityBuffer, capacityBufferKind } from '../../api/capacity-buffer.ts';
import { labels } from '../../api/labels.ts';
import { type NodeOverlay, nodeOverlayKind } from '../../api/node-overlay.ts';
import type { Random } from '../../base/random.ts';
import { apiVersionOf } from '../../kube/object.ts';
import { between, oneOf } from '../draw.ts';
import { namespace } from './hands.ts';

/**
 * A correction of what clouds say. Prices are corrected for all machines alike, or made less where they move anyway: what is
 * replaced by what stays a question of the clouds' own prices, which is what promises are judged by.
 */
export function overlayOf(random: Random, name: string): NodeOverlay {
  const of = (key: string, value: string) => ({ requirements: [{ key, operator: 'In' as const, values: [value] }] });
  const spec = oneOf<NodeOverlay['spec']>(random, [
    { ...of(labels.arch, 'amd64'), priceAdjustment: oneOf(random, ['+15%', '-10%', '+40%']) },
    { ...of(labels.capacityType, 'spot'), priceAdjustment: '-20%' },
    { ...of(labels.os, 'linux'), capacity: { 'example.com/devices': String(between(random, 1, 8)) } },
  ]);
  const weight = between(random, 1, 2);
  const { kind } = nodeOverlayKind;
  return { apiVersion: apiVersionOf(nodeOverlayKind), kind, metadata: { name }, spec: { ...spec, weight } };
}

export function bufferOf(random: Random, name: string): CapacityBuffer {
  return {
    apiVersion: apiVersionOf(capacityBufferKind),
    kind: capacityBufferKind.kind,
    metadata: { name, namespace },
    spec: { podTemplateRef: { name: 'chunk' }, replicas: between(random, 1, 3) },
  };
}
