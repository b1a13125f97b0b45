#!/bin/sh
# Builds superqode from the source tree that holds this script and installs it
# for one user. `sh install.sh --help` says how.
#
# Rules: a running or half-made binary is never seen (each is built beside its
# target and renamed over it); a file that this script did not install is moved
# aside, never overwritten, and never removed by --uninstall.
set -eu

module=github.com/seed-2d964004/superqode
min_git=2.28

usage() {
	cat <<END
usage: sh install.sh [--uninstall | --help]

Builds static binaries of superqode and puts them into \${PREFIX:-\$HOME/.local}/bin.
Needs Go $(need_go) or newer and git $min_git or newer.

  --uninstall   remove what this script installed there
  --help        print this text

environment:
  PREFIX        where to install, for example PREFIX=/usr/local
END
}

say() { printf '%s\n' "$*"; }

# fail MESSAGE [WHAT TO DO]
fail() {
	printf 'install.sh: %s\n' "$1" >&2
	if [ $# -gt 1 ]; then printf 'hint: %s\n' "$2" >&2; fi
	exit 1
}

# quote prints $1 as one word of a shell line.
quote() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

need_go() { sed -n 's/^go \([0-9][0-9.]*\)$/\1/p' "$src/go.mod"; }

# at_least A B is true when version A is not older than B; three numbers count.
at_least() {
	a=$1. b=$2.
	for _ in 1 2 3; do
		x=${a%%.*} y=${b%%.*}
		a=${a#*.} b=${b#*.}
		if [ "${x:-0}" -gt "${y:-0}" ]; then return 0; fi
		if [ "${x:-0}" -lt "${y:-0}" ]; then return 1; fi
	done
}

# number prints the leading version number of $1: 1.26 of 1.26rc1.
number() { printf '%s\n' "$1" | sed -n 's/^\([0-9][0-9]*\(\.[0-9][0-9]*\)*\).*/\1/p'; }

check_platform() {
	case $(uname -s) in
	MINGW* | MSYS* | CYGWIN* | Windows*)
		fail "superqode does not run on Windows" "use it inside WSL 2" ;;
	esac
}

check_go() {
	need=$(need_go)
	[ -n "$need" ] || fail "$src/go.mod names no Go version"
	command -v go >/dev/null 2>&1 ||
		fail "go is not in PATH; superqode needs Go $need or newer" "install Go from https://go.dev/dl/ and put its bin folder into PATH"
	# An explicit GOTOOLCHAIN is the user's choice; without one nothing is downloaded.
	found=$(cd "$src" && GOTOOLCHAIN=${GOTOOLCHAIN:-local} go env GOVERSION 2>/dev/null) || found=
	# A go that is too old refuses to answer inside the module.
	[ -n "$found" ] || found=$(cd / && GOTOOLCHAIN=${GOTOOLCHAIN:-local} go version 2>/dev/null | sed 's/^go version //') || found=
	have=$(number "$(printf '%s\n' "$found" | sed 's/^.*go\([0-9]\)/\1/')")
	[ -n "$have" ] || fail "cannot read a version from $(command -v go)" "install Go from https://go.dev/dl/"
	at_least "$have" "$need" ||
		fail "$(command -v go) is Go $have, superqode needs Go $need or newer" "install a newer Go from https://go.dev/dl/, or run: GOTOOLCHAIN=go$need sh $(quote "$src/install.sh")"
}

check_git() {
	command -v git >/dev/null 2>&1 ||
		fail "git is not in PATH; superqode needs git $min_git or newer" "install it, for example: apt-get install git, or: brew install git"
	have=$(number "$(git version 2>/dev/null | sed 's/^git version //')")
	[ -n "$have" ] || fail "cannot read a version from $(command -v git)"
	at_least "$have" "$min_git" ||
		fail "$(command -v git) is git $have, superqode needs git $min_git or newer" "install a newer git and put it first in PATH"
}

# stamp prints the version: the nearest tag's or the commit's, with its date. A
# tree that is no checkout of its own, or has no git at hand, is "source".
stamp() {
	top=$(git -C "$src" rev-parse --show-toplevel 2>/dev/null) || top=
	if [ "$top" != "$src" ] || ! git -C "$src" rev-parse -q --verify HEAD >/dev/null 2>&1; then
		say v0.0.0-source
		return
	fi
	when=$(TZ=UTC git -C "$src" show -s --format=%cd --date=format-local:%Y%m%d%H%M%S HEAD)
	if tag=$(git -C "$src" describe --tags --match 'v[0-9]*' --dirty --abbrev=12 2>/dev/null); then
		say "$tag+$when"
	else
		commit=$(git -C "$src" describe --always --dirty --abbrev=12 --exclude '*')
		say "v0.0.0-$when-$commit"
	fi
}

# find_bin sets bin, the folder to install into, to an absolute path.
find_bin() {
	prefix=${PREFIX:-}
	if [ -z "$prefix" ]; then
		[ -n "${HOME:-}" ] || fail "neither PREFIX nor HOME is set, so there is no place to install to" "PREFIX=/usr/local sh $(quote "$src/install.sh")"
		prefix=$HOME/.local
	fi
	case $prefix in
	/*) ;;
	*) prefix=$(pwd)/$prefix ;;
	esac
	bin=${prefix%/}/bin
}

# commands prints the names of the binaries, one a line.
commands() {
	for main in "$src"/cmd/*/main.go; do
		[ -f "$main" ] || fail "$src holds no cmd/*/main.go; is it superqode's source tree?"
		basename "$(dirname "$main")"
	done
}

# is_ours is true when the file holds the module's path, as every binary built
# from it does.
is_ours() { LC_ALL=C grep -q "$module" "$1" 2>/dev/null; }

# set_aside keeps what is at $1 when it is not ours.
set_aside() {
	if [ ! -e "$1" ] && [ ! -L "$1" ]; then return; fi
	if [ -d "$1" ]; then fail "$1 is a folder"; fi
	if is_ours "$1"; then return; fi
	n=1
	while [ -e "$1.saved-$n" ] || [ -L "$1.saved-$n" ]; do n=$((n + 1)); done
	cp -pP "$1" "$1.saved-$n"
	say "kept the $(basename "$1") that was there as $1.saved-$n"
}

install_all() {
	mkdir -p "$bin" 2>/dev/null || fail "cannot make $bin" "choose another place: PREFIX=DIR sh $(quote "$src/install.sh")"
	[ -w "$bin" ] || fail "cannot write to $bin" "choose another place: PREFIX=DIR sh $(quote "$src/install.sh")"
	tmp=$bin/.superqode-install.$$
	mkdir "$tmp"
	trap 'rm -rf "$tmp"' EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	version=$(stamp)
	for name in $names; do
		say "building $name $version"
		(cd "$src" && CGO_ENABLED=0 GOOS='' GOARCH='' GOWORK=off go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$tmp/$name" "./cmd/$name") ||
			fail "building $name failed"
		chmod 755 "$tmp/$name"
	done
	"$tmp/superqode" version >/dev/null || fail "the new superqode does not start"
	for name in $names; do
		set_aside "$bin/$name"
		mv -f "$tmp/$name" "$bin/$name"
		say "installed $bin/$name"
	done
}

# advise_path says whether the shell will find what was installed.
advise_path() {
	case :${PATH:-}: in
	*:"$bin":*)
		first=$(command -v superqode) || first=
		if [ "$first" != "$bin/superqode" ]; then
			say "note: $first comes first in PATH and hides it"
		fi
		return ;;
	esac
	say "$bin is not in PATH. Add this line"
	case ${SHELL:-} in
	*/fish) say "to ~/.config/fish/config.fish:" && say "    fish_add_path $(quote "$bin")" ;;
	*/zsh) say "to ~/.zshrc:" && say "    export PATH=$(quote "$bin"):\"\$PATH\"" ;;
	*/bash) say "to ~/.bashrc:" && say "    export PATH=$(quote "$bin"):\"\$PATH\"" ;;
	*) say "to ~/.profile:" && say "    export PATH=$(quote "$bin"):\"\$PATH\"" ;;
	esac
}

uninstall() {
	left=
	removed=
	for name in $names; do
		if [ ! -e "$bin/$name" ] && [ ! -L "$bin/$name" ]; then continue; fi
		if is_ours "$bin/$name"; then
			rm -f "$bin/$name"
			say "removed $bin/$name"
			removed=yes
		else
			printf 'install.sh: %s was not installed by this script, so it stays\n' "$bin/$name" >&2
			left=yes
		fi
	done
	state=${SUPERQODE_HOME:-${HOME:-}/.superqode}
	if [ -d "$state" ]; then say "sessions and their saved contents stay in $state"; fi
	if [ -n "$left" ]; then exit 1; fi
	if [ -z "$removed" ]; then say "nothing to remove in $bin"; fi
}

src=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
[ -f "$src/go.mod" ] || fail "$src holds no go.mod; run install.sh from superqode's source tree"
[ $# -le 1 ] || fail "too many arguments" "sh install.sh --help"
case ${1:-} in
'')
	names=$(commands)
	find_bin
	check_platform
	check_go
	check_git
	install_all
	advise_path
	;;
--uninstall)
	names=$(commands)
	find_bin
	uninstall
	;;
--stamp) stamp ;; # for the Makefile
-h | --help) usage ;;
*) fail "unknown argument $1" "sh install.sh --help" ;;
esac
