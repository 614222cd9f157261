package http1

// Violation says why a connection's bytes were refused. It is an error, comparable, and stays the answer to all
// that is read later.
type Violation struct {
	Status int // the HTTP status to answer: 400, 405, 408, 414, 417, 431, 501 or 505
	Kind   Kind
}

// Error tells the rule that was broken, never what the client sent.
func (v Violation) Error() string { return "judge request: " + v.Kind.String() }

// Kind is the rule that was broken. Its String is stable, for logs and metric labels.
type Kind uint8

// The rules, in the order in which a request meets them.
const (
	fine Kind = iota
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
	unknownMethod
	targetTooLong
	badTarget
	badEscape
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

	// NumKinds is the number of kinds, for an array with one place each. Kind 0 is "none".
	NumKinds
)

// String is the kind in snake_case.
func (k Kind) String() string {
	if k >= NumKinds {
		return "unknown"
	}
	return rules[k].name
}

func (k Kind) violation() Violation { return Violation{Status: rules[k].status, Kind: k} }

// rules is the one table of statuses and names.
var rules = [NumKinds]struct {
	status int
	name   string
}{
	fine:                  {200, "none"},
	emptyLine:             {400, "empty_line"},
	bareLF:                {400, "bare_lf"},
	bareCR:                {400, "bare_cr"},
	nulByte:               {400, "nul"},
	controlByte:           {400, "control_byte"},
	badRequestLine:        {400, "bad_request_line"},
	badVersion:            {400, "bad_version"},
	unknownVersion:        {505, "unknown_version"},
	badMethod:             {400, "bad_method"},
	traceMethod:           {405, "trace"},
	unknownMethod:         {501, "unknown_method"},
	targetTooLong:         {414, "target_too_long"},
	badTarget:             {400, "bad_target"},
	badEscape:             {400, "bad_escape"},
	encodedControl:        {400, "encoded_control"},
	headerTooLarge:        {431, "header_too_large"},
	obsFold:               {400, "obs_fold"},
	badName:               {400, "bad_name"},
	spaceInName:           {400, "space_in_name"},
	underscoreAlias:       {400, "underscore_alias"},
	hostTwice:             {400, "host_twice"},
	hostEmpty:             {400, "host_empty"},
	badHost:               {400, "bad_host"},
	hostMissing:           {400, "host_missing"},
	targetNotHost:         {400, "target_not_host"},
	lengthTwice:           {400, "content_length_twice"},
	badLength:             {400, "bad_content_length"},
	codingTwice:           {400, "transfer_encoding_twice"},
	badCoding:             {400, "bad_transfer_encoding"},
	codingOnHTTP10:        {400, "te_on_http10"},
	codingAndLength:       {400, "te_and_cl"},
	contentTypeTwice:      {400, "content_type_twice"},
	trailer:               {400, "trailer"},
	badConnection:         {400, "bad_connection"},
	connectionNamesHeader: {400, "connection_names_header"},
	badExpectation:        {417, "bad_expectation"},
	headLate:              {408, "head_late"},
	headCutShort:          {400, "head_cut_short"},
	badChunkSize:          {400, "bad_chunk_size"},
	chunkExtension:        {400, "chunk_extension"},
	badChunkEnd:           {400, "bad_chunk_end"},
}
