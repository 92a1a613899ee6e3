#!/bin/bash
# export.sh REF OUT.tar LAYERS: the storage's image REF as an OCI archive
# that Docker reads too; its sizes as JSON on stdout.
#
# Compresses only layers that LAYERS doesn't hold yet (buildah's own push
# compresses all of them each time: seconds, where a new agent is one small
# layer). Storage and driver come with CONTAINERS_STORAGE_CONF.
set -euo pipefail

ref=$1 out=$2 layers=$3
work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
blobs=$work/image/blobs/sha256
mkdir -p "$blobs" "$layers"

field() { grep -o "\"$1\":[^,}]*" <<<"$2" | head -1 | cut -d: -f2- | tr -d '"'; }
sha256() { sha256sum "$@" | cut -d' ' -f1; }

id=$(buildah images -q --no-trunc "$ref" | sed 's/^sha256://')
containers-storage get-image-data -f "$work/config" "$id" "sha256:$id"
mv "$work/config" "$blobs/$id"

entries='' paths='' count=0 packed=0 unpacked=0
layer=$(containers-storage image "$id" | sed -n 's/^Top Layer: //p')
while [ -n "$layer" ]; do
  facts=$(containers-storage layer --json "$layer")
  diff=$(field diff-digest "$facts") && diff=${diff#sha256:}
  blob=$(find "$layers" -name "$diff-*.gz" -print -quit)
  if [ -z "$blob" ]; then
    containers-storage diff -u -f "$work/layer" "$layer"
    [ "$(sha256 "$work/layer")" = "$diff" ] || { echo "image: layer $layer isn't what it was when it was made" >&2; exit 1; }
    gzip -n <"$work/layer" >"$work/layer.gz"
    blob=$layers/$diff-$(sha256 "$work/layer.gz").gz
    mv "$work/layer.gz" "$blob"
    rm "$work/layer"
  fi
  touch "$blob" # the newest are kept
  digest=${blob##*-} && digest=${digest%.gz}
  size=$(stat -c %s "$blob")
  ln "$blob" "$blobs/$digest"
  entries="{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+gzip\",\"digest\":\"sha256:$digest\",\"size\":$size}${entries:+,$entries}"
  paths="\"blobs/sha256/$digest\"${paths:+,$paths}"
  count=$((count + 1)) packed=$((packed + size)) unpacked=$((unpacked + $(field diff-size "$facts")))
  layer=$(field parent "$facts" || true) # the lowest has none
done

printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%d},"layers":[%s]}' \
  "$id" "$(stat -c %s "$blobs/$id")" "$entries" >"$work/manifest"
manifest=$(sha256 "$work/manifest")
bytes=$(stat -c %s "$work/manifest")
mv "$work/manifest" "$blobs/$manifest"
printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%d,"annotations":{"io.containerd.image.name":"%s","org.opencontainers.image.ref.name":"%s"}}]}' \
  "$manifest" "$bytes" "$ref" "$ref" >"$work/image/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$work/image/oci-layout"
printf '[{"Config":"blobs/sha256/%s","RepoTags":["%s"],"Layers":[%s]}]' "$id" "$ref" "$paths" >"$work/image/manifest.json"

tar -C "$work/image" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/tar" oci-layout index.json manifest.json blobs
mv "$work/tar" "$out"
printf '{"ref": "%s", "manifest": "sha256:%s", "layers": %d, "compressedBytes": %d, "unpackedBytes": %d}\n' "$ref" "$manifest" $count $packed $unpacked
