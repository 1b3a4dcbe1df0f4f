module karpenter-ts/hack/vectors/text

go 1.26.0

require (
	gopkg.in/evanphx/json-patch.v4 v4.13.0
	k8s.io/apimachinery v0.36.1
)

require (
	github.com/go-logr/logr v1.4.3 // indirect
	k8s.io/klog/v2 v2.140.0 // indirect
	k8s.io/utils v0.0.0-20260210185600-b8788abfbbc2 // indirect
)
