package proxy

// stamps are the fields of a refusal that do not differ from one request to the next, made once.
type stamps struct {
	usual     [][Envelope + 1][]byte // by tongue
	confirmed [][]byte               // likewise, of an order's confirmation to a program
}

func (a *responder) cut() (s stamps) {
	for _, t := range a.tongues {
		var all [Envelope + 1][]byte
		for format := range all {
			all[format] = stamp(Format(format), contentTypes[format], t.tag)
		}
		s.usual = append(s.usual, all)
		s.confirmed = append(s.confirmed, stamp(Problem, "application/json", t.tag)) // it is no problem
	}
	return s
}

func stamp(format Format, contentType, tag string) []byte {
	var out reply
	out.add("Content-Type", contentType)
	if format != Envelope {
		out.add("Content-Language", tag)
	}
	out.add("Cache-Control", "no-store")
	out.add("Vary", "Accept, Accept-Language, Origin")
	return out.fields
}

// of are the fields of a refusal in one of the tongues.
func (s *stamps) of(reason Reason, tongue int, format Format) []byte {
	if reason == Confirmed && format == Problem {
		return s.confirmed[tongue]
	}
	return s.usual[tongue][format]
}
