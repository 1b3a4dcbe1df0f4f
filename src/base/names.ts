// SPDX-License-Identifier: Apache-2.0
// The two shapes of names that Kubernetes' labels are made of. Whoever tests against them says in its own words what is wrong.

/** The name of a label, and its value unless that is empty: up to 63 characters, which is for the caller to check. */
export const labelNamePattern: RegExp = /^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

/** A DNS subdomain in lower case: up to 253 characters, which is for the caller to check. Linear in the length. */
export const subdomainPattern: RegExp = /^[a-z0-9]+(?:-+[a-z0-9]+)*(?:\.[a-z0-9]+(?:-+[a-z0-9]+)*)*$/;
