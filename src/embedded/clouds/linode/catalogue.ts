// SPDX-License-Identifier: Apache-2.0
// What can be had: plans, regions, availability, images, kernels, LKE's types and versions.
import type { Account } from './account.ts';
import { found, page } from './exchange.ts';
import { imageNamed, images, kernels } from './images.ts';
import { planNamed, plans } from './plans.ts';
import { offers, type Region, regionNamed, regions } from './regions.ts';
import type { Route } from './router.ts';

const lkeTypes = [
  {
    id: 'lke-sa',
    label: 'LKE Standard Availability',
    price: { hourly: 0, monthly: 0 },
    region_prices: [],
    transfer: 0,
  },
  {
    id: 'lke-ha',
    label: 'LKE High Availability',
    price: { hourly: 0.09, monthly: 60 },
    region_prices: [
      { id: 'id-cgk', hourly: 0.108, monthly: 72 },
      { id: 'br-gru', hourly: 0.126, monthly: 84 },
    ],
    transfer: 0,
  },
  { id: 'lke-e', label: 'LKE Enterprise', price: { hourly: 0.45, monthly: 300 }, region_prices: [], transfer: 0 },
];

/** Newest first. */
const versions: Readonly<Record<string, readonly string[]>> = {
  standard: Array.from({ length: 24 }, (_, index) => `1.${36 - index}`),
  enterprise: [
    'v1.34.6+lke2',
    'v1.33.6+lke7',
    'v1.33.6+lke6',
    'v1.32.9+lke4',
    'v1.32.9+lke2',
    'v1.31.9+lke7',
    'v1.31.8+lke1',
    'v1.31.1+lke4',
  ],
};

/** Whether a tier runs this version. */
export function isVersion(tier: string, version: string): boolean {
  return versions[tier]?.includes(version) ?? false;
}

function availabilityOf(account: Account, region: Region): object[] {
  return plans.flatMap((plan) => {
    const available = account.capacity.announced(plan, region);
    return available === undefined ? [] : [{ region: region.id, plan: plan.id, available }];
  });
}

const vpcAvailability = (region: Region): object => ({
  region: region.id,
  available: offers(region, 'VPCs'),
  available_ipv6_prefix_lengths: [],
});

const byName = <T extends { id: string }>(items: readonly T[], id: string): T =>
  found(items.find((item) => item.id === id));

export function catalogueRoutes(account: Account): Route[] {
  const open = true;
  const tierVersions = (tier: string): { id: string; tier: string }[] =>
    found(versions[tier]).map((id) => ({ id, tier }));
  const plain = versions['standard']!.map((id) => ({ id }));
  const region = (id: string): Region => found(regionNamed(id));
  return [
    { method: 'GET', path: '/linode/types', open, handle: (call) => page(call, plans) },
    { method: 'GET', path: '/linode/types/:type', open, handle: ({ params }) => found(planNamed(params['type']!)) },
    { method: 'GET', path: '/linode/kernels', open, handle: (call) => page(call, kernels) },
    {
      method: 'GET',
      path: '/linode/kernels/:a/:b',
      open,
      handle: ({ params: { a, b } }) => byName(kernels, `${a}/${b}`),
    },
    { method: 'GET', path: '/linode/kernels/:id', open, handle: ({ params }) => byName(kernels, params['id']!) },
    { method: 'GET', path: '/regions', open, handle: (call) => page(call, regions) },
    {
      method: 'GET',
      path: '/regions/availability',
      open,
      handle: (call) =>
        page(
          call,
          regions.flatMap((each) => availabilityOf(account, each)),
        ),
    },
    {
      method: 'GET',
      path: '/regions/vpc-availability',
      handle: (call) => page(call, regions.map(vpcAvailability)),
    },
    { method: 'GET', path: '/regions/:region', open, handle: ({ params }) => region(params['region']!) },
    {
      method: 'GET',
      path: '/regions/:region/availability',
      open,
      handle: ({ params }) => availabilityOf(account, region(params['region']!)),
    },
    {
      method: 'GET',
      path: '/regions/:region/vpc-availability',
      handle: ({ params }) => vpcAvailability(region(params['region']!)),
    },
    { method: 'GET', path: '/images', kind: 'listImages', handle: (call) => page(call, images) },
    { method: 'GET', path: '/images/:a/:b', handle: ({ params: { a, b } }) => found(imageNamed(`${a}/${b}`)) },
    { method: 'GET', path: '/images/:id', handle: ({ params }) => found(imageNamed(params['id']!)) },
    { method: 'GET', path: '/lke/types', open, handle: (call) => page(call, lkeTypes) },
    { method: 'GET', path: '/lke/versions', handle: (call) => page(call, plain) },
    { method: 'GET', path: '/lke/versions/:version', handle: ({ params }) => byName(plain, params['version']!) },
    {
      method: 'GET',
      path: '/lke/tiers/:tier/versions',
      handle: (call) => page(call, tierVersions(call.params['tier']!)),
    },
    {
      method: 'GET',
      path: '/lke/tiers/:tier/versions/:version',
      handle: ({ params }) => byName(tierVersions(params['tier']!), params['version']!),
    },
  ];
}
