package main

import (
	"errors"
	"fmt"
	"strings"

	"sluice/config"
	"sluice/proxy"
	"sluice/proxy/auth"
)

func proofs(c *config.Proof) proxy.Auth {
	return proxy.Auth{
		JWT: auth.JWTOptions{
			Algorithm: c.JWTAlgorithm, Key: string(c.JWTKey), Issuer: c.JWTIssuer, Audience: c.JWTAudience,
			Leeway: c.JWTLeeway, Remember: c.JWTRemember,
		},
		From: c.JWTFrom, CookieKey: string(c.CookieKey), OrderTokenKey: string(c.OrderTokenKey), Slot: c.OrderTokenSlot,
	}
}

// proofCompiles is the rule that keys can be used, and that routes find what they want proven. What config has found
// missing is not told twice.
func proofCompiles(c *config.Config) []error {
	p := &c.Proof
	if p.JWTAlgorithm != "" && p.JWTKey == "" || p.CookieKeyFile != "" && len(p.CookieKey) < 16 ||
		p.OrderTokenKeyFile != "" && len(p.OrderTokenKey) < 16 {
		return nil
	}
	err := proxy.CompileAuth(proofs(p), routes(c))
	var at *proxy.RouteError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &at):
		key, cause, _ := strings.Cut(err.Error(), ": ")
		return []error{c.Errorf("proof."+key, "%s", cause)}
	case strings.Contains(at.Error(), "needs proof."), strings.Contains(at.Error(), "is of a user and a SKU"):
		return nil // told by config
	}
	for i := range c.Routes {
		if c.Routes[i].Name == at.Route {
			return []error{c.Errorf(fmt.Sprintf("route[%d].%s", i+1, at.Key), "%v", at.Err)}
		}
	}
	return []error{err}
}
