package ledger

import "testing"

func TestSeenState_OldAnswerIsClaimedWhereThereIsAMark(t *testing.T) {
	s := newSeen().Add("1001")
	s.Learn(Answer{Call: 3, Epoch: 1, Ver: 5}, true)
	if c := s.Claim(); c != (Claim{Epoch: 1, Ver: 5, Answered: 3}) {
		t.Errorf("new: %+v", c)
	}
	s.at = s.at.Add(-claimFor - 1)
	if c := s.Claim(); c != (Claim{Epoch: 1, Ver: 5, Answered: -3}) {
		t.Errorf("old: %+v", c)
	}
}
