// SPDX-License-Identifier: Apache-2.0
// The regions, what each of them offers, and which plans are sold where.
import type { Plan } from './plans.ts';

/** A region, with the names of the API's fields. */
export interface Region {
  readonly id: string;
  readonly label: string;
  readonly country: string;
  readonly capabilities: readonly string[];
  readonly monitors: { readonly alerts: readonly string[]; readonly metrics: readonly string[] };
  readonly status: string;
  readonly resolvers: { readonly ipv4: string; readonly ipv6: string };
  readonly placement_group_limits: {
    readonly maximum_pgs_per_customer: number | null;
    readonly maximum_linodes_per_pg: number;
    readonly maximum_linodes_per_flexible_pg: number;
  };
  readonly site_type: string;
}

/** What every region has. */
const everywhere = [
  'Linodes',
  'Block Storage Encryption',
  'Disk Encryption',
  'Backups',
  'NodeBalancers',
  'Block Storage',
  'Kubernetes',
  'Cloud Firewall',
  'Vlans',
  'Metadata',
  'Placement Group',
  'StackScripts',
  'Maintenance Policy',
  'Linode Interfaces',
];

/** What some have, by the letter used below. */
const some: Readonly<Record<string, readonly string[]>> = {
  a: ['ACLP Logs Datacenter LKE-E'],
  d: ['Managed Databases'],
  e: ['Kubernetes Enterprise'],
  g: ['GPU Linodes'],
  l: ['LA Disk Encryption'],
  m: ['Block Storage Migrations'],
  n: ['NETINT Quadra T1U'],
  o: ['Object Storage'],
  p: ['Premium Plans'],
  v: ['VPCs', 'VPC Dual Stack', 'VPC IPv6 Stack'],
};

const rows: readonly (readonly [id: string, label: string, country: string, letters: string])[] = [
  ['au-mel', 'Melbourne, AU', 'au', 'dlpv'],
  ['es-mad', 'Madrid, ES', 'es', 'deglpv'],
  ['in-maa', 'Chennai, IN', 'in', 'deglnopv'],
  ['jp-osa', 'Osaka, JP', 'jp', 'deglpv'],
  ['it-mil', 'Milan, IT', 'it', 'deglpv'],
  ['us-mia', 'Miami, FL', 'us', 'deglnopv'],
  ['id-cgk', 'Jakarta, ID', 'id', 'deglopv'],
  ['us-lax', 'Los Angeles, CA', 'us', 'adeglnopv'],
  ['gb-lon', 'London 2, UK', 'gb', 'adeglnopv'],
  ['se-sto', 'Stockholm, SE', 'se', 'deglpv'],
  ['in-bom-2', 'Mumbai 2, IN', 'in', 'adeglpv'],
  ['de-fra-2', 'Frankfurt 2, DE', 'de', 'adeglnopv'],
  ['sg-sin-2', 'Singapore 2, SG', 'sg', 'adeglopv'],
  ['jp-tyo-3', 'Tokyo 3, JP', 'jp', 'adeglopv'],
  ['no-osl-1', 'Oslo, NO', 'no', 'adeopv'],
  ['us-iad-2', 'Washington 2, DC', 'us', 'deopv'],
  ['fr-par-2', 'Paris 2, FR', 'fr', 'adegpv'],
  ['nl-ams', 'Amsterdam, NL', 'nl', 'deglpv'],
  ['ap-west', 'Mumbai, IN', 'in', 'dglm'],
  ['ca-central', 'Toronto, CA', 'ca', 'dglm'],
  ['ap-southeast', 'Sydney, AU', 'au', 'dlm'],
  ['us-iad', 'Washington, DC', 'us', 'adelopv'],
  ['us-ord', 'Chicago, IL', 'us', 'adeglopv'],
  ['fr-par', 'Paris, FR', 'fr', 'deglopv'],
  ['us-sea', 'Seattle, WA', 'us', 'adeglopv'],
  ['br-gru', 'Sao Paulo, BR', 'br', 'delopv'],
  ['us-central', 'Dallas, TX', 'us', 'dlm'],
  ['ap-northeast', 'Tokyo 2, JP', 'jp', 'dlm'],
  ['eu-central', 'Frankfurt, DE', 'de', 'dglm'],
  ['ap-south', 'Singapore, SG', 'sg', 'glm'],
  ['eu-west', 'London, UK', 'gb', 'lm'],
  ['us-east', 'Newark, NJ', 'us', 'dglmo'],
  ['us-southeast', 'Atlanta, GA', 'us', 'dglmo'],
  ['us-west', 'Fremont, CA', 'us', 'dlm'],
];

const ten = (address: (n: number) => string): string => Array.from({ length: 10 }, (_, n) => address(n)).join(',');

/** In the order of the API's list. */
export const regions: readonly Region[] = rows.map(([id, label, country, letters], index) => {
  const databases = letters.includes('d') ? ['Managed Databases'] : [];
  return {
    id,
    label,
    country,
    capabilities: [...everywhere, ...letters.split('').flatMap((letter) => some[letter]!)],
    monitors: { alerts: [...databases, 'NodeBalancers'], metrics: [...databases, 'NodeBalancers'] },
    status: 'ok',
    resolvers: {
      ipv4: ten((n) => `198.51.100.${n + 1}`),
      ipv6: ten((n) => `2001:db8:${index.toString(16)}::${n + 1}`),
    },
    placement_group_limits: {
      maximum_pgs_per_customer: null,
      maximum_linodes_per_pg: 5,
      maximum_linodes_per_flexible_pg: 5,
    },
    site_type: 'core',
  };
});

const byId = new Map(regions.map((region) => [region.id, region]));

export function regionNamed(id: string): Region | undefined {
  return byId.get(id);
}

export function offers(region: Region, capability: string): boolean {
  return region.capabilities.includes(capability);
}

/** Whether a plan belongs to a family that is not sold everywhere: only those appear in the lists of availability. */
export function isRestricted(plan: Plan): boolean {
  return ['premium', 'gpu', 'accelerated'].includes(plan.class);
}

/** Whether a region sells the plan at all. */
export function isSold(plan: Plan, region: Region): boolean {
  if (plan.class === 'premium') return offers(region, 'Premium Plans');
  if (plan.class === 'accelerated') return offers(region, 'NETINT Quadra T1U');
  if (plan.class !== 'gpu') return true;
  // The older cards stand in the older data centres, the newer ones where premium plans are.
  return offers(region, 'GPU Linodes') && offers(region, 'Premium Plans') === plan.id.startsWith('g2-');
}
