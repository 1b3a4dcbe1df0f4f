// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"sort"

	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	karpenter "sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/resources"
)

type result struct {
	NewNodeClaims []nodeClaim    `json:"newNodeClaims"`
	ExistingNodes []existingNode `json:"existingNodes"`
	Placements    []placement    `json:"placements,omitempty"`
	Errors        []podError     `json:"errors"`
	Stats         stats          `json:"stats"`
	// Failure is set when upstream itself failed (a panic, an error of NewTopology).
	Failure string `json:"failure,omitempty"`
}

type nodeClaim struct {
	NodePool      string              `json:"nodePool"`
	Requirements  []requirement       `json:"requirements"`
	InstanceTypes []string            `json:"instanceTypes"`
	Price         float64             `json:"price"`
	Requests      corev1.ResourceList `json:"requests"`
	Pods          []string            `json:"pods"`
}

type existingNode struct {
	Name string   `json:"name"`
	Pods []string `json:"pods"`
}

// placement says where a pod went, in the order in which upstream decided: a claim by index, or a node by name.
type placement struct {
	Pod    string `json:"pod"`
	Target target `json:"target"`
}

type target struct {
	NewNodeClaim *int   `json:"newNodeClaim,omitempty"`
	Node         string `json:"node,omitempty"`
}

type podError struct {
	Pod    string `json:"pod"`
	Reason string `json:"reason"`
	Detail string `json:"detail"`
	// Deferred: the pod waits for reserved capacity.
	Deferred bool `json:"deferred,omitempty"`
}

type stats struct {
	// DurationMs is NewTopology, NewScheduler and Solve; SolveMs is Solve alone. Both of the first run.
	DurationMs float64 `json:"durationMs"`
	SolveMs    float64 `json:"solveMs"`
	// WarmMs are the durations of the further runs, in order.
	WarmMs []float64 `json:"warmMs,omitempty"`
	Pods   int       `json:"pods"`
	Nodes  int       `json:"nodes"`
}

func key(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

func podKeys(pods []*corev1.Pod) []string {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, key(p))
	}
	return names
}

func describe(results scheduling.Results, order []placed) result {
	out := result{NewNodeClaims: []nodeClaim{}, ExistingNodes: []existingNode{}, Errors: []podError{}}
	index := map[*scheduling.NodeClaim]int{}
	for i, nc := range results.NewNodeClaims {
		index[nc] = i
		requests := nc.Spec.Resources.Requests
		price := cheapest(nc, requests)
		claim := nc.ToNodeClaim()
		out.NewNodeClaims = append(out.NewNodeClaims, nodeClaim{
			NodePool:      nc.NodePoolName,
			Requirements:  claim.Spec.Requirements,
			InstanceTypes: typeNames(nc.InstanceTypeOptions),
			Price:         price,
			Requests:      requests,
			Pods:          podKeys(nc.Pods),
		})
		out.Stats.Pods += len(nc.Pods)
	}
	for _, n := range results.ExistingNodes {
		if len(n.Pods) > 0 {
			out.ExistingNodes = append(out.ExistingNodes, existingNode{Name: n.Name(), Pods: podKeys(n.Pods)})
			out.Stats.Pods += len(n.Pods)
		}
	}
	for pod, err := range results.PodErrors {
		deferred := scheduling.IsReservedOfferingError(err)
		out.Errors = append(out.Errors, podError{Pod: key(pod), Reason: "Unschedulable", Detail: err.Error(), Deferred: deferred})
	}
	sort.Slice(out.Errors, func(i, j int) bool { return out.Errors[i].Pod < out.Errors[j].Pod })
	for _, p := range order {
		if p.claim == nil {
			out.Placements = append(out.Placements, placement{Pod: p.pod, Target: target{Node: p.node}})
		} else if i, ok := index[p.claim]; ok {
			out.Placements = append(out.Placements, placement{Pod: p.pod, Target: target{NewNodeClaim: &i}})
		}
	}
	out.Stats.Nodes = len(results.NewNodeClaims)
	return out
}

func typeNames(types cloudprovider.InstanceTypes) []string {
	names := make([]string, 0, len(types))
	for _, it := range types {
		names = append(names, it.Name)
	}
	return names
}

// cheapest is the price of the cheapest launch the claim allows: an available, compatible offering in which the claim's
// requests fit. A reserved offering counts only when the claim holds its reservation.
func cheapest(nc *scheduling.NodeClaim, requests corev1.ResourceList) float64 {
	price := math.MaxFloat64
	held := nc.Requirements.Get(cloudprovider.ReservationIDLabel)
	for _, it := range nc.InstanceTypeOptions {
		for _, group := range it.AllocatableOfferingsList() {
			if !resources.Fits(requests, group.Allocatable) {
				continue
			}
			for _, o := range group.Offerings {
				if o.CapacityType() == v1.CapacityTypeReserved && !(held.Operator() == corev1.NodeSelectorOpIn && held.Has(o.ReservationID())) {
					continue
				}
				if nc.Requirements.IsCompatible(o.Requirements, karpenter.AllowUndefinedWellKnownLabels) && o.Price < price {
					price = o.Price
				}
			}
		}
	}
	return price
}
