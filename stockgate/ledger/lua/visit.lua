-- visit finds what its caller has seen, and does nothing else.
-- ARGV: events

load()
