package deploy

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sluice/config"
	"sluice/gateway"
	"sluice/internal/doctor"
	"sluice/internal/testkit"
)

// The tools that render manifests, where they are not installed.
const (
	helmModule      = "helm.sh/helm/v3/cmd/helm@v3.22.0"
	kustomizeModule = "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1"
)

// goTool is the command line of a tool: installed, or out of a module.
func goTool(t *testing.T, name, module string) []string {
	t.Helper()
	testkit.Nightly(t, "it builds helm and kustomize")
	if path, err := exec.LookPath(name); err == nil {
		return []string{path}
	}
	path := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "install", module)
	cmd.Env = append(os.Environ(), "GOBIN="+filepath.Dir(path), "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("%s cannot be had: %v\n%s", name, err, text)
	}
	return []string{path}
}

// known checks manifests by the types of Kubernetes and of the Prometheus operator, and returns "kind name" of each.
func known(t *testing.T, manifests string) string {
	t.Helper()
	cmd := exec.Command("go", "run", ".")
	cmd.Dir, cmd.Env, cmd.Stdin = "../tools/manifests", append(os.Environ(), "GOFLAGS="), strings.NewReader(manifests)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s\nin\n%s", err, text, manifests)
	}
	return string(text)
}

// rendered runs a tool, without what helm says of the chart's link to the rules.
func rendered(t *testing.T, tool []string, args ...string) (out string, err error) {
	t.Helper()
	cmd := exec.Command(tool[0], append(tool[1:len(tool):len(tool)], args...)...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	text, err := cmd.Output()
	if err != nil {
		return complaint.String(), err
	}
	return string(text), nil
}

func TestManifests_ChartRendersWhatKubernetesKnows(t *testing.T) {
	helm := goTool(t, "helm", helmModule)
	if text, err := rendered(t, helm, "lint", "--strict", "--kube-version", "1.30.0", "helm/sluice"); err != nil {
		t.Errorf("helm lint: %v\n%s", err, text)
	}
	template := []string{"template", "shop", "helm/sluice", "--kube-version", "1.30.0"}
	plain, err := rendered(t, helm, template...)
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, plain)
	}
	wants(t, known(t, plain), "ConfigMap shop-sluice\n", "Deployment shop-sluice\n", "Service shop-sluice-ops\n",
		"PodDisruptionBudget shop-sluice\n")
	if strings.Contains(plain, "containerPort: 8090") {
		t.Error("the control API has a port without a token")
	}
	full, err := rendered(t, helm, append(template, "--set", "serviceMonitor.enabled=true,prometheusRule.enabled=true,"+
		"prometheusRule.docsURL=https://git.example.com/docs/,admin.tokenSecret=a,redisPassword.secret=r,extraSecret=e,"+
		"podLabels.team=x,podAnnotations.a=b,nodeSelector.disk=ssd,image.digest=sha256:"+strings.Repeat("0", 64))...)
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, full)
	}
	settles, err := rendered(
		t,
		helm,
		append(template, "--set", "settle.enabled=true,settle.database=postgres://u@db/shop,"+
			"settle.passwordSecret=d,redisPassword.secret=r,settle.work=true")...)
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, settles)
	}
	wants(t, known(t, settles), "Deployment shop-sluice\n", "Deployment shop-sluice-settler\n")
	wants(
		t,
		settles,
		`args: ["migrate",`,
		`args: ["run",`,
		`args: ["work",`,
		"SETTLE_DATABASE, value: \"postgres://u@db/shop\"",
	)
	wants(t, known(t, full), "ServiceMonitor shop-sluice\n", "PrometheusRule shop-sluice\n", "Service shop-sluice-admin\n")
	wants(t, full, "runbook_url: https://git.example.com/docs/runbook.md#sluicedown", "image: \"sluice@sha256:000",
		"team: x")
	_, groups, _ := strings.Cut(full, "kind: PrometheusRule")
	_, groups, _ = strings.Cut(groups, "\nspec:\n")
	groups, _, _ = strings.Cut(groups, "\n---")
	if promtool, err := exec.LookPath("promtool"); err == nil {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(path, []byte(regexp.MustCompile(`(?m)^  `).ReplaceAllString(groups, "")), 0o644); err != nil {
			t.Fatal(err)
		}
		output(t, promtool, "check", "rules", path)
	}
	for _, wrong := range []string{"replicas=0", "upstream=shop", "imagePullPolicy=Always", "settle.enabled=true",
		"prometheusRule.docsURL=docs"} {
		if _, err := rendered(t, helm, append(template, "--set", wrong)...); err == nil {
			t.Errorf("--set %s is accepted", wrong)
		}
	}
}

func TestManifests_KustomizationsBuildWhatKubernetesKnows(t *testing.T) {
	kustomize := goTool(t, "kustomize", kustomizeModule)
	for folder, want := range map[string]string{
		"base":       "ConfigMap sluice\nService sluice\nService sluice-ops\nDeployment sluice\nPodDisruptionBudget sluice\n",
		"monitoring": "PrometheusRule sluice\nServiceMonitor sluice\n",
	} {
		text, err := rendered(t, kustomize, "build", "kustomize/"+folder)
		if err != nil {
			t.Errorf("kustomize build %s: %v\n%s", folder, err, text)
			continue
		}
		if got := known(t, text); got != want {
			t.Errorf("%s holds\n%s\nwant\n%s", folder, got, want)
		}
	}
}

func TestManifests_SidecarIsKnownToKubernetes(t *testing.T) {
	testkit.Nightly(t, "it builds the types of Kubernetes")
	wants(t, known(t, read(t, "kubernetes/sluice.yaml")), "Deployment shop\n")
	cmd := exec.Command("go", "run", ".")
	cmd.Dir, cmd.Env = "../tools/manifests", append(os.Environ(), "GOFLAGS=")
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(read(t, "kubernetes/sluice.yaml"), "readinessProbe",
		"readynessProbe"))
	if text, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(text), "readynessProbe") {
		t.Errorf("a misspelled field is not found: %s", text)
	}
}

// docker compose takes the file, and only the clients' port is open to other machines.
func TestManifests_ComposeIsReadAndKeepsOperatorsPortsToItself(t *testing.T) {
	testkit.Nightly(t, "it builds the reader of compose files")
	cmd := exec.Command("go", "run", ".", "../../deploy/compose.yaml")
	cmd.Dir, cmd.Env = "../tools/manifests", append(os.Environ(), "GOFLAGS=")
	text, err := cmd.CombinedOutput()
	const want = "gate :8080\ngate 127.0.0.1:8090\ngate 127.0.0.1:8091\ngrafana 127.0.0.1:3000\nprometheus " +
		"127.0.0.1:9090\n"
	if err != nil || string(text) != want {
		t.Errorf("published are\n%s\n%v, want\n%s", text, err, want)
	}
}

// The script of the service token, as it stands in the file, makes a token that the gate takes, and keeps it.
func TestCompose_TokenIsMadeOnce(t *testing.T) {
	_, script, _ := strings.Cut(read(t, "compose.yaml"), "    command:\n      - |\n")
	script, _, _ = strings.Cut(script, "    network_mode:")
	dir := t.TempDir()
	script = strings.NewReplacer("$$", "$", "/token/", dir+"/", "chown 65532:65532", "true").Replace(script)
	first, again := output(t, "sh", "-c", script), output(t, "sh", "-c", script)
	if first != again ||
		!regexp.MustCompile(`^dashboard: http://localhost:8090/#token=[0-9a-f]{48}\n$`).MatchString(first) {
		t.Errorf("%q, and then %q", first, again)
	}
}

func TestPrometheusRule_IsWrittenFromTheRules(t *testing.T) {
	if want := output(t, "sh", "-c", "sh ../tools/rules --kubernetes 2>/dev/null"); read(t,
		"kustomize/monitoring/prometheusrule.yaml") != want {
		t.Error("kustomize/monitoring/prometheusrule.yaml is not made of the rules: make rules")
	}
	if read(t, "helm/sluice/files/sluice.rules.yaml") != read(t, "prometheus/sluice.rules.yaml") {
		t.Error("helm/sluice/files/sluice.rules.yaml is not prometheus/sluice.rules.yaml: make rules")
	}
}

// The chart is of the release, and the configurations that are deployed are valid as they stand.
func TestDeployment_VersionsAndConfigurationsAgree(t *testing.T) {
	release := strings.TrimSpace(read(t, "../VERSION"))
	wants(t, read(t, "helm/sluice/Chart.yaml"), "\nversion: "+release+" ", "\nappVersion: "+release+"\n")
	dir := t.TempDir()
	block := func(text, key, end string) string {
		_, text, _ = strings.Cut(text, key)
		text, _, _ = strings.Cut(text, end)
		return regexp.MustCompile(`(?m)^ {2,4}`).ReplaceAllString(text, "")
	}
	chart := block(read(t, "helm/sluice/values.yaml"), "\nconfig: |\n", "\nimage:")
	_, base, _ := strings.Cut(read(t, "kustomize/base/config.toml"), "\n")
	if strings.TrimSpace(chart) != strings.TrimSpace(base) {
		t.Errorf("the chart and the kustomization have other configurations:\n%s\n%s", chart, base)
	}
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(strings.Repeat("0123456789abcdef", 2)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"chart": chart,
		"sidecar": strings.ReplaceAll(block(read(t, "kubernetes/sluice.yaml"), "config.toml: |\n", "\n---"),
			"/run/secrets/sluice/redis", token),
		"compose": read(t, "config.toml"),
		"settles": read(t, "reserve.toml"),
	} {
		path := filepath.Join(dir, name+".toml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, admin := range []map[string]string{nil, {"ADMIN_LISTEN": ":8090", "ADMIN_TOKEN_FILE": token}} {
			environment := map[string]string{"UPSTREAM": "http://shop:80", "REDIS_ADDR": "redis:6379"}
			maps.Copy(environment, admin)
			lookup := func(name string) (string, bool) {
				value, ok := environment[name]
				return value, ok
			}
			c, err := config.Load(path, lookup, gateway.Validate)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if name == "chart" || name == "sidecar" {
				fitsMemory(t, name, c)
			}
		}
	}
	for _, path := range []string{"helm/sluice/values.yaml", "kubernetes/sluice.yaml", "kustomize/base/deployment.yaml"} {
		wants(t, read(t, path), "limits: {memory: 2Gi}")
	}
}

// fitsMemory wants a pod of 2 GiB to have the memory that the configuration needs at the worst, also when it reserves.
func fitsMemory(t *testing.T, name string, c *config.Config) {
	t.Helper()
	c.Routes[0].Gate = "reserve"
	var r doctor.Report
	r.Examine(c)
	for _, f := range r.Findings {
		var mib int
		if n, _ := fmt.Sscanf(f.Says, "at most %d MiB", &mib); f.About == "memory" && (n != 1 || mib > 2048) {
			t.Errorf("%s: %s", name, f.Says)
		}
	}
}
