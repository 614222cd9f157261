package ledger

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// StateDir keeps an operation log in a folder, so that an instance that was killed returns as the same one: with its
// name, and with every order that it may have forwarded. An order is in the journal before it is forwarded.
//
// The name is what vouches for the orders: the process that returns has it only where the journal is known to be whole.
// It is whole where it was written on this boot of the machine, since a kill does not lose what was written, and where
// nothing in it is damaged. Else the new process has another name, and its orders are no more than hints.
//
// The folder has one sub-folder for each instance. Its process locks it. It has at most two segments, files of one
// change a line; the older one is deleted when the newer one has as many orders as a log keeps.
type StateDir struct {
	Name  string // of the instance; "" = the caller chooses one and calls Begin
	Calls int64  // numbers of calls up to this one were used before

	dir     string
	lock    *os.File
	out     *os.File
	current int // number of the segment that is written
	bytes   int64
	placed  int // orders in it
	most    int
	life    int64
	name    string
	seen    func() []seenRecord
	broken  error // it cannot be written, nor deleted
	damaged []damagedSegment
	former  string // the name in a damaged journal; "" = none was read
}

// damagedSegment is a file of which a line cannot be read.
type damagedSegment struct {
	path  string
	cause error
}

// damagedFile keeps the last damaged segment for who looks into it. No process reads it.
const damagedFile = "damaged"

const (
	maxSegment   = 64 << 20       // bytes
	callsPerLife = 10_000_000_000 // more than a process makes
	maxLives     = MaxNumber / callsPerLife
)

// change is one line of a journal: what OperationLog was told.
type change struct {
	Kind     changeKind `json:"k"`
	SKU      anyBytes   `json:"s,omitempty"`
	Made     int64      `json:"t,omitempty"` // Unix ms
	Epoch    int64      `json:"e,omitempty"`
	Ver      int64      `json:"v,omitempty"` // of the answer
	Sale     int64      `json:"l,omitempty"` // likewise
	Call     int64      `json:"c,omitempty"` // whose answer this was; 0 = none was there yet
	Deadline int64      `json:"d,omitempty"`
	Op       Op         `json:"o,omitempty"`
	Items    []item     `json:"i,omitempty"`
	Begin    *begin     `json:"b,omitempty"`
}

type changeKind string

const (
	changeBegin    changeKind = "begin"
	changeReserved changeKind = "reserved"
	changeIntends  changeKind = "intends"
	changeCorrects changeKind = "corrects"
	changeHandOut  changeKind = "handed out" // names no orders: what waits is asked about where that call is lost
)

// item is an order of a change, and what the ledger answered.
type item struct {
	Serial   anyBytes `json:"s"`
	User     anyBytes `json:"u,omitempty"`
	Quantity int64    `json:"q,omitempty"`
	Cart     string   `json:"c,omitempty"`
	Answer   int8     `json:"a,omitempty"`
}

// anyBytes is a string that need not be UTF-8, which a string of JSON is: it is written as base64.
type anyBytes string

// MarshalText implements encoding.TextMarshaler.
func (s anyBytes) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, []byte(s)), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *anyBytes) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.AppendDecode(nil, text)
	*s = anyBytes(raw)
	return err
}

// begin is what a process or a segment begins with.
type begin struct {
	Name    string       `json:"name"`
	Boot    string       `json:"boot"`
	Life    int64        `json:"life"`
	Left    bool         `json:"left"`    // it has left in good order, and has taken its marks away
	Dropped int64        `json:"dropped"` // Unix ms: orders from before may be in no segment
	Seen    []seenRecord `json:"seen"`
}

// seenRecord is what an instance has seen of one ledger.
type seenRecord struct {
	SKU      anyBytes `json:"s"`
	Epoch    int64    `json:"e"`
	Ver      int64    `json:"v"`
	Sale     int64    `json:"l,omitempty"`
	Answered int64    `json:"c,omitempty"`
}

// openStateDir opens the first journal of dir that no process has, or a new one, and puts into seen and log what it
// knows. A journal that a kill has torn ends before the torn line, of which nothing was forwarded.
func openStateDir(dir string, seen *Seen, log *OperationLog) (j *StateDir, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j = &StateDir{most: log.most, seen: seen.records}
	if err := j.claim(dir); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := j.load(seen, log); err != nil {
		_ = unlockFolder(j.lock)
		return nil, fmt.Errorf("open journal %s: %w", j.dir, err)
	}
	return j, nil
}

// folderPrefix begins the name of an instance's folder.
const folderPrefix = "instance-"

// leftFile is in the folder of a process that has left in good order.
const leftFile = "left"

// leftFor is for how long its name and orders are taken again: longer than a ledger waits for an instance whose mark a
// fail-over has put back.
const leftFor = 10 * time.Minute

func hasLeft(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, leftFile))
	return err == nil
}

// leftLongAgo reports a folder whose process left longer ago than leftFor.
func leftLongAgo(folder string) bool {
	about, err := os.Stat(filepath.Join(folder, leftFile))
	return err == nil && time.Since(about.ModTime()) > leftFor
}

// claim locks a sub-folder: one of a process that was killed, if there is one, since others may wait for its name.
func (j *StateDir) claim(dir string) (err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var folders []string
	for _, e := range entries { // Glob would take the signs of a pattern in dir for one
		if strings.HasPrefix(e.Name(), folderPrefix) {
			folders = append(folders, filepath.Join(dir, e.Name()))
		}
	}
	killed := slices.DeleteFunc(slices.Clone(folders), hasLeft)
	left := slices.DeleteFunc(folders, func(folder string) bool { return !hasLeft(folder) })
	for _, folder := range slices.Concat(killed, left, []string{filepath.Join(dir, folderPrefix+rand.Text()[:12])}) {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		if j.lock, err = lockFolder(folder); err == nil {
			j.dir = folder
			return nil
		}
		if !errors.Is(err, errLocked) {
			return err
		}
	}
	return errLocked
}

// segments are the numbers of those that there are, in order.
func (j *StateDir) segments() (all []int, err error) {
	entries, err := os.ReadDir(j.dir)
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all, err
}

func (j *StateDir) path(n int) string { return filepath.Join(j.dir, fmt.Sprintf("%08d", n)) }

// load reads all segments.
func (j *StateDir) load(seen *Seen, log *OperationLog) error {
	all, err := j.segments()
	if err != nil {
		return err
	}
	last, whole, gone := begin{}, true, leftLongAgo(j.dir)
	for at, n := range all {
		first := true
		j.placed = 0
		good, err := readSegment(j.path(n), func(c *change) {
			if c.Begin != nil {
				last = *c.Begin
				if first && at == 0 {
					log.dropped = max(log.dropped, c.Begin.Dropped)
				}
				first = false
			}
			if !gone {
				j.placed += log.replay(c)
			}
			seen.replay(c)
		})
		if errors.Is(err, errTorn) && at == len(all)-1 {
			err = os.Truncate(j.path(n), good)
		}
		if errors.Is(err, errTorn) || errors.Is(err, errDamaged) {
			whole = false
			j.damaged = append(j.damaged, damagedSegment{j.path(n), fmt.Errorf("byte %d: %w", good, err)})
		} else if err != nil {
			return err
		}
		j.bytes, j.current = good, n
	}
	j.life = last.Life
	if boot := bootID(); whole && !gone && last.Name != "" && boot != "" && boot == last.Boot && j.life+1 < maxLives {
		j.Name = last.Name
		if last.Left {
			seen.leave()
		}
	} else {
		j.life = 0
		seen.forgetAnswered()
	}
	log.endUnknown()
	if !whole { // what follows a damaged line would never be read
		j.former = last.Name
		j.current++
		j.bytes, j.placed = 0, 0
	}
	j.current = max(j.current, 1)
	j.Calls = (j.life + 1) * callsPerLife
	return nil
}

// Begin begins the life of an instance with that name.
func (j *StateDir) Begin(name string) (err error) {
	j.name, j.life = name, j.life+1
	if j.out, err = os.OpenFile(j.path(j.current), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return fmt.Errorf("begin journal: %w", err)
	}
	err = os.Remove(filepath.Join(j.dir, leftFile))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = j.append(&change{Kind: changeBegin, Begin: j.begin()})
	}
	if err != nil {
		return fmt.Errorf("begin journal: %w", err)
	}
	return nil
}

// setAside takes a damaged segment out of the journal: the next process is this instance then. Before Begin has written
// the name of this process, the next one would take what is left for the whole journal of the former instance.
func (j *StateDir) setAside(d damagedSegment) (kept string, err error) {
	kept = filepath.Join(j.dir, damagedFile)
	if err := os.Rename(d.path, kept); err != nil {
		return "", err
	}
	return kept, nil
}

func (j *StateDir) begin() *begin {
	return &begin{Name: j.name, Boot: bootID(), Life: j.life, Seen: j.seen()}
}

// append writes a change. It is on its way to the disk then: a kill does not lose it.
func (j *StateDir) append(c *change) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	line = fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(line), line)
	n, err := j.out.Write(line)
	j.bytes += int64(n)
	return err
}

// write writes a change that has placed so many orders, and begins another segment when this one is full. Where that
// fails it deletes the journal: one that is not there vouches for nothing. Only where it cannot be deleted either the
// error comes back, now and ever after: nothing may be forwarded then.
func (j *StateDir) write(c *change, now int64) (lost, err error) {
	if j.broken != nil || j.out == nil {
		return nil, j.broken
	}
	placed := 0
	if c.Kind != changeCorrects {
		placed = len(c.Items)
	}
	lost = j.append(c)
	if j.placed += placed; lost == nil && (j.placed >= j.most || j.bytes >= maxSegment) {
		lost = j.rotate(now)
	}
	if lost == nil {
		return nil, nil
	}
	if err := j.remove(); err != nil {
		j.broken = fmt.Errorf("the journal can neither be written (%w) nor deleted: %w", lost, err)
	}
	return lost, j.broken
}

// rotate begins the next segment, and deletes those before the one that is full.
func (j *StateDir) rotate(now int64) error {
	next, err := os.OpenFile(j.path(j.current+1), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	j.out.Close()
	j.out, j.current, j.bytes, j.placed = next, j.current+1, 0, 0
	b := j.begin()
	b.Dropped = now
	if err := j.append(&change{Kind: changeBegin, Begin: b}); err != nil {
		return err
	}
	return j.removeBefore(j.current - 1)
}

func (j *StateDir) removeBefore(n int) error {
	all, err := j.segments()
	for _, old := range all {
		if err == nil && old < n {
			err = os.Remove(j.path(old))
		}
	}
	return err
}

// remove deletes all segments.
func (j *StateDir) remove() error {
	if j.out != nil {
		j.out.Close()
		j.out = nil
	}
	return j.removeBefore(j.current + 2)
}

// Close ends the journal. left says that the instance has left in good order: nothing waits for its name, unless Redis
// fails over and loses that.
func (j *StateDir) Close(left bool) (err error) {
	if j.out != nil && left {
		b := j.begin()
		b.Left = true
		err = errors.Join(j.append(&change{Kind: changeBegin, Begin: b}), j.out.Sync(),
			os.WriteFile(filepath.Join(j.dir, leftFile), nil, 0o600))
	}
	if j.out != nil {
		j.out.Close()
	}
	return errors.Join(err, unlockFolder(j.lock))
}

var (
	errTorn    = errors.New("the last line is not whole")
	errDamaged = errors.New("a line is damaged")
)

// readSegment shows see each change of a file, and returns how many bytes are good.
func readSegment(path string, see func(*change)) (good int64, err error) {
	in, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	for lines := bufio.NewReaderSize(in, 1<<16); ; {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return good, nil
		case errors.Is(err, io.EOF):
			return good, errTorn
		case err != nil:
			return good, err
		}
		var c change
		sum, text, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if want, err := strconv.ParseUint(string(sum), 16, 32); err != nil || uint32(want) != crc32.ChecksumIEEE(text) ||
			json.Unmarshal(text, &c) != nil {
			return good, errDamaged
		}
		good += int64(len(line))
		see(&c)
	}
}

// bootID names this boot of the machine; "" = it is not known.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}
