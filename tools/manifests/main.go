// Command manifests reads Kubernetes manifests from its standard input, and fails unless each field of each of them is
// known to the API, by name and type. With an argument it reads that file as docker compose does. It takes the place of
// an API server and of docker in the tests of deploy.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	document "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// known are the kinds that are deployed here.
func known() map[string]any {
	return map[string]any{
		"v1 ConfigMap":                            new(core.ConfigMap),
		"v1 Service":                              new(core.Service),
		"v1 ServiceAccount":                       new(core.ServiceAccount),
		"apps/v1 Deployment":                      new(apps.Deployment),
		"policy/v1 PodDisruptionBudget":           new(policy.PodDisruptionBudget),
		"monitoring.coreos.com/v1 ServiceMonitor": new(monitoring.ServiceMonitor),
		"monitoring.coreos.com/v1 PrometheusRule": new(monitoring.PrometheusRule),
	}
}

func main() {
	var seen []string
	var err error
	if len(os.Args) > 1 {
		seen, err = compose(os.Args[1])
	} else {
		seen, err = check(os.Stdin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
	for _, s := range seen {
		fmt.Println(s)
	}
}

// check returns "kind name" of each manifest.
func check(in io.Reader) (seen []string, err error) {
	reader := document.NewYAMLReader(bufio.NewReader(in))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		name, err := checkOne(text)
		if err != nil {
			return nil, err
		}
		if name != "" {
			seen = append(seen, name)
		}
	}
	if len(seen) == 0 {
		return nil, errors.New("no manifest on standard input")
	}
	return seen, nil
}

func checkOne(text []byte) (string, error) {
	var object struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
	}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return "", err
	}
	if object.Kind == "" {
		return "", nil // comments alone
	}
	at := object.Kind + " " + object.Name
	into, ok := known()[object.APIVersion+" "+object.Kind]
	if !ok {
		return "", fmt.Errorf("%s: %s %s is not known here", at, object.APIVersion, object.Kind)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return "", fmt.Errorf("%s: %w", at, err)
	}
	if d, ok := into.(*apps.Deployment); ok {
		if err := checkDeployment(d); err != nil {
			return "", fmt.Errorf("%s: %w", at, err)
		}
	}
	return at, nil
}

// checkDeployment holds what the pieces of a Deployment name against each other.
func checkDeployment(d *apps.Deployment) error {
	spec := d.Spec.Template.Spec
	for key, value := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[key] != value {
			return fmt.Errorf("the selector %s=%s does not select its own pods", key, value)
		}
	}
	volumes := map[string]bool{}
	for _, v := range spec.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		ports := map[string]bool{}
		for _, p := range c.Ports {
			ports[p.Name] = true
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				return fmt.Errorf("container %s mounts %s, which is no volume", c.Name, m.Name)
			}
		}
		for _, p := range []*core.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			if p != nil && p.HTTPGet != nil && !ports[p.HTTPGet.Port.String()] {
				return fmt.Errorf("container %s is asked at port %s, which it does not name", c.Name, p.HTTPGet.Port.String())
			}
		}
	}
	return nil
}
