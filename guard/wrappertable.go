package guard

// wrapper describes a program that runs another command: its options, how many
// words stand before the command, and how the command is given.
type wrapper struct {
	name    string
	options string // optionSpec text
	skip    int    // words before the command
	how     byte   // how the command is given, see below
	sub     string
	shell   string // options whose value is shell text
}

// wrappers is knowledge, one row a program. How the command is given: 'a' as
// words; 'A' as words after one that may be left out; 'j' as words that are joined
// to shell text; 'e' every word is shell text; 's' as words after a subcommand from
// sub ("|"-separated; other subcommands run nothing that is looked into); 'J' as
// words after the first of the options; '-' only in the options
// named by shell; '+' the same, with operands before the options.
var wrappers = []wrapper{
	{name: "nohup", how: 'a'}, {name: "setsid", options: "c f w", how: 'a'}, {name: "chronic", how: 'a'}, {name: "unbuffer", how: 'a'},
	{name: "nice", options: "n/adjustment=", how: 'a'}, {name: "ionice", options: "c/class= n/classdata= p= P= u= t", how: 'a'},
	{name: "timeout", options: "s/signal= k/kill-after= preserve-status foreground v/verbose", skip: 1, how: 'a'},
	{name: "gtimeout", options: "s/signal= k/kill-after= preserve-status foreground v/verbose", skip: 1, how: 'a'},
	{name: "time", options: "f/format= o/output= a p v", how: 'a'}, {name: "gtime", options: "f/format= o/output= a p v", how: 'a'},
	{name: "stdbuf", options: "i/input= o/output= e/error=", how: 'a'}, {name: "command", options: "p v V", how: 'a'}, {name: "builtin", how: 'a'},
	{name: "exec", options: "a= c l", how: 'a'}, {name: "noglob", how: 'a'}, {name: "nocorrect", how: 'a'}, {name: "busybox", how: 'a'}, {name: "toybox", how: 'a'},
	{name: "doas", options: "u= C= n s", how: 'a'}, {name: "gosu", skip: 1, how: 'a'}, {name: "su-exec", skip: 1, how: 'a'},
	{name: "pkexec", options: "u/user=", how: 'a'}, {name: "setpriv", options: "reuid= regid= groups=", how: 'a'}, {name: "fakeroot", how: 'a'},
	{name: "caffeinate", options: "t= w=", how: 'a'}, {name: "dbus-run-session", how: 'a'}, {name: "xvfb-run", options: "a n/server-num= s/server-args= e/error-file=", how: 'a'},
	{name: "torsocks", how: 'a'}, {name: "proxychains", options: "f= q", how: 'a'}, {name: "proxychains4", options: "f= q", how: 'a'}, {name: "faketime", options: "f", skip: 1, how: 'a'},
	{name: "strace", options: "e= o= p= s= u= E= f", how: 'a'}, {name: "ltrace", options: "e= o= p= s= u= f", how: 'a'}, {name: "valgrind", how: 'a'},
	{name: "taskset", options: "p c a", skip: 1, how: 'a'}, {name: "chrt", options: "T= P= D= f r b i", skip: 1, how: 'a'}, {name: "chroot", skip: 1, how: 'a'},
	{name: "unshare", options: "r/map-root-user n/net m/mount f/fork p/pid", how: 'a'}, {name: "systemd-run", options: "p/property= u/unit= E/setenv= user pty t scope", how: 'a'},
	{name: "firejail", how: 'a'}, {name: "arch", how: 'a'}, {name: "winpty", how: 'a'}, {name: "wsl", options: "d= u= e", how: 'a'}, {name: "entr", options: "c d n p r s z", how: 'a'},
	{name: "prlimit", options: "p= o= noheadings raw verbose v? n? c? d? e? f? i? l? m? q? r? s? t? u? x? y?", how: 'a'}, {name: "choom", options: "n/adjust= p=", how: 'a'},
	{name: "setarch", options: setarchOptions, how: 'A'}, {name: "linux64", options: setarchOptions, how: 'a'}, {name: "linux32", options: setarchOptions, how: 'a'},
	{name: "i386", options: setarchOptions, how: 'a'}, {name: "x86_64", options: setarchOptions, how: 'a'}, {name: "uname26", options: setarchOptions, how: 'a'},
	{name: "nsenter", options: "t/target= m/mount? u/uts? i/ipc? n/net? p/pid? U/user? C/cgroup? T/time? S/setuid= G/setgid= r/root? w/wd? F/no-fork Z", how: 'a'},
	{name: "proot", options: "r= b= w= q= R= S= 0", how: 'a'}, {name: "ssh-agent", options: "a= E= t= P= O= c D d k s", how: 'a'},
	{name: "numactl", options: "N= m= i= p= C= l", how: 'a'}, {name: "eatmydata", how: 'a'}, {name: "rtk", how: 'a'}, {name: "toolbox", how: 's', sub: "run"}, {name: "rlwrap", options: "a? f= H= i c r", how: 'a'}, {name: "catchsegv", how: 'a'},
	{name: "dumb-init", options: "c v r=", how: 'a'}, {name: "tini", options: "p= e= s v g w", how: 'a'}, {name: "cpulimit", options: "l= p= i f", how: 'a'}, {name: "cgexec", options: "g= sticky", how: 'a'},
	{name: "chpst", options: "u= U= e= / b= n= l= L= m= d= o= p= f= c= t= 0 1 2 v P", how: 'a'}, {name: "softlimit", options: "a= c= d= f= l= m= o= p= r= s= t=", how: 'a'},
	{name: "and", how: 'a'}, {name: "or", how: 'a'}, {name: "not", how: 'a'}, {name: "begin", how: 'a'}, // fish
	{name: "dotenv", options: "e= f=", how: 'a'}, {name: "cross-env", how: 'a'}, {name: "bunx", options: "p/package= y", how: 'a'}, {name: "uvx", options: "from=", how: 'a'},
	{name: "npx", options: "y/yes p/package= c/call= q/quiet no-install", how: 'a', shell: "call"},
	{name: "npm", options: "c/call= y/yes package= prefix=", how: 's', sub: "exec|x", shell: "call"},
	{name: "pnpm", options: "C/dir= r w filter= c/shell-mode", how: 's', sub: "exec|dlx"}, {name: "yarn", options: "cwd=", how: 's', sub: "exec|dlx"}, {name: "bun", how: 's', sub: "x"},
	{name: "bundle", how: 's', sub: "exec"}, {name: "poetry", how: 's', sub: "run"}, {name: "pipenv", how: 's', sub: "run"}, {name: "pdm", how: 's', sub: "run"},
	{name: "uv", options: "with= p/python= project= directory= m/module", how: 's', sub: "run"}, {name: "hatch", how: 's', sub: "run"}, {name: "rye", how: 's', sub: "run"},
	{name: "conda", options: "n/name= p/prefix= no-capture-output", how: 's', sub: "run"}, {name: "mise", how: 's', sub: "exec|x"}, {name: "asdf", how: 's', sub: "exec"},
	{name: "op", how: 's', sub: "run"}, {name: "doppler", how: 's', sub: "run"}, {name: "devbox", how: 's', sub: "run"},
	{name: "perf", options: "o= e= F= p= c= C= r= x= a g d v s T", how: 's', sub: "stat|record|trace"}, {name: "tox", options: "e=", how: 's', sub: "exec"}, {name: "rbenv", how: 's', sub: "exec"},
	{name: "pyenv", how: 's', sub: "exec"}, {name: "nodenv", how: 's', sub: "exec"}, {name: "lerna", options: "scope= concurrency= stream", how: 's', sub: "exec"}, {name: "nx", how: 's', sub: "exec"},
	{name: "turbo", how: 's', sub: "exec"}, {name: "rush", options: "j= k i=", how: 'e'}, {name: "sem", options: "j= id= fg bg wait", how: 'j'},
	{name: "just", options: "command c f= d=", how: 'J'}, {name: "nodemon", options: "x/exec= w/watch= e/ext= i/ignore= q", how: '-', shell: "exec"},
	{name: "watchexec", options: "e/exts= w/watch= i/ignore= f/filter= c r s= n/no-shell", how: 'j'}, {name: "chokidar", options: "c/command= d= t= i/ignore=", how: '+', shell: "command"},
	{name: "onchange", options: "i k d= e=", how: 'a'}, {name: "wsh", how: 'a'},
	{name: "dotenvx", options: "f=", how: 's', sub: "run"}, {name: "cargo", how: 's', sub: "watch", options: "x/exec= s/shell=", shell: "shell"},
	{name: "watch", options: "n/interval= d/differences? t b e g c x p", how: 'j'}, {name: "hyperfine", options: "w/warmup= r/runs= p/prepare= c/cleanup= N", how: 'e', shell: "prepare cleanup"},
	{name: "concurrently", options: "n/names= c/prefix-colors= k", how: 'e'}, {name: "su", options: "c/command= s/shell= l/login g= m p", how: '+', shell: "command"},
	{name: "runuser", options: "c/command= s/shell= u/user= l=", how: 'a', shell: "command"}, {name: "script", options: "c/command= q/quiet e/return a/append f/flush t? o=", how: '+', shell: "command"},
	{name: "nix-shell", options: "run= command= p/packages= I= A=", how: '-', shell: "run command"}, {name: "sg", options: "c=", skip: 1, how: 'e', shell: "c"},
	{name: "nix", options: "c/command", how: 'J'}, {name: "powershell", options: "Command= c= NoProfile", how: 'j'}, {name: "pwsh", options: "Command= c= NoProfile", how: 'j'},
	{name: "screen", options: "S= d m X", how: 'a'}, {name: "direnv", how: 's', sub: "exec"},
}

const setarchOptions = "B/32bit F/fdpic-funcptrs I/short-inode L/addr-compat-layout R/addr-no-randomize S/whole-seconds T/sticky-timeouts X/read-implies-exec Z/mmap-page-zero 3/3gb v/verbose uname-2.6"

// archNames are the words that setarch takes before the command.
var archNames = words{text: "x86_64 i386 i486 i586 i686 linux32 linux64 aarch64 arm armv7l uname26"}
