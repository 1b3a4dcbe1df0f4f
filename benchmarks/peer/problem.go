// SPDX-License-Identifier: Apache-2.0

package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// problem is the file format of `karpenter solve` (docs/reference/problem-file.md), as far as upstream knows it.
type problem struct {
	NodePools              []*v1.NodePool                  `json:"nodePools"`
	InstanceTypes          map[string][]instanceType       `json:"instanceTypes"`
	Labels                 map[string]labels               `json:"labels"`
	Nodes                  []*corev1.Node                  `json:"nodes"`
	NodeClaims             []*v1.NodeClaim                 `json:"nodeClaims"`
	Pods                   []*corev1.Pod                   `json:"pods"`
	PodDisruptionBudgets   []*policyv1.PodDisruptionBudget `json:"podDisruptionBudgets"`
	DaemonSets             []*appsv1.DaemonSet             `json:"daemonSets"`
	Namespaces             []*corev1.Namespace             `json:"namespaces"`
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim `json:"persistentVolumeClaims"`
	PersistentVolumes      []*corev1.PersistentVolume      `json:"persistentVolumes"`
	StorageClasses         []*storagev1.StorageClass       `json:"storageClasses"`
	CSINodes               []*storagev1.CSINode            `json:"csiNodes"`
	State                  clusterState                    `json:"state"`
	Settings               settings                        `json:"settings"`
}

type labels struct {
	WellKnown     []string `json:"wellKnown"`
	ReservationID string   `json:"reservationId"`
}

type clusterState struct {
	MarkedForDeletion []string `json:"markedForDeletion"`
}

type settings struct {
	PreferencePolicy     string `json:"preferencePolicy"`
	MinValuesPolicy      string `json:"minValuesPolicy"`
	ReservedOfferingMode string `json:"reservedOfferingMode"`
}

type requirement = v1.NodeSelectorRequirementWithMinValues

type overhead struct {
	KubeReserved      corev1.ResourceList `json:"kubeReserved"`
	SystemReserved    corev1.ResourceList `json:"systemReserved"`
	EvictionThreshold corev1.ResourceList `json:"evictionThreshold"`
}

type offering struct {
	Requirements        []requirement       `json:"requirements"`
	Price               float64             `json:"price"`
	Available           *bool               `json:"available"`
	ReservationCapacity int                 `json:"reservationCapacity"`
	CapacityOverride    corev1.ResourceList `json:"capacityOverride"`
	OverheadOverride    corev1.ResourceList `json:"overheadOverride"`
}

type instanceType struct {
	Name         string              `json:"name"`
	Requirements []requirement       `json:"requirements"`
	Offerings    []offering          `json:"offerings"`
	Capacity     corev1.ResourceList `json:"capacity"`
	Overhead     *overhead           `json:"overhead"`
}

func (o *overhead) upstream() *cloudprovider.InstanceTypeOverhead {
	if o == nil {
		return nil
	}
	return &cloudprovider.InstanceTypeOverhead{
		KubeReserved:      o.KubeReserved,
		SystemReserved:    o.SystemReserved,
		EvictionThreshold: o.EvictionThreshold,
	}
}

func (t instanceType) upstream() *cloudprovider.InstanceType {
	it := &cloudprovider.InstanceType{
		Name:         t.Name,
		Requirements: scheduling.NewNodeSelectorRequirementsWithMinValues(t.Requirements...),
		Capacity:     t.Capacity,
		Overhead:     t.Overhead.upstream(),
	}
	if it.Overhead == nil {
		it.Overhead = &cloudprovider.InstanceTypeOverhead{}
	}
	for _, o := range t.Offerings {
		var override *cloudprovider.InstanceTypeOverhead
		if len(o.OverheadOverride) > 0 {
			override = &cloudprovider.InstanceTypeOverhead{KubeReserved: o.OverheadOverride}
		}
		it.Offerings = append(it.Offerings, &cloudprovider.Offering{
			Requirements:        scheduling.NewNodeSelectorRequirementsWithMinValues(o.Requirements...),
			Price:               o.Price,
			Available:           o.Available == nil || *o.Available,
			ReservationCapacity: o.ReservationCapacity,
			CapacityOverride:    o.CapacityOverride,
			OverheadOverride:    override,
		})
	}
	return it
}
