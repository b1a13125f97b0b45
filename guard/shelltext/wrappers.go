package shelltext

// wrapper describes programs that run another command: their names, their options,
// how many words stand before the command, and how the command is given.
type wrapper struct {
	names   string
	options string // option table, see cmdline.Parse
	skip    int    // words before the command
	how     how
	sub     string // subcommands that run something; others run nothing that is looked into
	shell   string // options whose value is shell text
	only    string // options with which no command runs
}

// how a command is given.
type how int

const (
	asWords  how = iota // as it stands, after the options
	joined              // its words are joined to shell text
	each                // every word is shell text
	inOption            // only in the options named by shell, anywhere
	afterC              // as words after -c or --command
	onInput             // as shell text on the standard input
)

// runners are programs that run what the project's own files say: a Makefile, the
// scripts of a package.json, its tests. What that is the text does not hold. After a
// name stand the subcommands of which that is true; without any it is of all.
var runners = []struct{ names, subs string }{
	{names: `make gmake bmake ninja just task rake mage invoke inv nox tox doit gradle gradlew mvn mvnw ant sbt lein
 grunt gulp nx turbo lerna rush pre-commit lefthook lint-staged husky pytest jest vitest mocha rspec phpunit ctest`},
	{"npm pnpm yarn bun deno composer", `run run-script rum urn test t tst start stop restart task exec install i ci
 add update publish pack rebuild prepare version`},
	{"go", "run test generate"},
	{"cargo", "run r test t bench build b check c clippy install"},
	{"poetry pipenv pdm hatch rye uv", "run"},
}

// wrappers is knowledge: programs with one form share a row.
var wrappers = []wrapper{
	{names: `nohup chronic unbuffer builtin noglob nocorrect busybox toybox fakeroot dbus-run-session valgrind winpty
 eatmydata rtk catchsegv wsh firejail and or not begin cross-env setarch linux64 linux32 i386 x86_64 aarch64 uname26
 arch`},
	{names: "env", options: "u/unset= C/chdir= a/argv0="},
	{names: "sudo", options: `C/close-from= g/group= h/host= p/prompt= r/role= t/type= T/command-timeout=
 U/other-user= u/user= D/chdir= R/chroot= E/preserve-env? e/edit i/login l/list s/shell v/validate V/version`,
		only: "list validate version edit"},
	{names: "doas", options: "u= C="},
	{names: "setsid screen torsocks proxychains proxychains4 entr", options: "S="},
	{names: "command", options: "v V", only: "v V"},
	{names: "exec", options: "a="},
	{names: "nice gnice", options: "n/adjustment="},
	{names: "choom", options: "n/adjust= p="},
	{names: "ionice", options: "c/class= n/classdata= p= P= u="},
	{names: "timeout gtimeout", options: "s/signal= k/kill-after=", skip: 1},
	{names: "time gtime", options: "f/format= o/output="},
	{names: "stdbuf", options: "i/input= o/output= e/error="},
	{names: "gosu su-exec chroot faketime", skip: 1},
	{names: "pkexec", options: "u/user="},
	{names: "systemd-run", options: "p/property= u/unit= E/setenv="},
	{names: "setpriv", options: "reuid= regid= groups="},
	{names: "caffeinate", options: "t= w="},
	{names: "xvfb-run", options: "n/server-num= s/server-args= e/error-file="},
	{names: "strace ltrace", options: "e= o= p= s= u= E="},
	{names: "taskset", skip: 1},
	{names: "chrt", options: "T= P= D=", skip: 1},
	{names: "unshare nsenter", options: "t/target= S/setuid= G/setgid= m? u? i? n? p? U? C? T? r? w?"},
	{names: "wsl", options: "d= u="},
	{names: "ssh-agent", options: "a= E= t= P= O="},
	{names: "prlimit", options: "p= o= v? n? c? d? e? f? i? l? m? q? r? s? t? u? x? y?"},
	{names: "proot", options: "r= b= w= q= R= S="},
	{names: "numactl", options: "N= m= i= p= C="},
	{names: "rlwrap", options: "a? f= H="},
	{names: "dumb-init tini", options: "r= p= e="},
	{names: "cpulimit cgexec", options: "l= p= g="},
	{names: "chpst softlimit", options: "u= U= e= /= b= n= l= L= m= d= o= p= f= c= t= a= r= s="},
	{names: "flock", options: "w/timeout= E/conflict-exit-code=", skip: 1},
	{names: "bunx", options: "p/package="},
	{names: "uvx", options: "from="},
	{names: "onchange", options: "d= e="},
	{names: "dotenv", options: "e= f=", sub: "run"},
	{names: "dotenv", options: "e= f="},
	{names: "aws-vault", options: "d/duration= region= mfa-token= assume-role-ttl=", sub: "exec", skip: 1},
	{names: "envchain envdir", skip: 1},
	{names: "npx", options: "p/package= c/call=", shell: "call"},
	{names: "npm", options: "c/call= package= prefix=", sub: "exec x", shell: "call"},
	{names: "pnpm yarn bun", options: "C/dir= filter= cwd=", sub: "exec dlx x"},
	{names: `bundle poetry pipenv pdm hatch rye mise asdf op doppler devbox dotenvx rbenv pyenv nodenv nx turbo
 toolbox`, options: "f=", sub: "exec run x"},
	{names: "uv", options: "with= p/python= project= directory=", sub: "run"},
	{names: "conda", options: "n/name= p/prefix=", sub: "run"},
	{names: "tox", options: "e=", sub: "exec"},
	{names: "lerna", options: "scope= concurrency=", sub: "exec"},
	{names: "perf", options: "o= e= F= p= c= C= r= x=", sub: "stat record trace"},
	{names: "direnv", sub: "exec", skip: 1},
	{names: "runuser", options: "c/command= s/shell= u/user= l=", shell: "command"},
	{names: "su", options: "c/command= s/shell= g=", how: inOption, shell: "command"},
	{names: "script", options: "c/command= t? o=", how: inOption, shell: "command"},
	{names: "nix-shell", options: "run= command= p/packages= I= A=", how: inOption, shell: "run command"},
	{names: "chokidar", options: "c/command= d= t= i/ignore=", how: inOption, shell: "command"},
	{names: "nodemon", options: "x/exec= w/watch= e/ext= i/ignore=", how: inOption, shell: "exec"},
	{names: "cargo", options: "x/exec= s/shell=", sub: "watch", shell: "shell"},
	{names: "sg", options: "c=", skip: 1, how: each, shell: "c"},
	{names: "concurrently", options: "n/names= c/prefix-colors=", how: each},
	{names: "hyperfine", options: "w/warmup= r/runs= p/prepare= c/cleanup=", how: each, shell: "prepare cleanup"},
	{names: "tmux", options: "t= c= n= s= x= y= F= e= f=", how: each,
		sub: "new-session new new-window neww split-window run-shell run send-keys send"},
	{names: "watch", options: "n/interval= d?", how: joined},
	{names: "watchexec", options: "e/exts= w/watch= i/ignore= f/filter= s=", how: joined},
	{names: "powershell pwsh", options: "Command= c=", how: joined, shell: "Command c"},
	{names: "sem rush", options: "j= id= i=", how: joined},
	{names: "cmd", skip: 1, how: joined},
	{names: "nix just", how: afterC},
	{names: "at batch", how: onInput},
}
