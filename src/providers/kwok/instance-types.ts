// SPDX-License-Identifier: Apache-2.0
// What the pretended cloud sells: 144 made-up machines, the same as upstream's, or those of a file.
import { capacityTypes, commonLabelSet, labels } from '../../api/labels.ts';
import { labelValueProblem } from '../../api/names.ts';
import { messageOf } from '../../base/errors.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import { Quantity } from '../../kube/quantity.ts';
import { requirementProblem } from '../../scheduling/constraints.ts';
import { kwokLabels } from './labels.ts';

type Offering = InstanceType['offerings'][number];

/** One machine as upstream's files describe it. */
interface InstanceTypeEntry {
  readonly name: string;
  readonly architecture: string;
  readonly operatingSystems: readonly string[];
  readonly resources: Readonly<Record<string, string>>;
  readonly offerings: readonly Offering[];
}

const cpus = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256] as const;
const families = [
  { name: 'c', gibPerCpu: 2 },
  { name: 's', gibPerCpu: 4 },
  { name: 'm', gibPerCpu: 8 },
] as const;
const systems = ['linux', 'windows'] as const;
const architectures = ['amd64', 'arm64'] as const;
const zones = ['test-zone-a', 'test-zone-b', 'test-zone-c', 'test-zone-d'] as const;
const spotShare = 0.7;
const gib = 2 ** 30;

/** The machines sold unless a file says otherwise. */
export function defaultInstanceTypes(): InstanceType[] {
  const types: InstanceType[] = [];
  for (const cpu of cpus) {
    for (const { name: family, gibPerCpu } of families) {
      for (const os of systems) {
        for (const arch of architectures) {
          const memory = cpu * gibPerCpu;
          const price = 0.025 * cpu + (0.001 * memory * gib) / 1e9;
          types.push(
            instanceTypeOf({
              name: `${family}-${cpu}x-${arch}-${os}`,
              architecture: arch,
              operatingSystems: [os],
              resources: {
                cpu: String(cpu),
                memory: Quantity.parse(`${memory}Gi`).toString(),
                pods: String(Math.min(16 * cpu, 1024)),
                'ephemeral-storage': '20Gi',
              },
              offerings: zones.flatMap((zone) => [
                offering(capacityTypes.spot, zone, price * spotShare),
                offering(capacityTypes.onDemand, zone, price),
              ]),
            }),
          );
        }
      }
    }
  }
  return types;
}

/** What a file of machines holds: those that could be read, and what is wrong with the others. */
export interface InstanceTypesFile {
  readonly types: readonly InstanceType[];
  /** One sentence each, with the place in the file. */
  readonly problems: readonly string[];
}

/** Reads upstream's file format. A broken entry costs only itself. */
export function readInstanceTypes(text: string): InstanceTypesFile {
  let entries: unknown;
  try {
    entries = JSON.parse(text);
  } catch (error) {
    return { types: [], problems: [`not JSON: ${messageOf(error)}`] };
  }
  if (!Array.isArray(entries)) return { types: [], problems: ['expected a list of instance types'] };
  const types = new Map<string, InstanceType>();
  const problems: string[] = [];
  entries.forEach((entry: unknown, index) => {
    const problem =
      entryProblem(entry) ?? (types.has((entry as InstanceTypeEntry).name) ? 'the name is taken' : undefined);
    if (problem) {
      const name = (entry as { name?: unknown } | null)?.name;
      problems.push(`[${index}]${typeof name === 'string' ? ` ${name}` : ''}: ${problem}`);
      return;
    }
    const read = entry as RawEntry;
    types.set(read.name, instanceTypeOf({ ...read, offerings: read.offerings.map(offeringOf) }));
  });
  return { types: [...types.values()], problems };
}

/** Upstream's field names: Go writes a struct without JSON tags with capital letters. */
interface RawOffering {
  readonly Price?: number;
  readonly price?: number;
  readonly Requirements?: Offering['requirements'];
  readonly requirements?: Offering['requirements'];
  readonly ReservationCapacity?: number;
}

interface RawEntry extends Omit<InstanceTypeEntry, 'offerings'> {
  readonly offerings: readonly RawOffering[];
}

function offeringOf(raw: RawOffering): Offering {
  const { ReservationCapacity: reservationCapacity } = raw;
  return {
    requirements: raw.Requirements ?? raw.requirements ?? [],
    price: raw.Price ?? raw.price ?? 0,
    available: true,
    ...(reservationCapacity === undefined ? {} : { reservationCapacity }),
  };
}

function entryProblem(entry: unknown): string | undefined {
  if (typeof entry !== 'object' || entry === null) return 'expected an object';
  const { name, architecture, operatingSystems, resources, offerings } = entry as Record<string, unknown>;
  if (typeof name !== 'string' || name === '') return 'name is missing';
  if (typeof architecture !== 'string' || architecture === '') return 'architecture is missing';
  if (!isListOf(operatingSystems, 'string')) return 'operatingSystems must be a list of names';
  const unfit =
    labelProblem('name', [name]) ??
    labelProblem('architecture', [architecture]) ??
    labelProblem('operatingSystems', operatingSystems as string[]) ??
    resourcesProblem(resources);
  if (unfit) return unfit;
  if (!isListOf(offerings, 'object') || offerings.length === 0)
    return 'offerings must be a list with at least one entry';
  for (const [index, one] of (offerings as RawOffering[]).entries()) {
    const problem = offeringProblem(offeringOf(one));
    if (problem) return `offerings[${index}]: ${problem}`;
  }
  return undefined;
}

/** They become labels of Nodes. */
function labelProblem(what: string, values: readonly string[]): string | undefined {
  const problem = values.map(labelValueProblem).find((found) => found !== undefined);
  return problem && `${what}: ${problem}`;
}

function resourcesProblem(resources: unknown): string | undefined {
  if (typeof resources !== 'object' || resources === null) return 'resources are missing';
  for (const [resource, quantity] of Object.entries(resources)) {
    const amount = Quantity.tryParse(quantity);
    if (!amount || amount.sign() < 0) return `resources.${resource}: ${JSON.stringify(quantity)} is not an amount`;
  }
  for (const needed of ['cpu', 'memory']) if (!(needed in resources)) return `resources.${needed} is missing`;
  return undefined;
}

function offeringProblem({ price, requirements, reservationCapacity = 0 }: Offering): string | undefined {
  if (!Number.isFinite(price) || price < 0)
    return `price ${typeof price === 'object' ? JSON.stringify(price) : String(price)} is not a price`;
  if (!Number.isSafeInteger(reservationCapacity) || reservationCapacity < 0)
    return `ReservationCapacity ${JSON.stringify(reservationCapacity)} is not a number of machines`;
  if (!isListOf(requirements, 'object')) return 'requirements must be a list of objects';
  for (const requirement of requirements) {
    const { key, values = [] } = requirement;
    if (typeof key !== 'string') return 'the key of a requirement must be a text';
    if (!isListOf(values, 'string')) return `the values of ${key} must be a list of texts`;
    const problem = requirementProblem(requirement, commonLabelSet);
    if (problem) return problem;
  }
  for (const key of [labels.zone, labels.capacityType]) {
    const requirement = requirements.find((r) => r.key === key);
    if (requirement?.operator !== 'In' || requirement.values?.length !== 1) return `${key} must be In one value`;
  }
  return undefined;
}

function isListOf(value: unknown, type: 'string' | 'object'): value is unknown[] {
  return Array.isArray(value) && value.every((item) => typeof item === type && item !== null);
}

function offering(capacityType: string, zone: string, price: number): Offering {
  return {
    price,
    available: true,
    requirements: [
      { key: labels.capacityType, operator: 'In', values: [capacityType] },
      { key: labels.zone, operator: 'In', values: [zone] },
    ],
  };
}

function instanceTypeOf(entry: InstanceTypeEntry): InstanceType {
  const { name, architecture, operatingSystems, resources, offerings } = entry;
  const { cpu = '', memory = '' } = resources;
  const all = (key: string): string[] => [
    ...new Set(offerings.flatMap((o) => o.requirements.find((r) => r.key === key)?.values ?? [])),
  ];
  const is = (key: string, ...values: string[]) => ({ key, operator: 'In', values }) as const;
  return {
    name,
    requirements: [
      is(labels.instanceType, name),
      is(labels.arch, architecture),
      is(labels.os, ...operatingSystems),
      is(labels.zone, ...all(labels.zone)),
      is(labels.capacityType, ...all(labels.capacityType)),
      is(kwokLabels.instanceSize, sizeOf(name, Quantity.parse(cpu).toString())),
      is(kwokLabels.instanceFamily, familyOf(name)),
      is(kwokLabels.instanceCpu, Quantity.parse(cpu).toString()),
      is(kwokLabels.instanceMemory, Quantity.parse(memory).toString()),
    ],
    offerings,
    capacity: { pods: '110', ...resources },
    overhead: { kubeReserved: { cpu: '100m', memory: '10Mi' } },
  };
}

/** Names like AWS's carry their size after the dot; others are as large as their CPU count. */
function sizeOf(name: string, cpu: string): string {
  return /^\w+\.(nano|micro|small|medium|large|\d*xlarge|metal)$/.exec(name)?.[1] ?? cpu;
}

/** What stands before the first dot or dash, or else the first letter. */
function familyOf(name: string): string {
  const end = name.search(/[.-]/);
  return end < 0 ? name.slice(0, 1) : name.slice(0, end);
}
