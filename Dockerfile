# The controller as an image: Node 24 without a shell, the built program and its production dependencies, no root.
#   docker build --build-arg COMMIT=$(git rev-parse HEAD) -t registry.example.com/karpenter-ts:0.1.0 .
FROM node:24-trixie-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# All of it: the compiler is an optional part of its package.
RUN npm ci --ignore-scripts
COPY bin bin
COPY hack/run.js hack/run.js
COPY hack/stamp.js hack/stamp.js
COPY tsconfig.json tsconfig.build.json ./
COPY src src
# The commit is in the log and in the metrics; there is no git here to ask.
ARG COMMIT
# Without src the launcher takes dist. The image brings its own Node; those that npm brings are for older machines.
RUN npm run build && rm -rf src && npm prune --omit=dev --omit=optional --ignore-scripts

FROM gcr.io/distroless/nodejs24-debian13:nonroot
WORKDIR /app
COPY --from=build --chown=0:0 /app/package.json package.json
COPY --from=build --chown=0:0 /app/bin bin
COPY --from=build --chown=0:0 /app/node_modules node_modules
COPY --from=build --chown=0:0 /app/dist dist
USER 65532:65532
EXPOSE 8080 8081
# The heap gets nine tenths of the container's memory, in this one process; little of it is for new objects (bin/heap.js).
ENTRYPOINT ["/nodejs/bin/node", "--max-old-space-size-percentage=90", "--max-semi-space-size=16", "/app/bin/karpenter.js"]
CMD ["controller"]
