//go:build !linux

package guard

import "context"

// ProbeKernel tells that there is no kernel layer here.
func ProbeKernel(_ context.Context, _, _ string) (apart, inPlace KernelLayer, err error) {
	k, err := OpenKernel(KernelOptions{})
	if err != nil {
		return apart, inPlace, err
	}
	return k.Layer, k.Layer, nil
}
