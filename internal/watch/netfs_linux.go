package watch

import "golang.org/x/sys/unix"

// networkFS names the file system that dir is on if others may change its files
// without this kernel's knowledge (statfs(2), magic numbers of linux/magic.h),
// or returns "".
func networkFS(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	switch uint32(st.Type) {
	case 0x6969:
		return "NFS"
	case 0xff534d42, 0xfe534d42, 0x517b:
		return "SMB/CIFS"
	case 0x01021997:
		return "9p"
	case 0x65735546:
		return "FUSE"
	case 0x5346414f, 0x6b414653:
		return "AFS"
	case 0x00c36400:
		return "Ceph"
	case 0x73757245:
		return "Coda"
	case 0x786f4256:
		return "vboxsf"
	case 0x0bd00bd0:
		return "Lustre"
	}
	return ""
}
