package guard

import "strconv"

// testStatus is the status of "test …" or "[ … ]" where all that it compares is
// known.
func testStatus(args []string) status {
	if n := len(args); n > 0 && args[n-1] == "]" {
		args = args[:n-1]
	}
	if len(args) > 0 && args[0] == "!" {
		switch testStatus(args[1:]) {
		case statusTrue:
			return statusFalse
		case statusFalse:
			return statusTrue
		}
		return statusOpen
	}
	for _, a := range args {
		if !isKnown(a) {
			return statusOpen
		}
	}
	holds := false
	switch {
	case len(args) == 1:
		holds = args[0] != ""
	case len(args) == 2 && args[0] == "-n":
		holds = args[1] != ""
	case len(args) == 2 && args[0] == "-z":
		holds = args[1] == ""
	case len(args) == 3 && (args[1] == "=" || args[1] == "=="):
		holds = args[0] == args[2]
	case len(args) == 3 && args[1] == "!=":
		holds = args[0] != args[2]
	case len(args) == 3:
		a, err1 := strconv.Atoi(args[0])
		b, err2 := strconv.Atoi(args[2])
		compare, ok := map[string]bool{"-eq": a == b, "-ne": a != b, "-gt": a > b, "-ge": a >= b, "-lt": a < b, "-le": a <= b}[args[1]]
		if err1 != nil || err2 != nil || !ok {
			return statusOpen
		}
		holds = compare
	default:
		return statusOpen
	}
	if holds {
		return statusTrue
	}
	return statusFalse
}
