package server

// ProtocolError says why a request was rejected. It is comparable, and stays the result of all later reading from the
// connection.
type ProtocolError struct {
	Status int // the HTTP status to answer: 400, 405, 408, 414, 417, 431, 501 or 505
	Rule   Rule
}

// Error names the rule that was broken, never what the client sent.
func (e ProtocolError) Error() string { return "malformed request: " + e.Rule.Text() }

// Rule is the rule of HTTP/1.1 that a request breaks.
type Rule uint8

// The rules, in the order in which a request meets them.
const (
	fine Rule = iota
	emptyLine
	bareLF
	bareCR
	nulByte
	controlByte
	badRequestLine
	badVersion
	unknownVersion
	badMethod
	traceMethod
	connectMethod
	targetTooLong
	badTarget
	encodedControl
	headerTooLarge
	obsFold
	badName
	spaceInName
	underscoreAlias
	hostTwice
	hostEmpty
	badHost
	hostMissing
	targetNotHost
	lengthTwice
	badLength
	codingTwice
	badCoding
	codingOnHTTP10
	codingAndLength
	contentTypeTwice
	trailer
	badConnection
	connectionNamesHeader
	badExpectation
	headLate
	headCutShort
	badChunkSize
	chunkExtension
	badChunkEnd
	plainOnTLS
	otherReading

	// numRules is the number of rules, for an array with one element each. Rule 0 is "none".
	numRules
)

// String is the stable label of the rule in snake_case, for metrics and logs.
func (r Rule) String() string {
	if r >= numRules {
		return "unknown"
	}
	return rules[r].label
}

// Text describes the rule's breach to a human, for example "space before the colon".
func (r Rule) Text() string {
	if r >= numRules {
		return "unknown"
	}
	return rules[r].text
}

// err is the error of a request that breaks the rule.
func (r Rule) err() ProtocolError { return ProtocolError{Status: rules[r].status, Rule: r} }

// rules is the one table of statuses and names.
var rules = [numRules]struct {
	status int
	label  string
	text   string
}{
	fine:                  {200, "none", "none"},
	emptyLine:             {400, "empty_line", "more than one empty line before the request"},
	bareLF:                {400, "bare_lf", "bare LF"},
	bareCR:                {400, "bare_cr", "bare CR"},
	nulByte:               {400, "nul", "NUL byte"},
	controlByte:           {400, "control_byte", "control byte"},
	badRequestLine:        {400, "bad_request_line", "request line is not METHOD TARGET VERSION"},
	badVersion:            {400, "bad_version", "version is not HTTP/1.1"},
	unknownVersion:        {505, "unknown_version", "HTTP version other than 1.0 and 1.1"},
	badMethod:             {400, "bad_method", "method is not a token"},
	traceMethod:           {405, "trace", "method TRACE"},
	connectMethod:         {501, "connect", "method CONNECT"},
	targetTooLong:         {414, "target_too_long", "target over the limit"},
	badTarget:             {400, "bad_target", "target is no path, or holds bytes that must be escaped"},
	encodedControl:        {400, "encoded_control", "%00, %0d or %0a in the target"},
	headerTooLarge:        {431, "header_too_large", "head over the limit"},
	obsFold:               {400, "obs_fold", "header line continues on the next line"},
	badName:               {400, "bad_name", "header name is not a token"},
	spaceInName:           {400, "space_in_name", "space before the colon"},
	underscoreAlias:       {400, "underscore_alias", "header name imitates a framing field"},
	hostTwice:             {400, "host_twice", "Host twice"},
	hostEmpty:             {400, "host_empty", "Host is empty"},
	badHost:               {400, "bad_host", "Host is no name or address"},
	hostMissing:           {400, "host_missing", "Host is missing"},
	targetNotHost:         {400, "target_not_host", "target names another host than Host"},
	lengthTwice:           {400, "content_length_twice", "Content-Length twice"},
	badLength:             {400, "bad_content_length", "Content-Length is no plain number"},
	codingTwice:           {400, "transfer_encoding_twice", "Transfer-Encoding twice"},
	badCoding:             {400, "bad_transfer_encoding", "Transfer-Encoding other than chunked"},
	codingOnHTTP10:        {400, "te_on_http10", "Transfer-Encoding on HTTP/1.0"},
	codingAndLength:       {400, "te_and_cl", "Content-Length with Transfer-Encoding"},
	contentTypeTwice:      {400, "content_type_twice", "Content-Type twice"},
	trailer:               {400, "trailer", "trailer fields"},
	badConnection:         {400, "bad_connection", "Connection option is not a token"},
	connectionNamesHeader: {400, "connection_names_header", "Connection names an end-to-end field"},
	badExpectation:        {417, "bad_expectation", "Expect other than 100-continue"},
	headLate:              {408, "head_late", "head did not arrive in time"},
	headCutShort:          {400, "head_cut_short", "connection ended within the head"},
	badChunkSize:          {400, "bad_chunk_size", "chunk size is no hexadecimal number"},
	chunkExtension:        {400, "chunk_extension", "chunk extension"},
	badChunkEnd:           {400, "bad_chunk_end", "chunk does not end with CRLF"},
	otherReading:          {400, "other_reading", "head that another parser reads in another way"},
	plainOnTLS:            {400, "plain_http", "plain HTTP on a port of TLS: write https:// in the address"},
}
