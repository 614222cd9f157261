package testkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"mime"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Description is one OpenAPI document. What Check passes is described: the path, the method, the status, the kind of
// content, and every member of the body. A keyword of schemas that is not known is an error.
type Description struct {
	root  map[string]any
	paths map[string]any
	base  string // of its server: "/api/v1"
}

// ReadAPI reads a document.
func ReadAPI(text string) (*Description, error) {
	d := &Description{}
	if err := yaml.Unmarshal([]byte(text), &d.root); err != nil {
		return nil, fmt.Errorf("read the description: %w", err)
	}
	if version, _ := d.root["openapi"].(string); !strings.HasPrefix(version, "3.1.") {
		return nil, fmt.Errorf("openapi is %v, not 3.1", d.root["openapi"])
	}
	d.paths, _ = d.root["paths"].(map[string]any)
	servers, _ := d.root["servers"].([]any)
	if len(servers) != 1 || len(d.paths) == 0 {
		return nil, errors.New("it has no paths, or not one server")
	}
	server, _ := servers[0].(map[string]any)
	d.base, _ = server["url"].(string)
	return d, nil
}

// Operations are all of them, as "GET /api/v1/status", in order.
func (d *Description) Operations() (all []string) {
	for path, item := range d.paths {
		for method := range item.(map[string]any) {
			if method != "parameters" {
				all = append(all, strings.ToUpper(method)+" "+d.base+path)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Check is the error of an answer that is not described. operation is one of Operations.
func (d *Description) Check(operation string, status int, contentType string, body []byte) error {
	method, path, _ := strings.Cut(operation, " ")
	item, _ := d.paths[strings.TrimPrefix(path, d.base)].(map[string]any)
	op, _ := item[strings.ToLower(method)].(map[string]any)
	if op == nil {
		return fmt.Errorf("%s is not described", operation)
	}
	responses, _ := op["responses"].(map[string]any)
	described, ok := responses[strconv.Itoa(status)]
	if !ok {
		if described, ok = responses["default"]; !ok || status < 400 {
			return fmt.Errorf("%s: status %d is not described", operation, status)
		}
	}
	response, err := d.resolve(described)
	if err != nil {
		return err
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return fmt.Errorf("%s: content type %q: %w", operation, contentType, err)
	}
	contents, _ := response["content"].(map[string]any)
	content, ok := contents[kind].(map[string]any)
	if !ok {
		return fmt.Errorf("%s: %d with %s is not described", operation, status, kind)
	}
	if !strings.Contains(kind, "json") || kind == "application/x-ndjson" {
		return nil // text of another form
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	if err := d.fits(v, content["schema"], ""); err != nil {
		return fmt.Errorf("%s: %d: %w in %.300s", operation, status, err, body)
	}
	return nil
}

// Schemas is the error of a reference that leads nowhere, anywhere in the document.
func (d *Description) Schemas() error { return d.referred(d.root) }

func (d *Description) referred(v any) error {
	switch v := v.(type) {
	case map[string]any:
		if _, is := v["$ref"]; is {
			_, err := d.resolve(v)
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := d.referred(v[key]); err != nil {
				return err
			}
		}
	case []any:
		for _, one := range v {
			if err := d.referred(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// resolve follows a reference.
func (d *Description) resolve(v any) (map[string]any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%v is no object", v)
	}
	ref, is := m["$ref"].(string)
	if !is {
		return m, nil
	}
	at := d.root
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		if at, ok = at[name].(map[string]any); !ok {
			return nil, fmt.Errorf("%s leads nowhere", ref)
		}
	}
	return at, nil
}

// keywords are those of a schema that fits understands, or that say nothing of a value.
var keywords = []string{"type", "enum", "anyOf", "items", "properties", "required", "additionalProperties", "minimum",
	"maximum", "description"}

// fits holds a value against a schema.
func (d *Description) fits(v, schema any, at string) error {
	s, err := d.resolve(schema)
	if err != nil {
		return err
	}
	for key := range s {
		if !slices.Contains(keywords, key) {
			return fmt.Errorf("%s: a schema has %q, which this does not understand", at, key)
		}
	}
	if any, ok := s["anyOf"].([]any); ok {
		for _, one := range any {
			if err = d.fits(v, one, at); err == nil {
				return nil
			}
		}
		return err
	}
	if enum, ok := s["enum"].([]any); ok &&
		!slices.ContainsFunc(enum, func(e any) bool { return reflect.DeepEqual(e, v) }) {
		return fmt.Errorf("%s is %v, not one of %v", at, v, enum)
	}
	if !ofType(v, s["type"]) {
		return fmt.Errorf("%s is %v, not of type %v", at, v, s["type"])
	}
	return d.inside(v, s, at)
}

// inside holds the parts of a list or an object against their schemas.
func (d *Description) inside(v any, s map[string]any, at string) error {
	switch v := v.(type) {
	case []any:
		for i, one := range v {
			if s["items"] == nil {
				break // anything
			}
			if err := d.fits(one, s["items"], fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				return fmt.Errorf("%s lacks %v", at, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			schema, ok := properties[name]
			if !ok {
				switch other := s["additionalProperties"].(type) {
				case bool:
					return fmt.Errorf("%s.%s is not described", at, name)
				case map[string]any:
					schema = other
				default:
					continue
				}
			}
			if err := d.fits(v[name], schema, at+"."+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofType reports whether v is of a type, or of one of several; nil = any.
func ofType(v, types any) bool {
	switch t := types.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(t, func(one any) bool { return ofType(v, one) })
	}
	switch v := v.(type) {
	case nil:
		return types == "null"
	case bool:
		return types == "boolean"
	case string:
		return types == "string"
	case float64:
		return types == "number" || types == "integer" && v == math.Trunc(v)
	case []any:
		return types == "array"
	}
	return types == "object"
}
