//go:build race

package life

const stressEdits = 40
