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

const (
	timeoutOptions = "s/signal= k/kill-after= preserve-status foreground v/verbose p"
	archOptions    = "B/32bit F/fdpic-funcptrs I/short-inode L/addr-compat-layout R/addr-no-randomize S/whole-seconds T/sticky-timeouts X/read-implies-exec Z/mmap-page-zero 3/3gb v/verbose uname-2.6"
	sudoOptions    = `A/askpass b/background E/preserve-env? e/edit g/group= H/set-home h/host= i/login K k l/list n/non-interactive P p/prompt= C/close-from=
 r/role= s/shell S/stdin t/type= T/command-timeout= U/other-user= u/user= D/chdir= R/chroot= v/validate V/version`
	envOptions = "i/ignore-environment 0/null u/unset= C/chdir= v/debug block-signal? default-signal? ignore-signal? a/argv0="
	limits     = "p= o= noheadings raw verbose v? n? c? d? e? f? i? l? m? q? r? s? t? u? x? y?"
	namespaces = `t/target= m/mount? u/uts? i/ipc? n/net? p/pid? U/user? C/cgroup? T/time? S/setuid= G/setgid= r/root? w/wd? F/no-fork Z r/map-root-user
 f/fork`
	unixUsers = "u= U= e= / b= n= l= L= m= d= o= p= f= c= t= 0 1 2 v P a= r= s="
)

// wrappers is knowledge: programs with one form share a row.
var wrappers = []wrapper{
	{names: "env", options: envOptions},
	{names: "sudo", options: sudoOptions, only: "list validate version edit"},
	{names: "nohup chronic unbuffer builtin noglob nocorrect busybox toybox fakeroot dbus-run-session valgrind winpty eatmydata rtk catchsegv wsh firejail and or not begin cross-env"},
	{names: "setsid screen torsocks proxychains proxychains4 entr", options: "c f w q d n p r s z S= m X"},
	{names: "command", options: "p v V", only: "v V"}, {names: "exec", options: "a= c l"},
	{names: "nice gnice", options: "n/adjustment="}, {names: "ionice", options: "c/class= n/classdata= p= P= u= t"},
	{names: "timeout gtimeout", options: timeoutOptions, skip: 1},
	{names: "time gtime", options: "f/format= o/output= a p v"}, {names: "stdbuf", options: "i/input= o/output= e/error="},
	{names: "doas", options: "u= C= n s"}, {names: "gosu su-exec chroot", skip: 1}, {names: "faketime", options: "f", skip: 1},
	{names: "pkexec", options: "u/user="}, {names: "setpriv", options: "reuid= regid= groups="},
	{names: "caffeinate", options: "t= w="}, {names: "xvfb-run", options: "a n/server-num= s/server-args= e/error-file="},
	{names: "strace ltrace", options: "e= o= p= s= u= E= f"}, {names: "systemd-run", options: "p/property= u/unit= E/setenv= user pty t scope"},
	{names: "taskset", options: "p c a", skip: 1}, {names: "chrt", options: "T= P= D= f r b i", skip: 1},
	{names: "unshare nsenter", options: namespaces}, {names: "wsl", options: "d= u= e"}, {names: "prlimit", options: limits}, {names: "choom", options: "n/adjust= p="},
	{names: "setarch linux64 linux32 i386 x86_64 aarch64 uname26 arch", options: archOptions},
	{names: "proot", options: "r= b= w= q= R= S= 0"}, {names: "ssh-agent", options: "a= E= t= P= O= c D d k s"}, {names: "numactl", options: "N= m= i= p= C= l"},
	{names: "rlwrap", options: "a? f= H= i c r"}, {names: "dumb-init tini", options: "c v r= p= e= s g w"}, {names: "cpulimit cgexec", options: "l= p= i f g= sticky"},
	{names: "chpst softlimit", options: unixUsers}, {names: "flock", options: "s/shared x/exclusive n/nonblock w/timeout= E/conflict-exit-code= o/close F/no-fork u/unlock v/verbose", skip: 1},
	{names: "dotenv", options: "e= f="}, {names: "bunx", options: "p/package= y"}, {names: "uvx", options: "from="}, {names: "onchange", options: "i k d= e="},
	{names: "npx", options: "y/yes p/package= c/call= q/quiet no-install", shell: "call"},
	{names: "npm", options: "c/call= y/yes package= prefix=", sub: "exec x", shell: "call"},
	{names: "pnpm yarn bun", options: "C/dir= r w filter= cwd= c/shell-mode", sub: "exec dlx x"},
	{names: "bundle poetry pipenv pdm hatch rye mise asdf op doppler devbox dotenvx rbenv pyenv nodenv nx turbo toolbox", options: "f=", sub: "exec run x"},
	{names: "uv", options: "with= p/python= project= directory= m/module", sub: "run"}, {names: "conda", options: "n/name= p/prefix= no-capture-output", sub: "run"},
	{names: "direnv", sub: "exec", skip: 1}, {names: "tox", options: "e=", sub: "exec"}, {names: "lerna", options: "scope= concurrency= stream", sub: "exec"},
	{names: "perf", options: "o= e= F= p= c= C= r= x= a g d v s T", sub: "stat record trace"},
	{names: "runuser", options: "c/command= s/shell= u/user= l=", shell: "command"},
	{names: "su", options: "c/command= s/shell= l/login g= m p", how: inOption, shell: "command"},
	{names: "script", options: "c/command= q/quiet e/return a/append f/flush t? o=", how: inOption, shell: "command"},
	{names: "nix-shell", options: "run= command= p/packages= I= A=", how: inOption, shell: "run command"},
	{names: "nodemon", options: "x/exec= w/watch= e/ext= i/ignore= q", how: inOption, shell: "exec"},
	{names: "chokidar", options: "c/command= d= t= i/ignore=", how: inOption, shell: "command"},
	{names: "cargo", options: "x/exec= s/shell=", sub: "watch", shell: "shell"},
	{names: "sg", options: "c=", skip: 1, how: each, shell: "c"}, {names: "concurrently", options: "n/names= c/prefix-colors= k", how: each},
	{names: "hyperfine", options: "w/warmup= r/runs= p/prepare= c/cleanup= N", how: each, shell: "prepare cleanup"},
	{names: "tmux", options: "t= c= n= s= d P h v x= y= F= e= f= b l R K k Z", how: each, sub: "new-session new new-window neww split-window run-shell run send-keys send"},
	{names: "watch", options: "n/interval= d/differences? t b e g c x p", how: joined}, {names: "watchexec", options: "e/exts= w/watch= i/ignore= f/filter= c r s= n/no-shell", how: joined},
	{names: "powershell pwsh", options: "Command= c= NoProfile", how: joined, shell: "Command c"}, {names: "sem rush", options: "j= id= fg bg wait k i=", how: joined},
	{names: "cmd", skip: 1, how: joined}, {names: "nix just", options: "c/command", how: afterC}, {names: "at batch", how: onInput},
}
