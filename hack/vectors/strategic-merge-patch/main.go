// SPDX-License-Identifier: Apache-2.0

// Prints test vectors for src/kube/strategic-merge-patch.ts: what apimachinery makes of patches that kubectl would send
// (two-way as `kubectl edit`, three-way as `kubectl apply`) and of hand-written ones.
// Run: go run . > ../../../src/kube/strategic-merge-patch.vectors.json
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

type object = map[string]any
type list = []any

var kinds = map[string]any{
	"/v1/Pod":                       corev1.Pod{},
	"/v1/Node":                      corev1.Node{},
	"/v1/Service":                   corev1.Service{},
	"apps/v1/Deployment":            appsv1.Deployment{},
	"policy/v1/PodDisruptionBudget": policyv1.PodDisruptionBudget{},
}

type vector struct {
	Kind     string          `json:"kind"`
	Document json.RawMessage `json:"document"`
	Patch    json.RawMessage `json:"patch"`
	Result   any             `json:"result,omitempty"`
	Error    string          `json:"error,omitempty"`
}

func main() {
	var vectors []vector
	for _, c := range handwritten {
		vectors = append(vectors, apply(c[0], c[1], c[2]))
	}
	// The seed avoids rows that delete from a list and add to it at once: Go then reuses the array of the live list as
	// the order to keep, so the place of the new items depends on the capacity of a slice.
	r := rand.New(rand.NewSource(11))
	generators := []struct {
		kind string
		make func(*rand.Rand) object
	}{{"/v1/Pod", pod}, {"apps/v1/Deployment", deployment}, {"/v1/Service", service}, {"/v1/Node", node}}
	for i := 0; i < 84; i++ {
		g := generators[i%len(generators)]
		original, modified, current := text(g.make(r)), text(g.make(r)), text(g.make(r))
		var patch []byte
		var err error
		if i%3 == 0 {
			current = original
			patch, err = strategicpatch.CreateTwoWayMergePatch([]byte(original), []byte(modified), kinds[g.kind])
		} else {
			schema, _ := strategicpatch.NewPatchMetaFromStruct(kinds[g.kind])
			patch, err = strategicpatch.CreateThreeWayMergePatch([]byte(original), []byte(modified), []byte(current), schema, true)
		}
		if err != nil {
			panic(err)
		}
		vectors = append(vectors, apply(g.kind, current, string(patch)))
	}
	fmt.Println("[")
	for i, v := range vectors {
		line, _ := json.Marshal(v)
		fmt.Fprintf(os.Stdout, "%s%s\n", line, map[bool]string{true: "", false: ","}[i == len(vectors)-1])
	}
	fmt.Println("]")
}

func apply(kind, document, patch string) vector {
	v := vector{Kind: kind, Document: compact(document), Patch: compact(patch)}
	out, err := strategicpatch.StrategicMergePatch([]byte(document), []byte(patch), kinds[kind])
	if err != nil {
		v.Error = err.Error()
		return v
	}
	if err := json.Unmarshal(out, &v.Result); err != nil {
		panic(err)
	}
	// The typed decoding that follows in the API server drops nulls and directives that merging left inside new items.
	v.Result = drop(v.Result)
	return v
}

func drop(value any) any {
	switch v := value.(type) {
	case object:
		for key, inner := range v {
			if inner == nil || strings.HasPrefix(key, "$") {
				delete(v, key)
			} else {
				v[key] = drop(inner)
			}
		}
	case list:
		kept := list{}
		for _, item := range v {
			// Go keeps the rest of an item that says "delete me" when its parent is new; nobody wants that item.
			if o, ok := item.(object); ok && o["$patch"] != nil {
				continue
			}
			kept = append(kept, drop(item))
		}
		return kept
	}
	return value
}

func compact(s string) json.RawMessage {
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		panic(s + err.Error())
	}
	out, _ := json.Marshal(v)
	return out
}

func text(o object) string {
	out, _ := json.Marshal(o)
	return string(out)
}

// some returns a random subset of the names in random order.
func some(r *rand.Rand, names ...string) []string {
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:r.Intn(len(names)+1)]
}

func pick(r *rand.Rand, values ...any) any { return values[r.Intn(len(values))] }

func maybe(r *rand.Rand, o object, key string, value any) {
	if r.Intn(3) > 0 {
		o[key] = value
	}
}

func items(r *rand.Rand, names []string, item func(string) object) list {
	out := list{}
	for _, n := range names {
		out = append(out, item(n))
	}
	return out
}

func meta(r *rand.Rand) object {
	m := object{"name": "x"}
	labels := object{}
	for _, k := range some(r, "a", "b", "c") {
		labels[k] = pick(r, "1", "2")
	}
	maybe(r, m, "labels", labels)
	finalizers := list{}
	for _, f := range some(r, "f/1", "f/2", "f/3", "f/4") {
		finalizers = append(finalizers, f)
	}
	maybe(r, m, "finalizers", finalizers)
	maybe(r, m, "ownerReferences", items(r, some(r, "u1", "u2"), func(n string) object {
		return object{"uid": n, "name": pick(r, "o", "p"), "kind": "K", "apiVersion": "v1"}
	}))
	return m
}

func container(r *rand.Rand, name string) object {
	c := object{"name": name, "image": pick(r, "i:1", "i:2", "i:3")}
	maybe(r, c, "env", items(r, some(r, "A", "B", "C"), func(n string) object {
		return object{"name": n, "value": pick(r, "x", "y")}
	}))
	maybe(r, c, "ports", items(r, some(r, "80", "81", "82"), func(n string) object {
		return object{"containerPort": json.Number(n), "name": pick(r, "p", "q")}
	}))
	maybe(r, c, "args", list{pick(r, "-a", "-b"), pick(r, "-c", "-d")})
	maybe(r, c, "resources", object{"requests": object{"cpu": pick(r, "1", "2")}})
	return c
}

func podSpec(r *rand.Rand) object {
	names := some(r, "c1", "c2", "c3", "c4")
	if len(names) == 0 {
		names = []string{"c1"}
	}
	spec := object{"containers": items(r, names, func(n string) object { return container(r, n) })}
	maybe(r, spec, "volumes", items(r, some(r, "v1", "v2", "v3"), func(n string) object {
		if r.Intn(2) == 0 {
			return object{"name": n, "emptyDir": object{}}
		}
		return object{"name": n, "configMap": object{"name": pick(r, "m", "n")}}
	}))
	maybe(r, spec, "tolerations", list{object{"key": pick(r, "k", "l"), "operator": "Exists"}})
	maybe(r, spec, "nodeSelector", object{pick(r, "n1", "n2").(string): pick(r, "v", "w")})
	maybe(r, spec, "imagePullSecrets", items(r, some(r, "s1", "s2"), func(n string) object { return object{"name": n} }))
	maybe(r, spec, "hostAliases", items(r, some(r, "1.1.1.1", "2.2.2.2"), func(n string) object {
		return object{"ip": n, "hostnames": list{pick(r, "a", "b")}}
	}))
	return spec
}

func pod(r *rand.Rand) object { return object{"metadata": meta(r), "spec": podSpec(r)} }

func deployment(r *rand.Rand) object {
	spec := object{"replicas": r.Intn(4), "template": object{"metadata": meta(r), "spec": podSpec(r)}}
	if r.Intn(2) == 0 {
		spec["strategy"] = object{"type": "Recreate"}
	} else {
		spec["strategy"] = object{"type": "RollingUpdate", "rollingUpdate": object{"maxSurge": pick(r, 1, "25%")}}
	}
	return object{"metadata": meta(r), "spec": spec}
}

func service(r *rand.Rand) object {
	return object{"metadata": meta(r), "spec": object{"ports": items(r, some(r, "80", "443", "8080"), func(n string) object {
		return object{"port": json.Number(n), "name": "p" + n, "targetPort": pick(r, 80, "http")}
	})}}
}

func node(r *rand.Rand) object {
	spec := object{}
	maybe(r, spec, "taints", items(r, some(r, "t1", "t2"), func(n string) object {
		return object{"key": n, "effect": pick(r, "NoSchedule", "NoExecute")}
	}))
	maybe(r, spec, "unschedulable", true)
	status := object{"conditions": items(r, some(r, "Ready", "DiskPressure", "PIDPressure"), func(n string) object {
		return object{"type": n, "status": pick(r, "True", "False")}
	})}
	return object{"metadata": meta(r), "spec": spec, "status": status}
}

var handwritten = [][3]string{
	{"/v1/Pod", `{"spec":{"containers":[{"name":"a","image":"1"}]}}`, `{"spec":{"containers":[{"name":"a","image":"2"},{"name":"b","image":"3"}]}}`},
	{"/v1/Pod", `{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`, `{"spec":{"containers":[{"name":"a","$patch":"delete"}]}}`},
	{"/v1/Pod", `{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`, `{"spec":{"containers":[{"$patch":"replace"},{"name":"c"}]}}`},
	{"/v1/Pod", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"$patch":"replace","nodeName":"n"}}`},
	{"/v1/Pod", `{"spec":{"nodeSelector":{"a":"b"}}}`, `{"spec":{"nodeSelector":{"$patch":"delete"}}}`},
	{"/v1/Pod", `{"spec":{"nodeSelector":{"a":"b"}}}`, `{"spec":{"nodeSelector":{"$patch":"merge"}}}`},
	{"/v1/Pod", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"a","$patch":"merge"}]}}`},
	{"/v1/Pod", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"a","$patch":"x"}]}}`},
	{"/v1/Pod", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"$patch":"delete"}]}}`},
	{"/v1/Pod", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"image":"x"}]}}`},
	{"/v1/Pod", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":["x"]}}`},
	{"/v1/Pod", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[["x"]]}}`},
	{"/v1/Pod", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":null}}`},
	{"/v1/Pod", `{"spec":{}}`, `{"spec":{"containers":[{"name":"a","image":null,"env":[{"name":"b","value":null}]}],"nodeName":null}}`},
	{"/v1/Pod", `{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}`, `{"spec":{"volumes":[{"name":"v","$retainKeys":["name","hostPath"],"hostPath":{"path":"/x"},"emptyDir":null}]}}`},
	{"/v1/Pod", `{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}`, `{"spec":{"volumes":[{"name":"v","$retainKeys":["name"],"hostPath":{"path":"/x"}}]}}`},
	{"/v1/Pod", `{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}`, `{"spec":{"volumes":[{"name":"v","$retainKeys":"name"}]}}`},
	{"/v1/Pod", `{"metadata":{"finalizers":["a","b"]}}`, `{"metadata":{"finalizers":["c","a"]}}`},
	{"/v1/Pod", `{"metadata":{"finalizers":["a","b"]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a","x"]}}`},
	{"/v1/Pod", `{"metadata":{"finalizers":["a","b"]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"$setElementOrder/finalizers":["d","b"],"finalizers":["d"]}}`},
	{"/v1/Pod", `{"metadata":{}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}`},
	{"/v1/Pod", `{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"$deleteFromPrimitiveListfinalizers":["a"]}}`},
	{"/v1/Pod", `{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"$setElementOrderfinalizers":["a"]}}`},
	{"/v1/Pod", `{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"$setElementOrder/finalizers":"a"}}`},
	{"/v1/Pod", `{"metadata":{"finalizers":["a","b","c"]}}`, `{"metadata":{"$setElementOrder/finalizers":["c","a"]}}`},
	{"/v1/Pod", `{"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}}`, `{"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"a"}],"containers":[{"name":"a","image":"x"}]}}`},
	{"/v1/Pod", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"b"}]}}`},
	{"/v1/Pod", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"a"}]}}`},
	{"/v1/Pod", `{"metadata":{"annotations":{"a":"1"}}}`, `{"metadata":{"annotations":{"a":null,"b":"2"}}}`},
	{"/v1/Pod", `{"metadata":{"annotations":null}}`, `{"metadata":{"annotations":{"a":null,"b":"2"}}}`},
	{"/v1/Pod", `{"spec":{"tolerations":[{"key":"a"},{"key":"b"}]}}`, `{"spec":{"tolerations":[{"key":"c"}]}}`},
	{"/v1/Node", `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`, `{"spec":{"taints":[{"key":"b","effect":"NoSchedule"}]}}`},
	{"/v1/Node", `{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Other","status":"True"}]}}`, `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`},
	{"/v1/Node", `{"spec":{"podCIDRs":["10.0.0.0/24"]}}`, `{"spec":{"podCIDRs":["10.0.0.0/24"]}}`},
	{"apps/v1/Deployment", `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}}`, `{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`},
	{"apps/v1/Deployment", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"a"}]}}}}`, `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"b"}]}}}}`},
	{"policy/v1/PodDisruptionBudget", `{"spec":{"selector":{"matchLabels":{"a":"b"}}}}`, `{"spec":{"selector":{"matchLabels":{"c":"d"}}}}`},
}
