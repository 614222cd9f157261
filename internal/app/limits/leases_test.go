package limits

import (
	"testing"

	"sluice/limiter"
)

func TestConcurrency_PartIsOfTheWholeLimit(t *testing.T) {
	c := crowded(100, 0)
	in := newCrowd(t, c)
	if in.all.Max() != 100 {
		t.Errorf("%d slots, want the whole", in.all.Max())
	}
	c.Limits.Concurrency.Scope = "fleet"
	if in.use(c); in.all.Max() != 1 {
		t.Errorf("%d slots before a part is known, want 1", in.all.Max())
	}
	in.SetParts([2]uint64{}, 0.25, nil)
	if in.all.Max() != 25 {
		t.Errorf("%d slots of a quarter", in.all.Max())
	}
	in.SetParts([2]uint64{}, 0.25, []limiter.FleetPart{{Key: theSlots, Share: 0.699}})
	if in.all.Max() != 69 {
		t.Errorf("%d slots of 0.699, want 69", in.all.Max())
	}
	if in.use(c); in.all.Max() != 69 {
		t.Errorf("%d slots after a reload, want 69", in.all.Max())
	}
	for range 40 {
		in.all.Acquire(0, 0, nil)
	}
	if d := in.Demand(0); len(d) != 1 || d[0].Held != 0.4 || d[0].Share != 0.699 || d[0].PerSecond <= 0 {
		t.Errorf("%+v, want 40 of 100 held", d)
	}
	c.Limits.Concurrency.Scope = "instance"
	if in.use(c); in.all.Max() != 100 {
		t.Errorf("%d slots, want the whole again", in.all.Max())
	}
}
