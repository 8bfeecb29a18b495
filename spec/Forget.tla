--------------------------------- MODULE Forget --------------------------------
(* A server that loses what it has lent, or is replaced by one that knows nothing *)
(* of it, while nodes have it in hand.  It lends nothing until what may be out    *)
(* is over: until the window has turned that its clock, or one Skew ahead of it,  *)
(* was in.  Units count for the window that they were lent from, as the server    *)
(* called it that lent them.                                                      *)
EXTENDS Integers, FiniteSets
CONSTANTS Nodes, Limit, Batch, Ticks, Windows, Forgets,
          Behind,          \* ticks that later servers' clocks may be behind the first's
          Ahead,           \* ticks that the next server's clock may be ahead
          Quiet,           \* guard
          Skew,            \* ticks that are reckoned with
          Most             \* ticks: the longest wait
VARIABLES now, used, quiet, forgets, off, byclock, adm, hand
vars == <<now, used, quiet, forgets, off, byclock, adm, hand>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
None == [k |-> 0, w |-> 0, rest |-> 0]
Win(t) == t \div Ticks
Last == Ticks * Windows

Init == /\ now = 0 /\ used = 0 /\ quiet = 0 /\ forgets = 0 /\ off = 0 /\ byclock = 0
        /\ adm = [w \in 0..Windows-1 |-> 0] /\ hand = [n \in Nodes |-> None]

Lend(n) == /\ quiet = 0 /\ hand[n].k = 0 /\ used < Limit
           /\ LET k == Min(Batch, Limit - used) IN
              /\ used' = used + k
              /\ hand' = [hand EXCEPT ![n] = [k |-> k, w |-> Win(now),
                                              rest |-> Ticks - (now % Ticks)]]
           /\ UNCHANGED <<now, quiet, forgets, off, byclock, adm>>
Spend(n) == /\ hand[n].k > 0
            /\ adm' = [adm EXCEPT ![hand[n].w] = @ + 1] /\ byclock' = byclock + 1
            /\ hand' = [hand EXCEPT ![n] = IF @.k = 1 THEN None ELSE [@ EXCEPT !.k = @ - 1]]
            /\ UNCHANGED <<now, used, quiet, forgets, off>>
Older(h) == IF h.rest <= 1 THEN None ELSE [h EXCEPT !.rest = @ - 1]
Tick == /\ now + 1 < Last /\ now' = now + 1 /\ quiet' = Max(0, quiet - 1)
        /\ IF now' % Ticks = 0 THEN used' = 0 /\ byclock' = 0 ELSE UNCHANGED <<used, byclock>>
        /\ hand' = [n \in Nodes |-> Older(hand[n])]
        /\ UNCHANGED <<forgets, off, adm>>

Until(t) == Min((Win(t + Skew) + 1) * Ticks, t + Most)
ForgetAt(t, s) ==
    /\ t \in 0..Last-1 /\ forgets < Forgets /\ forgets' = forgets + 1
    /\ now' = t /\ used' = 0 /\ off' = IF s < 0 THEN off - s ELSE off
    /\ quiet' = IF Quiet THEN Until(t) - t ELSE 0
    /\ byclock' = IF Win(t) = Win(now) THEN byclock ELSE 0
    /\ UNCHANGED <<adm, hand>>
Next == \/ Tick
        \/ \E n \in Nodes : Lend(n) \/ Spend(n)
        \/ \E s \in (off - Behind)..Ahead : ForgetAt(now + s, s)
Spec == Init /\ [][Next]_vars

PerWindow == \A w \in 0..Windows-1 : adm[w] <= Limit
ByClock == byclock <= Limit            \* the server's own windows, where clocks agree
Reached == \A w \in 0..Windows-1 : adm[w] < Limit    \* must be violated

FairSpec == Spec /\ WF_vars(Tick)
Opens == quiet > 0 ~> (quiet = 0 \/ now + 1 = Last)
================================================================================
