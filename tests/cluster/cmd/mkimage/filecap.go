package main

import (
	"encoding/binary"
	"fmt"
)

// Numbers of linux/capability.h, those that a recipe uses.
var capabilities = map[string]uint{
	"cap_net_bind_service": 10,
	"cap_net_raw":          13,
	"cap_sys_ptrace":       19,
}

const (
	capRevision2    = 0x02000000 // VFS_CAP_REVISION_2: two 32-bit words a set
	capEffectiveBit = 1          // the file's permitted set is raised at exec
)

// fileCapability is the tar record of CAP+ep, as setcap would have written it:
// the kernel's struct vfs_cap_data in the xattr security.capability.
func fileCapability(name string) (map[string]string, error) {
	number, ok := capabilities[name]
	if !ok {
		return nil, fmt.Errorf("unknown capability")
	}
	permitted := uint64(1) << number
	var data []byte
	for _, word := range []uint32{capRevision2 | capEffectiveBit, uint32(permitted), 0, uint32(permitted >> 32), 0} {
		data = binary.LittleEndian.AppendUint32(data, word)
	}
	return map[string]string{"SCHILY.xattr.security.capability": string(data)}, nil
}
