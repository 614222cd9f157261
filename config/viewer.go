package config

// readViewer reads the token of those who may only look. Beside no other token it would be one more than nobody needs:
// who calls from this machine may change everything then.
func (a *Admin) readViewer(r *report, folder string) {
	a.ViewerToken = r.longSecret("admin.viewer_token_file", folder, a.ViewerTokenFile)
	switch {
	case a.ViewerTokenFile == "":
	case a.TokenFile == "":
		r.fail("admin.viewer_token_file", "belongs to token_file, without which no token is asked for; write that too, or drop this")
	case a.ViewerToken != "" && a.ViewerToken == a.Token:
		r.fail("admin.viewer_token_file", "holds the same as token_file: viewers could change everything; write another value into it")
	}
}
