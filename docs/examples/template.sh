#!/bin/sh
# A session that starts from a folder of yours: each run gets a fresh copy of it.
set -eu
cd "$(mktemp -d)"
mkdir project template
echo 'name = "test"' >template/settings.toml

cd project
superqode run --template ../template --output '*.txt' -- \
  sh -c 'cat settings.toml; echo changed >settings.toml; echo done >result.txt'

cat ../template/settings.toml # as it was
superqode artifacts list
