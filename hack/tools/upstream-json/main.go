// SPDX-License-Identifier: Apache-2.0

// Upstream Karpenter's controller for KWOK, as it is, but speaking JSON: the embedded API server does not speak
// protobuf, which client-go prefers for built-in kinds unless it is told otherwise.
package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
)

func main() {
	found := ctrl.GetConfigOrDie
	ctrl.GetConfigOrDie = func() *rest.Config {
		config := found()
		config.ContentType = runtime.ContentTypeJSON
		return config
	}
	ctx, op := operator.NewOperator()
	types, err := kwok.ConstructInstanceTypes(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "instance types")
	}
	client := op.GetClient()
	plain := kwok.NewCloudProvider(ctx, client, types)
	cloud := overlay.Decorate(plain, client, op.InstanceTypeStore)
	cluster := state.NewCluster(op.Clock, client, cloud)
	all := controllers.NewControllers(ctx, op.Manager, op.Clock, client, op.EventRecorder, cloud, plain, cluster, op.InstanceTypeStore)
	op.WithControllers(ctx, all...).Start(ctx)
}
