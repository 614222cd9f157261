-- visit finds what its caller has seen, and does nothing else.
-- ARGV: events
-- Reply: false without a ledger, else the hint.

local stock = load()
return stock and hint(stock)
