package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// model is the ledger as one would explain it: a list of orders, and every number counted anew from it. It shares
// nothing with the stores but the words.
type model struct {
	exists       bool
	total, limit int64
	epoch, ver   int64
	state        State
	opens        int64
	closes       int64
	added        []modelledAddition
	why          string
	orders       []modelled
	instances    int64 // that have not told a frozen ledger what they know
}

// modelled is a serial that somebody spoke of. Its status is "held", "sold", "released" or "refunded".
// modelledAddition is what an id of Add was used for.
type modelledAddition struct {
	id    string
	delta int64
}

type modelled struct {
	serial, user string
	quantity     int64
	cart         string
	status       string
	deadline     int64
	due          int64 // when a sweep looks at it
}

func (m *model) count(status string) (n int64) {
	for _, o := range m.orders {
		if o.status == status {
			n += o.quantity
		}
	}
	return n
}

func (m *model) unitsOf(user string) (n int64) {
	for _, o := range m.orders {
		if o.user == user && (o.status == "held" || o.status == "sold") {
			n += o.quantity
		}
	}
	return n
}

func (m *model) free() int64 { return m.total - m.count("held") - m.count("sold") }

func (m *model) find(serial string) *modelled {
	for i := range m.orders {
		if m.orders[i].serial == serial {
			return &m.orders[i]
		}
	}
	return nil
}

func (m *model) hint() StockVersion {
	if !m.exists {
		return StockVersion{}
	}
	return StockVersion{
		Free:   m.free(),
		Epoch:  m.epoch,
		Ver:    m.ver,
		State:  m.state,
		Opens:  m.opens,
		Closes: m.closes,
		Held:   m.count("held"),
	}
}

func (m *model) stock() Stock {
	s := Stock{StockVersion: m.hint(), Total: m.total, Sold: m.count("sold"), Limit: m.limit, Why: m.why}
	if s.State == Frozen {
		s.Untold = m.instances
	}
	return s
}

func (m *model) reserve(epoch, now, deadline int64, items []Item) (codes []Code) {
	won := false
	for _, i := range items {
		code := m.reserveOne(epoch, now, i)
		if code == Held {
			won = true
			m.orders = append(m.orders, modelled{i.Serial, i.User, i.Quantity, i.Cart, "held", deadline, deadline})
		}
		codes = append(codes, code)
	}
	if won {
		m.ver++
	}
	return codes
}

func (m *model) reserveOne(epoch, now int64, i Item) Code {
	if !m.exists {
		return UnknownSKU
	}
	if epoch != 0 && epoch != m.epoch {
		return StaleEpoch
	}
	if o := m.find(i.Serial); o != nil {
		same := o.user == i.User && o.quantity == i.Quantity && (o.cart == i.Cart || o.cart == AnyCart)
		switch {
		case o.status == "released":
			return Released
		case o.status == "refunded":
			return Refunded
		case !same:
			return OtherOrder
		case o.status == "sold":
			return ReplaySold
		}
		return ReplayHeld
	}
	if m.state != On || m.opens > now || m.closes != 0 && m.closes <= now {
		return NotOnSale
	}
	if i.Quantity > m.free() {
		return SoldOut
	}
	if i.User != "" && m.limit > 0 && m.unitsOf(i.User)+i.Quantity > m.limit {
		return UserLimit
	}
	return Held
}

func (m *model) finish(op Op, keep int64, items []Item) (done []Done) {
	changed := false
	for _, i := range items {
		answer := NoLedger
		if m.exists {
			answer = m.finishItem(op, keep, i)
		}
		changed = changed || answer == Changed || answer == Oversold
		done = append(done, answer)
	}
	if changed {
		m.ver++
	}
	if changed && op == Adopt {
	}
	return done
}

func (m *model) finishItem(op Op, keep int64, i Item) Done {
	o := m.find(i.Serial)
	if o == nil {
		if op == Confirm || op == Refund {
			return NotFound
		}
		m.orders = append(m.orders, modelled{serial: i.Serial, status: "unheard of"})
		o = m.find(i.Serial)
	}
	var done Done
	switch op {
	case Confirm:
		return o.confirm()
	case Release:
		done = o.release(keep)
	case Refund:
		done = o.refund(keep)
	}
	if op != Adopt {
		if m.state == Frozen && done == Changed {
			o.cart = AnyCart
		}
		return done
	}
	if o.status == "sold" {
		return Already
	}
	if o.status != "held" {
		o.user, o.quantity = i.User, i.Quantity
	}
	o.status, o.deadline, o.cart = "sold", 0, AnyCart
	if m.free() < 0 {
		return Oversold
	}
	return Changed
}

func (o *modelled) confirm() Done {
	switch o.status {
	case "held":
		o.status, o.deadline = "sold", 0
		return Changed
	case "sold":
		return Already
	case "refunded":
		return WasRefunded
	}
	return WasReleased
}

func (o *modelled) release(keep int64) Done {
	switch o.status {
	case "held", "unheard of":
		o.status, o.deadline, o.due = "released", keep, keep
		return Changed
	case "sold":
		return WasSold
	}
	return Already
}

func (o *modelled) refund(keep int64) Done {
	switch o.status {
	case "held", "sold":
		o.status, o.deadline, o.due = "refunded", keep, keep
		return Changed
	case "refunded":
		return Already
	}
	return WasReleased
}

func (m *model) sweep(now, lease int64, limit int) (holds []Record) {
	if !m.exists {
		return nil
	}
	slices.SortFunc(
		m.orders,
		func(a, b modelled) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.serial, b.serial)) },
	)
	for i := range m.orders {
		if o := &m.orders[i]; o.status == "held" && o.due <= now && len(holds) < limit {
			o.due = lease
			holds = append(holds, o.record())
		} else if o.status == "refunded" && o.due <= now {
			o.due = 0 // it is looked at no more
		}
	}
	m.orders = slices.DeleteFunc(m.orders, func(o modelled) bool {
		return o.status == "released" && o.due <= now
	})
	return holds
}

func (o *modelled) record() Record {
	status, _ := ParseStatus(o.status)
	return Record{Serial: o.serial, User: o.user, Quantity: o.quantity, Cart: o.cart, Status: status,
		Deadline: o.deadline}
}

// setTotal reports false where a store must answer with an error. epoch is what a new ledger begins with.
func (m *model) setTotal(total, limit, epoch int64) bool {
	if limit == KeepLimit {
		limit = m.limit
	}
	if !m.exists {
		*m = model{
			exists: true, total: total, limit: limit, epoch: epoch, ver: 1, state: On, instances: m.instances,
		}
		return true
	}
	if total < m.count("held")+m.count("sold") {
		return false
	}
	if total != m.total || limit != m.limit {
		m.ver++
	}
	m.total, m.limit = total, limit
	return true
}

func (m *model) setState(state State) bool {
	if !m.exists {
		return false
	}
	m.why = ""
	if state == Frozen {
		m.epoch++
		m.why = "operator"
	}
	if state == Frozen || state != m.state {
		m.ver++
	}
	m.state = state
	return true
}

func (m *model) setHours(opens, closes int64) {
	if m.opens != opens || m.closes != closes {
		m.ver++
	}
	m.opens, m.closes = opens, closes
}

// add reports whether the number and the id may be.
func (m *model) add(delta int64, id string) bool {
	for _, a := range m.added {
		if id != "" && a.id == id {
			return a.delta == delta
		}
	}
	if m.total+delta < m.count("held")+m.count("sold") {
		return false
	}
	m.total += delta
	m.ver++
	if id != "" {
		m.added = append(m.added, modelledAddition{id, delta})
	}
	if len(m.added) > maxAdditions {
		m.added = m.added[1:]
	}
	return true
}

// remembered is how the ledger keeps its ids.
func (m *model) remembered() string {
	var words []string
	for _, a := range m.added {
		words = append(words, fmt.Sprintf("%s=%d", a.id, a.delta))
	}
	return strings.Join(words, " ")
}
