-- read_stock reads. Reply: false without a ledger, else all numbers.

local stock = load()
return stock and whole(stock, 1)
