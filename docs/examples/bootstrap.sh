#!/bin/sh
# A command that prepares the workspace before the program runs. What it makes is no
# change of the session, and never reaches the repository.
set -eu
cd "$(mktemp -d)"
git init -q
echo 'greeting: hello' >config.example
git add config.example
git -c user.name=me -c user.email=me@example.com commit -q -m 'Begin'

superqode run --bootstrap 'cp config.example config.yaml' -- \
  sh -c 'cat config.yaml; echo "# more" >>config.example'

cat .superqode/qe-artifacts/patches/*.patch # the program's change alone
git status --short                          # nothing
