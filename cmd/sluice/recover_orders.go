package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"sluice/admin"
	"sluice/proxy/param"
)

// readOrders reads a shop's orders by SKU: JSON objects with serial, user, quantity and perhaps sku, one a line, or CSV
// with these columns, which a header may put into another order. usual is the SKU of those that name none. An order
// that is not whole is an error with its line, and so is a serial that comes twice: nothing is guessed.
func readOrders(in io.Reader, usual string) (orders map[string][]admin.Order, err error) {
	text := bufio.NewReader(in)
	orders = make(map[string][]admin.Order)
	seen := make(map[string]int)
	add := func(at int, sku string, o admin.Order) error {
		if sku == "" {
			sku = usual
		}
		if before := seen[sku+"\x00"+o.Serial]; before > 0 {
			return fmt.Errorf("line %d: serial %q of SKU %q stands in line %d already", at, o.Serial, sku, before)
		}
		seen[sku+"\x00"+o.Serial] = at
		orders[sku] = append(orders[sku], o)
		return whole(at, sku, o)
	}
	if beginsJSON(text) {
		err = readJSONOrders(text, add)
	} else {
		err = readCSVOrders(text, add)
	}
	if err == nil && len(orders) == 0 {
		err = errors.New("there is no order in it")
	}
	return orders, err
}

func beginsJSON(text *bufio.Reader) bool {
	start, _ := text.Peek(256)
	return bytes.HasPrefix(bytes.TrimLeft(start, " \t\r\n"), []byte("{"))
}

// whole rejects an order that no ledger could have.
func whole(at int, sku string, o admin.Order) error {
	switch {
	case sku == "":
		return fmt.Errorf("line %d: no SKU", at)
	case !param.ValidSKU([]byte(sku)):
		return fmt.Errorf("line %d: SKU %.40q: no request can name it", at, sku)
	case o.Serial == "" || len(o.Serial) > 128:
		return fmt.Errorf("line %d: serial %.40q: it must have 1 to 128 bytes", at, o.Serial)
	case o.Quantity < 1 || o.Quantity > 1_000_000_000:
		return fmt.Errorf("line %d: quantity %d: it must be 1 to 1000000000", at, o.Quantity)
	}
	return nil
}

const longestOrder = 64 << 10 // bytes of one line

func readJSONOrders(text io.Reader, add func(int, string, admin.Order) error) error {
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, longestOrder)
	at := 0
	for lines.Scan() {
		at++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var o struct {
			admin.Order
			SKU string `json:"sku"`
		}
		if err := json.Unmarshal(line, &o); err != nil {
			return fmt.Errorf("line %d: %w", at, err)
		}
		if err := add(at, o.SKU, o.Order); err != nil {
			return err
		}
	}
	return lines.Err()
}

func readCSVOrders(text io.Reader, add func(int, string, admin.Order) error) error {
	rows := csv.NewReader(text)
	rows.FieldsPerRecord, rows.TrimLeadingSpace = -1, true
	columns := []string{"serial", "user", "quantity"}
	for first := true; ; first = false {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		at, _ := rows.FieldPos(0)
		if first && slices.Contains(row, "serial") {
			columns = row
			continue
		}
		sku, o, err := orderOf(columns, row)
		if err != nil {
			return fmt.Errorf("line %d: %w", at, err)
		}
		if err := add(at, sku, o); err != nil {
			return err
		}
	}
}

// orderOf reads one row. Columns of other names are the shop's own business.
func orderOf(columns, row []string) (sku string, o admin.Order, err error) {
	if len(row) != len(columns) {
		return "", o, fmt.Errorf("%d columns, and not %d: %v", len(row), len(columns), columns)
	}
	if !slices.Contains(columns, "quantity") {
		return "", o, errors.New("no column has the name quantity")
	}
	for i, name := range columns {
		switch name {
		case "serial":
			o.Serial = row[i]
		case "user":
			o.User = row[i]
		case "sku":
			sku = row[i]
		case "quantity":
			if o.Quantity, err = strconv.ParseInt(row[i], 10, 64); err != nil {
				return "", o, fmt.Errorf("quantity %.40q is no number", row[i])
			}
		}
	}
	return sku, o, nil
}
