package main

import (
	"context"
	"fmt"

	"github.com/compose-spec/compose-go/v2/cli"
)

// compose loads a file as docker compose does, with all profiles, and returns "service port" of each published port.
func compose(path string) (published []string, err error) {
	ctx := context.Background()
	options, err := cli.NewProjectOptions([]string{path}, cli.WithOsEnv, cli.WithProfiles([]string{"*"}))
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range project.ServiceNames() {
		for _, p := range project.Services[name].Ports {
			published = append(published, fmt.Sprintf("%s %s:%s", name, p.HostIP, p.Published))
		}
	}
	return published, nil
}
