// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"time"
	"unsafe"

	"k8s.io/utils/clock"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
)

// placed is one decision of upstream, in its order.
type placed struct {
	pod   string
	claim *scheduling.NodeClaim
	node  string
}

// observer finds out in which order upstream places pods, which its results do not tell: Solve reads the clock before
// it takes each pod from its queue, and at that moment at most one claim or node has one pod more than before.
// It reads private fields and looks at every node for every pod, so it is used for judging, never while timing.
type observer struct {
	clock.Clock
	scheduler *scheduling.Scheduler
	seen      map[any]int
	order     []placed
}

func (o *observer) Since(t time.Time) time.Duration {
	o.look()
	return o.Clock.Since(t)
}

func (o *observer) look() {
	if o.scheduler == nil {
		return
	}
	for _, nc := range private[[]*scheduling.NodeClaim](o.scheduler, "newNodeClaims") {
		for n := o.seen[nc]; n < len(nc.Pods); n++ {
			o.order = append(o.order, placed{pod: key(nc.Pods[n]), claim: nc})
		}
		o.seen[nc] = len(nc.Pods)
	}
	for _, en := range private[[]*scheduling.ExistingNode](o.scheduler, "existingNodes") {
		for n := o.seen[en]; n < len(en.Pods); n++ {
			o.order = append(o.order, placed{pod: key(en.Pods[n]), node: en.Name()})
		}
		o.seen[en] = len(en.Pods)
	}
}

func private[T any](of any, field string) T {
	f := reflect.ValueOf(of).Elem().FieldByName(field)
	return *(*T)(unsafe.Pointer(f.UnsafeAddr())) //nolint:gosec // the only way to see the order
}
