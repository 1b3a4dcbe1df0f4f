# The two commands of the Cluster API provider's guide. Everything else is `npm run`.
controllers := bin/karpenter-cluster-controller bin/karpenter-clusterapi-controller

.PHONY: build vendor clean

build: | node_modules
build: $(controllers)

vendor:
	npm ci

node_modules:
	npm ci

# The controller with the guide's one cloud, unless PROVIDERS or --providers names others.
$(controllers): Makefile
	@printf '%s\n' '#!/bin/sh' 'PROVIDERS=$${PROVIDERS-cluster-api} exec node "$$(dirname "$$0")/karpenter.js" controller "$$@"' > $@
	@chmod +x $@
	@echo $@

clean:
	rm -f $(controllers)
