// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

type templateCase struct {
	name     string
	template string
}

const ref = `"nodeClassRef":{"group":"karpenter.kwok.sh","kind":"KWOKNodeClass","name":"default"}`

// spec wraps fields of the template's spec, with a node class and no requirements.
func spec(fields ...string) string {
	return fmt.Sprintf(`{"spec":{%s,"requirements":[]%s}}`, ref, strings.Join(append([]string{""}, fields...), ","))
}

func meta(metadata string) string {
	return fmt.Sprintf(`{"metadata":%s,"spec":{%s,"requirements":[]}}`, metadata, ref)
}

func taints(list string) string { return spec(`"taints":` + list) }

func cases() []templateCase {
	list := []templateCase{
		{"nothing at all", `{}`},
		{"empty spec", `{"spec":{}}`},
		{"only a node class", spec()},
		{"node class: other name", `{"spec":{"nodeClassRef":{"group":"karpenter.kwok.sh","kind":"KWOKNodeClass","name":"other"}}}`},
		{"node class: other kind", `{"spec":{"nodeClassRef":{"group":"karpenter.kwok.sh","kind":"EC2NodeClass","name":"default"}}}`},
		{"node class: other group", `{"spec":{"nodeClassRef":{"group":"karpenter.k8s.aws","kind":"KWOKNodeClass","name":"default"}}}`},
		{"node class: empty object", `{"spec":{"nodeClassRef":{}}}`},
		{"node class: null", `{"spec":{"nodeClassRef":null}}`},
		{"node class: empty strings", `{"spec":{"nodeClassRef":{"group":"","kind":"","name":""}}}`},
		{"node class: only a name", `{"spec":{"nodeClassRef":{"name":"default"}}}`},
		{"node class: field order in the text", `{"spec":{"nodeClassRef":{"name":"default","kind":"KWOKNodeClass","group":"karpenter.kwok.sh"}}}`},

		{"requirements do not count", `{"spec":{` + ref + `,"requirements":[{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}]}}`},
		{"requirements with minValues do not count", `{"spec":{` + ref + `,"requirements":[{"key":"a","operator":"In","values":["1","2"],"minValues":2}]}}`},

		{"metadata: empty", meta(`{}`)},
		{"metadata: null", meta(`null`)},
		{"labels: null", meta(`{"labels":null}`)},
		{"labels: empty map", meta(`{"labels":{}}`)},
		{"annotations: empty map", meta(`{"annotations":{}}`)},
		{"labels and annotations: empty maps", meta(`{"labels":{},"annotations":{}}`)},
		{"labels: one", meta(`{"labels":{"team":"a"}}`)},
		{"labels: one, empty value", meta(`{"labels":{"team":""}}`)},
		{"labels: one, empty key", meta(`{"labels":{"":"a"}}`)},
		{"labels: key and value swapped", meta(`{"labels":{"a":"team"}}`)},
		{"labels: two", meta(`{"labels":{"team":"a","tier":"b"}}`)},
		{"labels: two, other order in the text", meta(`{"labels":{"tier":"b","team":"a"}}`)},
		{"labels: two, values exchanged", meta(`{"labels":{"team":"b","tier":"a"}}`)},
		{"labels: qualified", meta(`{"labels":{"example.com/team":"a"}}`)},
		{"labels: numeric looking keys", meta(`{"labels":{"10":"x","9":"y","1":"z"}}`)},
		{"labels: __proto__", meta(`{"labels":{"__proto__":"x"}}`)},
		{"annotations: one", meta(`{"annotations":{"team":"a"}}`)},
		{"annotations: same as labels", meta(`{"labels":{"team":"a"},"annotations":{"team":"a"}}`)},
		{"annotations: several", meta(`{"annotations":{"a":"1","b":"2","c":"3","d":"4"}}`)},
		{"annotations: unicode", meta(`{"annotations":{"gruß":"schöne Grüße ☃ 日本語 🚀"}}`)},
		{"annotations: escaped", meta(`{"annotations":{"k":"line\nbreak\t\"quote\" \u00e9 \ud83d\ude80"}}`)},
		{"annotations: lone surrogate", meta(`{"annotations":{"k":"a\ud83db"}}`)},
		{"annotations: NUL and control characters", meta(`{"annotations":{"k":"\u0000\u0001"}}`)},
		{"annotations: long", meta(`{"annotations":{"k":"` + strings.Repeat("0123456789", 500) + `"}}`)},
		{"annotations: JSON inside", meta(`{"annotations":{"config":"{\"a\":[1,2,3]}"}}`)},

		{"taints: null", taints(`null`)},
		{"taints: empty list", taints(`[]`)},
		{"taints: one", taints(`[{"key":"dedicated","effect":"NoSchedule"}]`)},
		{"taints: one, other effect", taints(`[{"key":"dedicated","effect":"NoExecute"}]`)},
		{"taints: one, with value", taints(`[{"key":"dedicated","value":"gpu","effect":"NoSchedule"}]`)},
		{"taints: one, empty value", taints(`[{"key":"dedicated","value":"","effect":"NoSchedule"}]`)},
		{"taints: one, no effect", taints(`[{"key":"dedicated"}]`)},
		{"taints: an empty one", taints(`[{}]`)},
		{"taints: two", taints(`[{"key":"a","effect":"NoSchedule"},{"key":"b","effect":"NoSchedule"}]`)},
		{"taints: two, other order", taints(`[{"key":"b","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"}]`)},
		{"taints: the same twice", taints(`[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"}]`)},
		{"taints: the same thrice", taints(`[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"}]`)},
		{"taints: null time", taints(`[{"key":"a","effect":"NoSchedule","timeAdded":null}]`)},
		{"taints: time", taints(`[{"key":"a","effect":"NoSchedule","timeAdded":"2026-01-02T03:04:05Z"}]`)},
		{"taints: time with fraction", taints(`[{"key":"a","effect":"NoSchedule","timeAdded":"2026-01-02T03:04:05.678901234Z"}]`)},
		{"taints: time with short fraction", taints(`[{"key":"a","effect":"NoSchedule","timeAdded":"2026-01-02T03:04:05.5Z"}]`)},
		{"taints: time with offset", taints(`[{"key":"a","effect":"NoSchedule","timeAdded":"2026-01-02T03:04:05+05:30"}]`)},
		{"taints: time before 1970", taints(`[{"key":"a","effect":"NoSchedule","timeAdded":"1901-12-13T20:45:51Z"}]`)},
		{"taints: time long ago", taints(`[{"key":"a","effect":"NoSchedule","timeAdded":"0099-03-01T00:00:00Z"}]`)},
		{"taints: the zero time", taints(`[{"key":"a","effect":"NoSchedule","timeAdded":"0001-01-01T00:00:00Z"}]`)},
		{"taints: far future", taints(`[{"key":"a","effect":"NoSchedule","timeAdded":"9999-12-31T23:59:59Z"}]`)},
		{"taints: everything", taints(`[{"key":"example.com/a","value":"v","effect":"PreferNoSchedule","timeAdded":"2026-08-20T12:00:00Z"},{"key":"b","effect":"NoExecute"}]`)},
		{"startup taints: one", spec(`"startupTaints":[{"key":"dedicated","effect":"NoSchedule"}]`)},
		{"startup taints: empty list", spec(`"startupTaints":[]`)},
		{"taints and startup taints: the same", spec(`"taints":[{"key":"a","effect":"NoSchedule"}]`, `"startupTaints":[{"key":"a","effect":"NoSchedule"}]`)},
		{"taints and startup taints: exchanged", spec(`"taints":[{"key":"a","effect":"NoSchedule"}]`, `"startupTaints":[{"key":"b","effect":"NoSchedule"}]`)},

		{"unknown fields do not count", `{"spec":{` + ref + `,"requirements":[],"future":true},"other":1}`},
		{"everything", `{"metadata":{"labels":{"team":"a","tier":"b"},"annotations":{"note":"x"}},"spec":{` + ref +
			`,"requirements":[{"key":"kubernetes.io/os","operator":"In","values":["linux"]}],"taints":[{"key":"a","value":"1","effect":"NoSchedule"},{"key":"b","effect":"NoExecute"}],` +
			`"startupTaints":[{"key":"c","effect":"NoSchedule"}],"terminationGracePeriod":"1h30m","expireAfter":"720h"}}`},
	}
	for _, text := range []string{"0s", "1s", "30s", "90s", "1m30s", "1h", "60m", "720h", "8760h", "1h1m1s", "100000h", "2562047h", "9223372036s"} {
		list = append(list,
			templateCase{"expireAfter: " + text, spec(`"expireAfter":"` + text + `"`)},
			templateCase{"terminationGracePeriod: " + text, spec(`"terminationGracePeriod":"` + text + `"`)},
		)
	}
	return append(list,
		templateCase{"expireAfter: Never", spec(`"expireAfter":"Never"`)},
		templateCase{"expireAfter: 720h, terminationGracePeriod: 720h", spec(`"expireAfter":"720h"`, `"terminationGracePeriod":"720h"`)},
		templateCase{"expireAfter: Never, terminationGracePeriod: 1h", spec(`"expireAfter":"Never"`, `"terminationGracePeriod":"1h"`)},
		templateCase{"terminationGracePeriod: null", spec(`"terminationGracePeriod":null`)},
	)
}
