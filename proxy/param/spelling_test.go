package param

import "testing"

func TestOfName_FoldsAsPHPDoes(t *testing.T) {
	for name, want := range map[string]Spelling{
		"goods_id": Exact, "Goods_ID": Cased, "good\u017f_id": Cased, "goods_\u0131d": Cased, "goods_\u0130D": Cased,
		"goods.id": Folded, "goods id": Folded, "goods[id": Folded, "  goods.id": Folded, " goods_id": Folded,
		"goods_id\x00x": Folded, "\tgoods_id": Folded, "goods.id\x00[]": Folded,
		"goods_id[]": Nested, "goods_id[a]": Nested, "goods.id[]": Nested, "[goods_id]": Nested, "goods_id]": Nested,
		"goods_id.a": Nested, "goods_id[": Nested,
		"goods[id]": Another, "goods": Another, "goods_ids": Another, "goods_id_": Another, "x.goods_id": Another,
		"goods-id": Another, "goods\x00_id": Another, "": Another, "_": Another, "goodsxid": Another,
	} {
		if got := ofName([]byte(name), "goods_id"); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]Spelling{
		"connect.sid": Exact, "connect_sid": Folded, "connect": Another, "connect[sid]": Another, "connect.sid.x": Nested,
	} {
		if got := ofName([]byte(name), "connect.sid"); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}

// A value in an object has other spellings, which its readers find at the same place.
func TestOfName_OfAValueInAnObject(t *testing.T) {
	for name, want := range map[string]Spelling{
		"order[sku_id]": Exact, "Order[SKU_ID]": Cased, "order[sku_id][]": Nested, "order[sku_id]x": Nested,
		"order[sku_id].a": Nested, "order.sku_id": Nested, " order[sku_id]": Nested, "[order][sku_id]": Nested,
		"order[sku_id]\x00": Nested, "order": Nested, "order[]": Nested, "order[qty]": Another, "order[sku_id2]": Another,
		"orders[sku_id]": Another, "order_sku_id": Another, "sku_id": Another, "order.qty": Another, "": Another,
	} {
		if got := ofName([]byte(name), "order[sku_id]"); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
	if got := ofName([]byte("my.order[a]"), "my_order[a]"); got != Nested {
		t.Errorf("PHP folds the object's name: %v", got)
	}
}

func TestOfName_DoesNotAllocate(t *testing.T) {
	names := [][]byte{[]byte("goods_id"), []byte(" goods.id\x00"), []byte("goods[id]"), []byte("a-name-that-is-long")}
	if n := testing.AllocsPerRun(100, func() {
		for _, name := range names {
			ofName(name, "goods_id")
			ofName(name, "goods[id_that_is_longer_than_the_stack_of_a_conversion]")
		}
		mentions(names[3], "goods_id")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
