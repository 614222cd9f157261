package route

import (
	"bytes"

	"sluice/internal/octets"
)

// maxOverrides bounds the values that are looked at. Clients and proxies send one or two.
const maxOverrides = 8

// override returns a guarded route that could take the request with a method or path out of its fields;
// -1 when there is none. If own, its route without them, guards stock, the fields may only repeat the request line.
func (t *Table) override(q *Query, own int) int {
	if len(q.OverrideMethods)+len(q.OverridePaths) > maxOverrides {
		return t.ambiguity(nil, q.Host, nil, -1, GuardsEntry)
	}
	for i := range 1 + len(q.OverridePaths) {
		path, otherPath := q.overridePath(i - 1)
		for j := range 1 + len(q.OverrideMethods) {
			method, otherMethod := q.overrideMethod(j - 1)
			if !otherPath && !otherMethod {
				continue
			}
			if t.guardsStock(own) {
				return own
			}
			self := -1
			if !otherPath && own >= 0 && t.entries[own].takesMethod(method) {
				self = own // it takes this method, too
			}
			if found := t.ambiguity(method, q.Host, path, self, GuardsEntry); found >= 0 {
				return found
			}
		}
	}
	return -1
}

// overrideMethod is the method that value i names, and whether it is another than the request's. A list is nil, which
// stands for any method.
func (q *Query) overrideMethod(i int) (method []byte, another bool) {
	if i < 0 || len(q.OverrideMethods[i]) == 0 || octets.EqualFold(q.OverrideMethods[i], q.Method) {
		return q.Method, false
	}
	if method = q.OverrideMethods[i]; !octets.IsToken(method) {
		return nil, true
	}
	return method, true
}

// overridePath is the path that value i names, and whether it is another than the request's. A value that does not
// begin with one slash is nil, which stands for any path.
func (q *Query) overridePath(i int) (path []byte, another bool) {
	if i < 0 || len(q.OverridePaths[i]) == 0 {
		return q.Path, false
	}
	path = pathOf(q.OverridePaths[i])
	if len(path) == 0 || path[0] != '/' || len(path) > 1 && path[1] == '/' {
		return nil, true
	}
	return path, !bytes.Equal(path, q.Path)
}
