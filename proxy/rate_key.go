package proxy

import "encoding/binary"

// appendKey appends what m counts the request by; ok is false when the request lacks some of it. What the request says
// twice, or so that gate and shop could read it differently, is refused: whoever could choose would be counted nowhere.
func (m *meter) appendKey(dst []byte, r *request) (key []byte, ok bool, reason Reason) {
	for i := range m.key.parts {
		p := &m.key.parts[i]
		switch {
		case p.source == literal: // the same for everybody
			continue
		case p.source == remoteAddr:
			if dst, ok = m.appendClient(dst, r); !ok {
				return dst, false, Admitted
			}
			continue
		case p.source == formField && !r.isForm(), p.source == jsonField && !r.isJSON():
			return dst, false, Admitted
		}
		v, reason := r.look(p)
		if reason != Admitted || len(v) == 0 {
			return dst, false, reason
		}
		// With its length, so that no two keys are put together to the same.
		dst = binary.LittleEndian.AppendUint32(append(dst, v...), uint32(len(v)))
	}
	return dst, true, Admitted
}

// appendClient appends the client's network. Who comes by a unix socket without naming anybody has no address.
func (m *meter) appendClient(dst []byte, r *request) (key []byte, ok bool) {
	addr := r.clientAddr()
	bits := m.IPv6Prefix
	if addr.Is4() {
		bits = m.IPv4Prefix
	}
	network, err := addr.Prefix(bits)
	if err != nil || !addr.IsValid() {
		return dst, false
	}
	sixteen := network.Addr().As16()
	return append(dst, sixteen[:]...), true
}

// appendText appends the key for people's eyes: networks as such, and what may be a secret or a person as a hash, unless
// it is shown to whoever typed the request in.
func (m *meter) appendText(dst []byte, r *request, open bool) []byte {
	for i := range m.key.parts {
		p := &m.key.parts[i]
		if p.source == literal {
			dst = append(dst, p.text...)
			continue
		}
		if i > 0 && m.key.parts[i-1].source != literal {
			dst = append(dst, ' ')
		}
		if p.source == remoteAddr {
			dst = m.appendNetwork(dst, r)
			continue
		}
		v, _ := r.look(p)
		switch p.source {
		case hostHeader, pathName, arg:
			dst = append(dst, v...)
		default:
			if open {
				dst = append(dst, v...)
			} else {
				dst = r.appendHash(dst, v)
			}
		}
	}
	return dst
}

func (m *meter) appendNetwork(dst []byte, r *request) []byte {
	addr := r.clientAddr()
	bits := m.IPv6Prefix
	if addr.Is4() {
		bits = m.IPv4Prefix
	}
	network, err := addr.Prefix(bits)
	switch {
	case err != nil:
		return append(dst, "nobody"...)
	case network.IsSingleIP():
		return network.Addr().AppendTo(dst)
	}
	return network.AppendTo(dst)
}
