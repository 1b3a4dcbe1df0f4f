// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// store answers the reads of upstream's scheduler from memory, as an informer cache would: controller-runtime's fake
// client converts every object through JSON, which would slow the peer down for no fault of its own.
type store struct {
	client.Client
	objects map[reflect.Type]map[client.ObjectKey]client.Object
	pods    map[string][]*corev1.Pod // by namespace
	byNode  map[string][]*corev1.Pod
}

func newStore() *store {
	return &store{
		objects: map[reflect.Type]map[client.ObjectKey]client.Object{},
		pods:    map[string][]*corev1.Pod{},
		byNode:  map[string][]*corev1.Pod{},
	}
}

func (s *store) put(o client.Object) {
	kind := reflect.TypeOf(o)
	if s.objects[kind] == nil {
		s.objects[kind] = map[client.ObjectKey]client.Object{}
	}
	s.objects[kind][client.ObjectKeyFromObject(o)] = o
	if pod, ok := o.(*corev1.Pod); ok {
		s.pods[pod.Namespace] = append(s.pods[pod.Namespace], pod)
		s.byNode[pod.Spec.NodeName] = append(s.byNode[pod.Spec.NodeName], pod)
	}
}

func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind := reflect.TypeOf(into)
	found, ok := s.objects[kind][key]
	if !ok {
		// Cluster-scoped kinds are sometimes asked for with a namespace.
		found, ok = s.objects[kind][client.ObjectKey{Name: key.Name}]
	}
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind.Elem().Name()}, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

func (s *store) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	switch list := into.(type) {
	case *corev1.PodList:
		list.Items = s.listPods(&o)
	case *corev1.NamespaceList:
		list.Items = nil
		for _, item := range s.objects[reflect.TypeOf(&corev1.Namespace{})] {
			ns := item.(*corev1.Namespace)
			if o.LabelSelector == nil || o.LabelSelector.Matches(labelSet(ns.Labels)) {
				list.Items = append(list.Items, *ns.DeepCopy())
			}
		}
	case *appsv1.DaemonSetList:
		list.Items = nil
		for _, item := range s.objects[reflect.TypeOf(&appsv1.DaemonSet{})] {
			list.Items = append(list.Items, *item.(*appsv1.DaemonSet).DeepCopy())
		}
	case *policyv1.PodDisruptionBudgetList:
		list.Items = nil
		for _, item := range s.objects[reflect.TypeOf(&policyv1.PodDisruptionBudget{})] {
			list.Items = append(list.Items, *item.(*policyv1.PodDisruptionBudget).DeepCopy())
		}
	default:
		return fmt.Errorf("the peer's store does not list %T", into)
	}
	return nil
}

func (s *store) listPods(o *client.ListOptions) []corev1.Pod {
	candidates := s.pods[o.Namespace]
	if o.FieldSelector != nil {
		if node, ok := o.FieldSelector.RequiresExactMatch("spec.nodeName"); ok {
			candidates = s.byNode[node]
		}
	} else if o.Namespace == "" {
		for _, pods := range s.pods {
			candidates = append(candidates, pods...)
		}
	}
	found := []corev1.Pod{}
	for _, pod := range candidates {
		if o.LabelSelector != nil && !o.LabelSelector.Matches(labelSet(pod.Labels)) {
			continue
		}
		if o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy {
			found = append(found, *pod)
		} else {
			found = append(found, *pod.DeepCopy())
		}
	}
	return found
}

type labelSet map[string]string

func (l labelSet) Has(key string) bool   { _, ok := l[key]; return ok }
func (l labelSet) Get(key string) string { return l[key] }
func (l labelSet) Lookup(key string) (string, bool) {
	v, ok := l[key]
	return v, ok
}
