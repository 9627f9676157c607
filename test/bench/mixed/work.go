// The program that `go build` builds in the mixed load. It also uses a few packages of the standard library.
package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sort"
)

func main() {
	words := map[string]int{"a": 1, "b": 2}
	names := make([]string, 0, len(words))
	for name := range words {
		names = append(names, name)
	}
	sort.Strings(names)
	text, _ := json.Marshal(words)
	fmt.Println(names, string(text), regexp.MustCompile(`\d`).FindAllString(string(text), -1))
}
