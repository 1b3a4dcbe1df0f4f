// SPDX-License-Identifier: Apache-2.0
// What the author of a provider brings so that the conformance suite can run: a cloud to launch on, a way to break it, and a
// way to look at it past the provider.
import type { CloudProvider } from '../provider.ts';

/** How a reference names a NodeClass. */
export interface NodeClassRef {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
}

/** Whether the cases may launch with it. */
export type NodeClassState = 'ready' | 'not ready' | 'missing';

/** What goes wrong between the provider and its cloud. Each concerns the next calls that a case makes, until it is lifted. */
export type CloudFault =
  /** Nothing arrives at the cloud. */
  | 'unreachable'
  /** The cloud refuses because of too many requests. */
  | 'throttled'
  /** The cloud fails without having done anything. */
  | 'failing'
  /** The cloud does what it was asked, and its answer to the first call that changes something is lost. */
  | 'answer lost'
  /** The cloud has no machine left of any kind. */
  | 'sold out'
  /** The cloud takes the request for a machine as invalid, for good. */
  | 'launch refused';

/** A machine as it exists in the cloud, found without the provider. */
export interface ExistingMachine {
  readonly providerID: string;
  /** The UID of the NodeClaim it was made for, where the cloud has it. */
  readonly nodeClaimUid?: string;
}

/** One cloud, empty at the start. Every case gets its own. */
export interface ProviderHarness {
  /** The provider as a process makes it at its start. */
  readonly provider: CloudProvider;

  /**
   * The process dies and another one starts: gives its provider, on the same cloud. What the one before kept in memory is
   * gone, and what it was doing never comes to an end.
   */
  restart(): Promise<CloudProvider>;

  /** A reference to a NodeClass in this state. */
  nodeClass(state: NodeClassState): Promise<NodeClassRef>;

  /** Breaks the cloud. False: this cloud cannot fail so, and the case does not apply. */
  inject(fault: CloudFault): Promise<boolean>;

  /** The cloud works again. */
  lift(): Promise<void>;

  /** Every machine in the cloud, those on their way included. */
  machines(): Promise<readonly ExistingMachine[]>;

  /** Lets time pass until what the cloud and the provider have under way has happened. */
  settle(): Promise<void>;

  /** Makes the machine other than its NodeClass asks for; undefined where machines cannot drift. */
  readonly drift?: (providerID: string) => Promise<void>;

  /** Leaves no process, timer or file behind. */
  close(): Promise<void>;
}

/** Makes a harness; called once for every case. */
export type HarnessFactory = () => Promise<ProviderHarness>;
