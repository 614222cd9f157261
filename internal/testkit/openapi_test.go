package testkit

import (
	"reflect"
	"strings"
	"testing"
)

const small = `openapi: 3.1.0
servers:
  - url: /api
paths:
  /things/{id}:
    parameters:
      - {name: id, in: path}
    get:
      summary: >-
        A thing,
        and more.
      responses:
        "200": {$ref: "#/components/responses/Thing"}
        default:
          description: "Why: not."
          content:
            application/problem+json: {schema: {type: object, required: [detail]}}
components:
  responses:
    Thing: {content: {application/json: {schema: {$ref: "#/components/schemas/Thing"}}}}
  schemas:
    Thing:
      type: object
      required: [id, state]
      additionalProperties: false
      properties:
        id: {type: integer}
        state: {enum: ["on", off]}
        parts: {type: array, items: {anyOf: [{type: string}, {type: "null"}]}}
        counts: {type: object, additionalProperties: {type: integer}}
`

func TestOpenapi_AnswerIsHeldAgainstItsSchema(t *testing.T) {
	d, err := ReadAPI(small)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := d.Operations(), []string{"GET /api/things/{id}"}; !reflect.DeepEqual(got, want) {
		t.Fatalf("operations %v, want %v", got, want)
	}
	if err := d.Schemas(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		status     int
		kind, body string
		says       string // "" = it fits
	}{
		{200, "application/json", `{"id": 1, "state": "on", "parts": ["a", null], "counts": {"x": 2}}`, ""},
		{200, "application/json", `{"id": 1.5, "state": "on"}`, "id is 1.5"},
		{200, "application/json", `{"id": 1}`, "lacks state"},
		{200, "application/json", `{"id": 1, "state": "no"}`, "not one of"},
		{200, "application/json", `{"id": 1, "state": "on", "more": 1}`, "more is not described"},
		{200, "application/json", `{"id": 1, "state": "on", "parts": [1]}`, "parts[0]"},
		{200, "application/json", `{"id": 1, "state": "on", "parts": null}`, "parts is <nil>"},
		{200, "application/json", `{"id": 1, "state": "on", "counts": {"x": "2"}}`, "counts.x"},
		{200, "text/plain", `x`, "text/plain is not described"},
		{201, "application/json", `{}`, "status 201 is not described"},
		{404, "application/problem+json", `{"detail": "none"}`, ""},
		{404, "application/problem+json", `{}`, "lacks detail"},
	} {
		err := d.Check("GET /api/things/{id}", c.status, c.kind, []byte(c.body))
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%d %s %s: %v, want %q", c.status, c.kind, c.body, err, c.says)
		}
	}
	if d.Check("POST /api/things/{id}", 200, "application/json", nil) == nil {
		t.Error("an operation that is not there is taken as described")
	}
}

func TestOpenapi_WhatIsNotUnderstoodIsAnError(t *testing.T) {
	for _, text := range []string{
		"", "openapi: 3.0.0", "openapi: 3.1.0", strings.Replace(small, "    get:", "   get:", 1),
		strings.Replace(small, "[id, state]", "[id, state", 1),
		strings.Replace(small, "openapi: 3.1.0", "openapi: 3.1.0\nopenapi: 3.1.0", 1),
		strings.Replace(small, "servers:", "servers", 1),
	} {
		if _, err := ReadAPI(text); err == nil {
			t.Errorf("taken: %.60q", text)
		}
	}
	d, err := ReadAPI(strings.Replace(small, "schemas/Thing\"", "schemas/Thin\"", 1))
	if err != nil || d.Schemas() == nil {
		t.Errorf("a reference that leads nowhere is taken: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(small)
	f.Add("a: {b: [c, \"d\"]}\n- e")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := ReadAPI(text); err == nil {
			_ = d.Schemas()
		}
	})
}
