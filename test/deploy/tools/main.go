// Reads files of deploy/ for tests, and prints them as JSON.
//
//	deploy-tools compose FILE...   the model of docker compose, as its own parser makes it from these files
//	deploy-tools yaml FILE         a list with the value of each document
//
// Exit status 1: a file is refused. The last line of stderr says why.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
	"go.yaml.in/yaml/v3"
)

// model returns what `docker compose config` works on. All profiles are active.
func model(files []string) (any, error) {
	options, err := cli.NewProjectOptions(files, cli.WithOsEnv, cli.WithInterpolation(true), cli.WithResolvedPaths(true),
		cli.WithConsistency(true), cli.WithProfiles([]string{"*"}))
	if err != nil {
		return nil, err
	}
	return options.LoadProject(context.Background())
}

func documents(file string) (any, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	decoder := yaml.NewDecoder(opened)
	all := []any{}
	for {
		var one any
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if one != nil {
			all = append(all, one)
		}
	}
}

func run(arguments []string) (any, error) {
	switch {
	case len(arguments) >= 2 && arguments[0] == "compose":
		return model(arguments[1:])
	case len(arguments) == 2 && arguments[0] == "yaml":
		return documents(arguments[1])
	}
	return nil, errors.New("usage: deploy-tools compose FILE... | yaml FILE")
}

func main() {
	value, err := run(os.Args[1:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(value)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
