// A Go program with goroutines, maps, sorting through an interface, strings, a heap that keeps the garbage collector
// busy, and recovered panics. Runs until it is killed.
package main

import (
	"fmt"
	"hash/crc32"
	"sort"
	"strings"
)

type node struct {
	left, right *node
	value       uint64
}

//go:noinline
func mix(x uint64) uint64 {
	for i := 0; i < 200; i++ {
		x = x*6364136223846793005 + x>>31
	}
	return x
}

func build(depth int, x uint64) *node {
	if depth == 0 {
		return &node{value: mix(x)}
	}
	return &node{build(depth-1, x+1), build(depth-1, x+2), x}
}

func (n *node) sum() uint64 {
	if n == nil {
		return 0
	}
	return n.left.sum() + n.right.sum() + mix(n.value)
}

type byMix []uint64

func (b byMix) Len() int           { return len(b) }
func (b byMix) Less(i, j int) bool { return mix(b[i]) < mix(b[j]) }
func (b byMix) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }

func containers(x uint64) uint64 {
	counts := map[string]uint64{}
	for i := uint64(0); i < 100; i++ {
		counts[fmt.Sprintf("key %d", mix(x+i)%50)] += i
	}
	values := byMix{}
	for name, n := range counts {
		values = append(values, n+uint64(crc32.ChecksumIEEE([]byte(strings.Repeat(name, 20)))))
	}
	sort.Sort(values)
	return values[0]
}

func recovered(depth int) (result uint64) {
	defer func() {
		if recover() != nil {
			result = mix(uint64(depth))
		}
	}()
	if depth == 0 {
		panic("recovered")
	}
	return recovered(depth-1) + 1
}

func work(x uint64) {
	for {
		x += build(8, x).sum()
		x += containers(x % 1000)
		x += recovered(int(x % 6))
	}
}

func main() {
	go work(17)
	work(42)
}
