// A program with type parameters, closures, methods called through interfaces, and calls that a compiler inlines. Some
// of these calls are inlined into each other.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

type number interface{ ~int | ~int64 | ~float64 }

func sum[T number](values []T) (total T) {
	for _, value := range values {
		total = add(total, value)
	}
	return total
}

func add[T number](a, b T) T { return a + b }

func apply[T, U any](values []T, function func(T) U) []U {
	out := make([]U, 0, len(values))
	for _, value := range values {
		out = append(out, function(value))
	}
	return out
}

type tree[K cmp.Ordered, V any] struct {
	left, right *tree[K, V]
	key         K
	value       V
}

func (t *tree[K, V]) put(key K, value V) *tree[K, V] {
	switch {
	case t == nil:
		return &tree[K, V]{key: key, value: value}
	case key < t.key:
		t.left = t.left.put(key, value)
	case key > t.key:
		t.right = t.right.put(key, value)
	default:
		t.value = value
	}
	return t
}

func (t *tree[K, V]) walk(visit func(K, V) bool) bool {
	return t == nil || t.left.walk(visit) && visit(t.key, t.value) && t.right.walk(visit)
}

type shape interface{ area() float64 }
type square struct{ side float64 }
type circle struct{ radius float64 }

func (s square) area() float64  { return s.side * s.side }
func (c *circle) area() float64 { return 3 * c.radius * c.radius }

func clamp(value, low, high int) int { return smaller(larger(value, low), high) }
func smaller(a, b int) int {
	if a < b {
		return a
	}
	return b
}
func larger(a, b int) int {
	if a > b {
		return a
	}
	return b
}

var table = map[string]func(int) string{
	"stars": func(n int) string { return strings.Repeat("*", clamp(n, 0, 5)) },
	"lines": func(n int) string { return strings.Repeat("-", clamp(n, 1, 3)) },
}

func main() {
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Fprintln(os.Stderr, problem)
		}
	}()
	var words *tree[string, int]
	for i, word := range strings.Fields("the quick brown fox jumps over the lazy dog") {
		words = words.put(word, i)
	}
	words.walk(func(key string, value int) bool {
		fmt.Println(key, table["stars"](value), table["lines"](value))
		return value < 100
	})
	lengths := apply([]string{"a", "bb", "ccc"}, func(text string) int { return len(text) })
	areas := apply([]shape{square{2}, &circle{1}}, shape.area)
	slices.SortFunc(areas, func(a, b float64) int { return cmp.Compare(b, a) })
	fmt.Println(sum(lengths), sum(areas), errors.Join(errors.New("one"), errors.New("two")))
}
