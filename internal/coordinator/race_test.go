//go:build race

package coordinator

const raceDetector = true
