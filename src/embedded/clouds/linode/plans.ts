// SPDX-License-Identifier: Apache-2.0
// The plans that can be bought, with what they cost: facts as the API publishes them, one line each.

export interface Price {
  readonly hourly: number;
  readonly monthly: number;
}

/** A Linode type, with the names of the API's fields. Sizes are in MB, transfer in GB, network_out in Mbit/s. */
export interface Plan {
  readonly id: string;
  readonly label: string;
  readonly price: Price;
  readonly region_prices: readonly (Price & { readonly id: string })[];
  readonly addons: {
    readonly backups: { readonly price: Price; readonly region_prices: readonly (Price & { readonly id: string })[] };
  };
  readonly memory: number;
  readonly disk: number;
  readonly transfer: number;
  readonly vcpus: number;
  readonly gpus: number;
  readonly network_out: number;
  readonly class: string;
  readonly successor: string | null;
  readonly accelerated_devices: number;
}

type Pair = readonly [hourly: number, monthly: number];
// biome-ignore format: one line each
type Row = readonly [
  id: string, label: string, kind: string, vcpus: number, memory: number, disk: number, transfer: number, gpus: number, networkOut: number,
  accelerated: number, price: Pair, regionPrices: readonly Pair[], backups: Pair, regionBackups: readonly Pair[],
];

/** Where machines cost more, in the order of the prices below. */
const dearer = ['id-cgk', 'br-gru'] as const;

// biome-ignore format: one line each
const rows: readonly Row[] = [
  ['g6-nanode-1', 'Nanode 1GB', 'nanode', 1, 1024, 25600, 1000, 0, 1000, 0, [0.0075, 5], [[0.009, 6], [0.0105, 7]], [0.003, 2], [[0.0036, 2.4], [0.004, 2.8]]],
  ['g6-standard-1', 'Linode 2GB', 'standard', 1, 2048, 51200, 2000, 0, 2000, 0, [0.018, 12], [[0.022, 14.4], [0.025, 16.8]], [0.004, 2.5], [[0.0045, 3], [0.005, 3.5]]],
  ['g6-standard-2', 'Linode 4GB', 'standard', 2, 4096, 81920, 4000, 0, 4000, 0, [0.036, 24], [[0.043, 28.8], [0.05, 33.6]], [0.008, 5], [[0.009, 6], [0.01, 7]]],
  ['g6-standard-4', 'Linode 8GB', 'standard', 4, 8192, 163840, 5000, 0, 5000, 0, [0.072, 48], [[0.086, 57.6], [0.101, 67.2]], [0.015, 10], [[0.018, 12], [0.021, 14]]],
  ['g6-standard-6', 'Linode 16GB', 'standard', 6, 16384, 327680, 8000, 0, 6000, 0, [0.144, 96], [[0.173, 115.2], [0.202, 134.4]], [0.03, 20], [[0.036, 24], [0.042, 28]]],
  ['g6-standard-8', 'Linode 32GB', 'standard', 8, 32768, 655360, 16000, 0, 7000, 0, [0.288, 192], [[0.346, 230.4], [0.403, 268.8]], [0.06, 40], [[0.072, 48], [0.084, 56]]],
  ['g6-standard-16', 'Linode 64GB', 'standard', 16, 65536, 1310720, 20000, 0, 9000, 0, [0.576, 384], [[0.691, 460.8], [0.806, 537.6]], [0.12, 80], [[0.144, 96], [0.168, 112]]],
  ['g6-standard-20', 'Linode 96GB', 'standard', 20, 98304, 1966080, 20000, 0, 10000, 0, [0.864, 576], [[1.037, 691.2], [1.21, 806.4]], [0.18, 120], [[0.216, 144], [0.252, 168]]],
  ['g6-standard-24', 'Linode 128GB', 'standard', 24, 131072, 2621440, 20000, 0, 11000, 0, [1.152, 768], [[1.382, 921.6], [1.613, 1075.2]], [0.24, 160], [[0.288, 192], [0.336, 224]]],
  ['g6-standard-32', 'Linode 192GB', 'standard', 32, 196608, 3932160, 20000, 0, 12000, 0, [1.728, 1152], [[2.074, 1382.4], [2.419, 1612.8]], [0.36, 240], [[0.432, 288], [0.504, 336]]],
  ['g7-highmem-1', 'Linode 24GB', 'highmem', 2, 24576, 20480, 5000, 0, 5000, 0, [0.09, 60], [[0.108, 72], [0.126, 84]], [0.0075, 5], [[0.009, 6], [0.0105, 7]]],
  ['g7-highmem-2', 'Linode 48GB', 'highmem', 2, 49152, 40960, 6000, 0, 6000, 0, [0.18, 120], [[0.216, 144], [0.252, 168]], [0.015, 10], [[0.018, 12], [0.021, 14]]],
  ['g7-highmem-4', 'Linode 90GB', 'highmem', 4, 92160, 92160, 7000, 0, 7000, 0, [0.36, 240], [[0.432, 288], [0.504, 336]], [0.03, 20], [[0.036, 24], [0.042, 28]]],
  ['g7-highmem-8', 'Linode 150GB', 'highmem', 8, 153600, 204800, 8000, 0, 8000, 0, [0.72, 480], [[0.864, 576], [1.008, 672]], [0.06, 40], [[0.072, 48], [0.084, 56]]],
  ['g7-highmem-16', 'Linode 300GB', 'highmem', 16, 307200, 348160, 9000, 0, 9000, 0, [1.44, 960], [[1.728, 1152], [2.016, 1344]], [0.12, 80], [[0.144, 96], [0.168, 112]]],
  ['g6-dedicated-2', 'Dedicated 4GB', 'dedicated', 2, 4096, 81920, 4000, 0, 4000, 0, [0.054, 36], [[0.065, 43.2], [0.076, 50.4]], [0.008, 5], [[0.009, 6], [0.01, 7]]],
  ['g6-dedicated-4', 'Dedicated 8GB', 'dedicated', 4, 8192, 163840, 5000, 0, 5000, 0, [0.108, 72], [[0.13, 86.4], [0.151, 100.8]], [0.015, 10], [[0.018, 12], [0.021, 14]]],
  ['g6-dedicated-8', 'Dedicated 16GB', 'dedicated', 8, 16384, 327680, 6000, 0, 6000, 0, [0.216, 144], [[0.259, 172.8], [0.302, 201.6]], [0.03, 20], [[0.036, 24], [0.042, 28]]],
  ['g6-dedicated-16', 'Dedicated 32GB', 'dedicated', 16, 32768, 655360, 7000, 0, 7000, 0, [0.432, 288], [[0.518, 345.6], [0.605, 403.2]], [0.06, 40], [[0.072, 48], [0.084, 56]]],
  ['g6-dedicated-32', 'Dedicated 64GB', 'dedicated', 32, 65536, 1310720, 8000, 0, 8000, 0, [0.864, 576], [[1.037, 691.2], [1.21, 806.4]], [0.12, 80], [[0.144, 96], [0.168, 112]]],
  ['g6-dedicated-48', 'Dedicated 96GB', 'dedicated', 48, 98304, 1966080, 9000, 0, 9000, 0, [1.296, 864], [[1.555, 1036.8], [1.814, 1209.6]], [0.18, 120], [[0.216, 144], [0.252, 168]]],
  ['g6-dedicated-50', 'Dedicated 128GB', 'dedicated', 50, 131072, 2560000, 10000, 0, 10000, 0, [1.728, 1152], [[2.074, 1382.4], [2.419, 1612.8]], [0.24, 160], [[0.288, 192], [0.336, 224]]],
  ['g6-dedicated-56', 'Dedicated 256GB', 'dedicated', 56, 262144, 5120000, 11000, 0, 11000, 0, [3.456, 2304], [[4.147, 2764.8], [4.838, 3225.6]], [0.3, 200], [[0.36, 240], [0.42, 280]]],
  ['g6-dedicated-64', 'Dedicated 512GB', 'dedicated', 64, 524288, 7372800, 12000, 0, 12000, 0, [6.912, 4608], [[8.294, 5529.6], [9.677, 6451.2]], [0.36, 240], [[0.432, 288], [0.504, 336]]],
  ['g1-gpu-rtx6000-1', 'Dedicated 32GB + RTX6000 GPU x1', 'gpu', 8, 32768, 655360, 16000, 1, 10000, 0, [1.5, 1000], [], [0.06, 40], []],
  ['g1-gpu-rtx6000-2', 'Dedicated 64GB + RTX6000 GPU x2', 'gpu', 16, 65536, 1310720, 20000, 2, 10000, 0, [3, 2000], [], [0.12, 80], []],
  ['g1-gpu-rtx6000-3', 'Dedicated 96GB + RTX6000 GPU x3', 'gpu', 20, 98304, 1966080, 20000, 3, 10000, 0, [4.5, 3000], [], [0.18, 120], []],
  ['g1-gpu-rtx6000-4', 'Dedicated 128GB + RTX6000 GPU x4', 'gpu', 24, 131072, 2621440, 20000, 4, 10000, 0, [6, 4000], [], [0.24, 160], []],
  ['g7-premium-2', 'Premium 4GB', 'premium', 2, 4096, 81920, 4000, 0, 4000, 0, [0.0645, 43], [[0.078, 51.84], [0.091, 60.48]], [0.008, 5], [[0.009, 6], [0.01, 7]]],
  ['g7-premium-4', 'Premium 8GB', 'premium', 4, 8192, 163840, 5000, 0, 5000, 0, [0.129, 86], [[0.156, 103.68], [0.181, 120.96]], [0.015, 10], [[0.018, 12], [0.021, 14]]],
  ['g7-premium-8', 'Premium 16GB', 'premium', 8, 16384, 327680, 6000, 0, 6000, 0, [0.2595, 173], [[0.311, 207.36], [0.363, 241.92]], [0.03, 20], [[0.036, 24], [0.042, 28]]],
  ['g7-premium-16', 'Premium 32GB', 'premium', 16, 32768, 655360, 7000, 0, 7000, 0, [0.519, 346], [[0.622, 414.72], [0.726, 483.84]], [0.06, 40], [[0.072, 48], [0.084, 56]]],
  ['g7-premium-32', 'Premium 64GB', 'premium', 32, 65536, 1310720, 8000, 0, 8000, 0, [1.0365, 691], [[1.244, 829.44], [1.452, 967.68]], [0.12, 80], [[0.144, 96], [0.168, 112]]],
  ['g7-premium-48', 'Premium 96GB', 'premium', 48, 98304, 1966080, 9000, 0, 9000, 0, [1.5555, 1037], [[1.866, 1244.16], [2.177, 1451.52]], [0.18, 120], [[0.216, 144], [0.252, 168]]],
  ['g7-premium-50', 'Premium 128GB', 'premium', 50, 131072, 2560000, 10000, 0, 10000, 0, [2.073, 1382], [[2.488, 1658.88], [2.903, 1935.36]], [0.24, 160], [[0.288, 192], [0.336, 224]]],
  ['g7-premium-56', 'Premium 256GB', 'premium', 56, 262144, 5120000, 11000, 0, 11000, 0, [4.1475, 2765], [[4.977, 3317.76], [5.806, 3870.72]], [0.3, 200], [[0.36, 240], [0.42, 280]]],
  ['g7-premium-64', 'Premium 512GB', 'premium', 64, 524288, 7372800, 12000, 0, 12000, 0, [8.295, 5530], [[9.953, 6635.52], [11.612, 7741.44]], [0.36, 240], [[0.432, 288], [0.504, 336]]],
  ['g2-gpu-rtx4000a1-s', 'RTX4000 Ada x1 Small', 'gpu', 4, 16384, 524288, 0, 1, 10000, 0, [0.52, 350], [], [0, 0], []],
  ['g2-gpu-rtx4000a1-m', 'RTX4000 Ada x1 Medium', 'gpu', 8, 32768, 524288, 0, 1, 10000, 0, [0.67, 446], [], [0, 0], []],
  ['g2-gpu-rtx4000a1-l', 'RTX4000 Ada x1 Large', 'gpu', 16, 65536, 524288, 0, 1, 10000, 0, [0.96, 638], [], [0, 0], []],
  ['g2-gpu-rtx4000a1-xl', 'RTX4000 Ada x1 X-Large', 'gpu', 32, 131072, 524288, 0, 1, 10000, 0, [1.53, 1022], [], [0, 0], []],
  ['g2-gpu-rtx4000a2-s', 'RTX4000 Ada x2 Small', 'gpu', 8, 32768, 524288, 0, 2, 10000, 0, [1.05, 700], [], [0, 0], []],
  ['g2-gpu-rtx4000a2-m', 'RTX4000 Ada x2 Medium', 'gpu', 16, 65536, 524288, 0, 2, 10000, 0, [1.34, 892], [], [0, 0], []],
  ['g2-gpu-rtx4000a4-s', 'RTX4000 Ada x4 Small', 'gpu', 32, 131072, 1048576, 0, 4, 10000, 0, [2.96, 1976], [], [0, 0], []],
  ['g2-gpu-rtx4000a4-m', 'RTX4000 Ada x4 Medium', 'gpu', 48, 200704, 1048576, 0, 4, 10000, 0, [3.57, 2384], [], [0, 0], []],
  ['g1-accelerated-netint-vpu-t1u1-s', 'NETINT Quadra T1U x1 Small', 'accelerated', 8, 16384, 307200, 0, 0, 10000, 1, [0.42, 280], [], [0, 0], []],
  ['g1-accelerated-netint-vpu-t1u2-s', 'NETINT Quadra T1U x2 Small', 'accelerated', 12, 24576, 307200, 0, 0, 10000, 2, [0.73, 486], [], [0, 0], []],
];

const priceOf = ([hourly, monthly]: Pair): Price => ({ hourly, monthly });
const regionPrices = (pairs: readonly Pair[]): (Price & { id: string })[] =>
  pairs.map((pair, index) => ({ id: dearer[index]!, ...priceOf(pair) }));

/** In the order of the API's list. */
export const plans: readonly Plan[] = rows.map(
  ([
    id,
    label,
    kind,
    vcpus,
    memory,
    disk,
    transfer,
    gpus,
    networkOut,
    accelerated,
    price,
    regional,
    backups,
    more,
  ]) => ({
    id,
    label,
    price: priceOf(price),
    region_prices: regionPrices(regional),
    addons: { backups: { price: priceOf(backups), region_prices: regionPrices(more) } },
    memory,
    disk,
    transfer,
    vcpus,
    gpus,
    network_out: networkOut,
    class: kind,
    successor: null,
    accelerated_devices: accelerated,
  }),
);

const byId = new Map(plans.map((plan) => [plan.id, plan]));

export function planNamed(id: string): Plan | undefined {
  return byId.get(id);
}

/** What it costs an hour in a region. */
export function hourlyPrice(plan: Plan, region: string): number {
  return (plan.region_prices.find(({ id }) => id === region) ?? plan.price).hourly;
}
