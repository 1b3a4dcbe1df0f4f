// SPDX-License-Identifier: Apache-2.0

// The peer of our benchmarks: upstream Karpenter's scheduler on the same problem files, answering in the same format.
//
//	peer [-order] [-repeat N] [-timeout D] FILE   one problem, one result on standard output
//	peer -batch [-order]                          one problem per line on standard input, one result per line
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/fake"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	karpenter "sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/test"
	"sigs.k8s.io/karpenter/pkg/utils/daemonset"
	"sigs.k8s.io/karpenter/pkg/utils/nodepool"
)

type flags struct {
	order   bool
	repeat  int
	timeout time.Duration
}

func main() {
	log.SetLogger(logging.NopLogger)
	f := flags{}
	batch := flag.Bool("batch", false, "one problem per line on standard input")
	flag.BoolVar(&f.order, "order", false, "report the order of placements (slow: not for timing)")
	flag.IntVar(&f.repeat, "repeat", 1, "how often to solve; the first run is cold")
	flag.DurationVar(&f.timeout, "timeout", 0, "deadline of Solve, 0 for none")
	flag.Parse()
	if err := run(f, *batch); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(f flags, batch bool) error {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	if !batch {
		text, err := os.ReadFile(flag.Arg(0))
		if err != nil {
			return err
		}
		return answer(f, text, encoder)
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<30)
	for in.Scan() {
		if err := answer(f, in.Bytes(), encoder); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

func answer(f flags, text []byte, encoder *json.Encoder) error {
	p := problem{}
	if err := json.Unmarshal(text, &p); err != nil {
		return fmt.Errorf("reading problem: %w", err)
	}
	return encoder.Encode(solveSafely(f, &p))
}

// solveSafely turns a panic of upstream into a result that says so: one bad problem must not end a batch.
func solveSafely(f flags, p *problem) (out result) {
	defer func() {
		if r := recover(); r != nil {
			out = result{Failure: fmt.Sprintf("panic: %v", r)}
		}
	}()
	out, err := solve(f, p)
	if err != nil {
		return result{Failure: err.Error()}
	}
	return out
}

// world is what upstream's provisioner would have at hand when it starts a scheduling pass.
type world struct {
	ctx     context.Context
	client  *store
	cluster *state.Cluster
	pools   []*v1.NodePool
	types   map[string][]*cloudprovider.InstanceType
	daemons []*corev1.Pod
	pods    []*corev1.Pod
	invalid []podError
	opts    []scheduling.Options
}

func solve(f flags, p *problem) (result, error) {
	w, err := prepare(p)
	if err != nil {
		return result{}, err
	}
	out, err := w.once(f)
	if err != nil {
		return result{}, err
	}
	for i := 1; i < f.repeat; i++ {
		again, err := w.once(f)
		if err != nil {
			return result{}, err
		}
		out.Stats.WarmMs = append(out.Stats.WarmMs, again.Stats.DurationMs)
	}
	out.Errors = append(out.Errors, w.invalid...)
	return out, nil
}

func (w *world) once(f flags) (result, error) {
	ctx, cancel := w.ctx, func() {}
	if f.timeout > 0 {
		ctx, cancel = context.WithTimeout(w.ctx, f.timeout)
	}
	defer cancel()
	nodes := w.cluster.DeepCopyNodes().Active()
	pods := make([]*corev1.Pod, 0, len(w.pods))
	for _, pod := range w.pods {
		pods = append(pods, pod.DeepCopy())
	}
	daemons := make([]*corev1.Pod, 0, len(w.daemons))
	for _, pod := range w.daemons {
		daemons = append(daemons, pod.DeepCopy())
	}
	watch := &observer{Clock: clock.RealClock{}, seen: map[any]int{}}
	var ticks clock.Clock = clock.RealClock{}
	if f.order {
		ticks = watch
	}

	// What reading the problem left behind is no part of solving it; Go's own benchmarks do the same, and so does ours.
	runtime.GC()
	start := time.Now()
	volumes := map[types.UID][]karpenter.Requirements{}
	topologyOfVolumes := scheduling.NewVolumeTopology(w.client)
	schedulable := pods[:0]
	var invalid []podError
	for _, pod := range pods {
		reqs, err := topologyOfVolumes.GetRequirements(ctx, pod)
		if err != nil {
			invalid = append(invalid, podError{Pod: key(pod), Reason: "Invalid", Detail: err.Error()})
			continue
		}
		if len(reqs) > 0 {
			volumes[pod.UID] = reqs
		}
		schedulable = append(schedulable, pod)
	}
	topology, err := scheduling.NewTopology(ctx, w.client, w.cluster, nodes, w.pools, w.types, schedulable, w.opts...)
	if err != nil {
		return result{}, fmt.Errorf("building topology: %w", err)
	}
	scheduler := scheduling.NewScheduler(ctx, w.client, w.pools, w.cluster, nodes, topology, w.types, daemons,
		events.NewRecorder(&record.FakeRecorder{}), ticks, volumes, nil, w.opts...)
	watch.scheduler = scheduler
	solving := time.Now()
	results, err := scheduler.Solve(ctx, schedulable)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return result{}, fmt.Errorf("solving: %w", err)
	}
	done := time.Now()
	if f.order {
		watch.look()
	}
	results = results.TruncateInstanceTypes(w.ctx, scheduling.MaxInstanceTypes)
	out := describe(results, watch.order)
	out.Errors = append(out.Errors, invalid...)
	out.Stats.DurationMs = done.Sub(start).Seconds() * 1000
	out.Stats.SolveMs = done.Sub(solving).Seconds() * 1000
	return out, nil
}

func prepare(p *problem) (*world, error) {
	w := &world{client: newStore(), types: map[string][]*cloudprovider.InstanceType{}}
	w.ctx = options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), test.Options())
	registerLabels(p)
	w.fill(p)

	provider := fake.NewCloudProvider()
	for name, list := range p.InstanceTypes {
		for _, it := range list {
			w.types[name] = append(w.types[name], it.upstream())
		}
		provider.InstanceTypesForNodePool[name] = w.types[name]
	}
	for _, np := range p.NodePools {
		if np.Spec.Template.Spec.NodeClassRef == nil {
			np.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.test.sh", Kind: "TestNodeClass", Name: "default"}
		}
		if np.Spec.Replicas == nil && np.DeletionTimestamp.IsZero() {
			w.pools = append(w.pools, np)
		}
	}
	nodepool.OrderByWeight(w.pools)

	w.cluster = state.NewCluster(clock.RealClock{}, w.client, provider)
	if err := w.fillCluster(p); err != nil {
		return nil, err
	}
	w.choosePods(p, provider)
	w.opts = schedulerOptions(p.Settings)
	return w, nil
}

// registerLabels adds every pool's labels to upstream's process-wide sets: it knows no labels per provider.
func registerLabels(p *problem) {
	for _, set := range p.Labels {
		v1.WellKnownLabels = v1.WellKnownLabels.Insert(set.WellKnown...)
		if set.ReservationID != "" {
			v1.WellKnownLabels = v1.WellKnownLabels.Insert(set.ReservationID)
			cloudprovider.ReservationIDLabel = set.ReservationID
		}
	}
}

// fill puts every object into the store, with the UIDs an API server would have given.
func (w *world) fill(p *problem) {
	for _, pod := range p.Pods {
		if pod.Namespace == "" {
			pod.Namespace = "default"
		}
		if pod.UID == "" {
			pod.UID = types.UID(key(pod))
		}
		w.client.put(pod)
	}
	for _, o := range p.Nodes {
		w.client.put(o)
	}
	for _, o := range p.Namespaces {
		w.client.put(o)
	}
	for _, o := range p.PersistentVolumeClaims {
		w.client.put(o)
	}
	for _, o := range p.PersistentVolumes {
		w.client.put(o)
	}
	for _, o := range p.StorageClasses {
		w.client.put(o)
	}
	for _, o := range p.CSINodes {
		w.client.put(o)
	}
	for _, o := range p.PodDisruptionBudgets {
		w.client.put(o)
	}
	for _, o := range p.DaemonSets {
		w.client.put(o)
	}
	for _, o := range p.NodePools {
		w.client.put(o)
	}
}

func (w *world) fillCluster(p *problem) error {
	for _, nc := range p.NodeClaims {
		w.cluster.UpdateNodeClaim(nc)
	}
	for _, n := range p.Nodes {
		if n.Spec.ProviderID == "" {
			n.Spec.ProviderID = n.Name
		}
		if err := w.cluster.UpdateNode(w.ctx, n); err != nil {
			return fmt.Errorf("adding node %s: %w", n.Name, err)
		}
	}
	for _, pod := range p.Pods {
		if pod.Spec.NodeName != "" {
			if err := w.cluster.UpdatePod(w.ctx, pod); err != nil {
				return fmt.Errorf("adding pod %s: %w", key(pod), err)
			}
		}
	}
	marked := map[string]bool{}
	for _, name := range p.State.MarkedForDeletion {
		marked[name] = true
	}
	for _, n := range w.cluster.DeepCopyNodes() {
		if marked[n.Name()] {
			w.cluster.MarkForDeletion(n.ProviderID())
		}
	}
	for _, ds := range p.DaemonSets {
		if err := w.cluster.UpdateDaemonSet(w.ctx, ds); err != nil {
			return err
		}
		pod := w.cluster.GetDaemonSetPod(ds)
		if pod == nil {
			pod = daemonset.PodForDaemonSet(ds.DeepCopy())
		}
		if affinity := ds.Spec.Template.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil &&
			affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			if pod.Spec.Affinity == nil {
				pod.Spec.Affinity = &corev1.Affinity{}
			}
			if pod.Spec.Affinity.NodeAffinity == nil {
				pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
			}
			pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution =
				affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		}
		w.daemons = append(w.daemons, pod)
	}
	return nil
}

// choosePods takes what a provisioning pass would: pending pods that pass validation, and those that must leave nodes
// on their way out.
func (w *world) choosePods(p *problem, provider *fake.CloudProvider) {
	recorder := events.NewRecorder(&record.FakeRecorder{})
	provisioner := provisioning.NewProvisioner(w.client, recorder, provider, w.cluster, clock.RealClock{}, nil, nil)
	for _, pod := range p.Pods {
		if pod.Spec.NodeName != "" {
			continue
		}
		if err := provisioner.Validate(w.ctx, pod); err != nil {
			w.invalid = append(w.invalid, podError{Pod: key(pod), Reason: "Invalid", Detail: err.Error()})
			continue
		}
		w.pods = append(w.pods, pod)
	}
	leaving, err := w.cluster.DeepCopyNodes().Deleting().CurrentlyReschedulablePods(w.ctx, w.client, clock.RealClock{}, recorder)
	if err == nil {
		w.pods = append(w.pods, leaving...)
	}
}

func schedulerOptions(s settings) []scheduling.Options {
	opts := []scheduling.Options{scheduling.NumConcurrentReconciles(5)}
	if s.PreferencePolicy == "Ignore" {
		opts = append(opts, scheduling.IgnorePreferences)
	}
	if s.MinValuesPolicy == "BestEffort" {
		opts = append(opts, scheduling.MinValuesPolicy(options.MinValuesPolicyBestEffort))
	} else {
		opts = append(opts, scheduling.MinValuesPolicy(options.MinValuesPolicyStrict))
	}
	if s.ReservedOfferingMode != "Fallback" && s.ReservedOfferingMode != "fallback" {
		opts = append(opts, scheduling.DisableReservedCapacityFallback)
	}
	return opts
}
