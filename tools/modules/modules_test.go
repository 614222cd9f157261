package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

func TestModules_LicencesAreToldApart(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004":                                          "Apache-2.0",
		"The MIT License\n\nPermission is hereby granted, free of\ncharge, to":                  "MIT",
		"Redistribution and use in source and binary forms ... Neither the name of Google Inc.": "BSD-3-Clause",
		"Redistribution and use in source and binary forms, with or without":                    "BSD-2-Clause",
		"All rights reserved.": "",
	} {
		if got := identify(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// A test binary is a binary of modules as well.
func TestModules_BillOfMaterialsIsTheSameTwice(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var one, two bytes.Buffer
	if err := bill(path, &one); err != nil {
		t.Fatal(err)
	}
	if err := bill(path, &two); err != nil {
		t.Fatal(err)
	}
	var parsed struct{ Components []component }
	if err := json.Unmarshal(one.Bytes(), &parsed); err != nil {
		t.Fatal(err)
	}
	if one.String() != two.String() || len(parsed.Components) == 0 || parsed.Components[0].Name != "stdlib" {
		t.Errorf("bills %s and %s", &one, &two)
	}
}
